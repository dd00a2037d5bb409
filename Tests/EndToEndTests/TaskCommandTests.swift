import Foundation
import Glibc
import Testing

@Suite("The commands of background tasks against a running gateway", .serialized, .timeLimit(.minutes(15)))
struct TaskCommandTests {
    private let topic = "com.example.tasks"
    private let token = String(repeating: "7a5c", count: 16)

    @Test("device watch shows a change of conditions as the gateway knows them then")
    func watch() throws {
        let gateway = try RunningGateway()
        #expect(try gateway.wakegate("device", "register", self.token, "--topic", self.topic).status == 0)
        let line = ["device", "watch", "--topic", self.topic]
        let watch = try ChildProcess(wakegate: line, folder: gateway.folder)
        try gateway.eventually("a subscription; \(watch.errors)") { watch.errors.contains("subscribed at") }
        #expect(try gateway.wakegate("device", "conditions", self.token, "thermalState=serious").status == 0)
        let change = try watch.object()
        #expect(change["device"] as? String == self.token && change["thermalState"] as? String == "serious")
        #expect(change["appState"] as? String == "background")
        #expect(try watch.end().status == 0)
    }
}

import Foundation
import Glibc
import Testing

@Suite("The commands against a running gateway", .serialized, .timeLimit(.minutes(15)))
struct CommandTests {
    private let topic = "com.example.commands"
    private let token = String(repeating: "c0de", count: 16)

    @Test("push --count sends as many, counts the answers, and fails when one is refused")
    func count() throws {
        let gateway = try RunningGateway()
        // More pushes than a loop passes to the engine at a time, and more than the burst of resets that a peer is
        // allowed.
        let many = try gateway.wakegate("push", self.token, "--topic", self.topic, "--count", "1200")
        #expect(many.status == 0, "\(many.errors)")
        #expect(many.output.contains("1200 pushes: 1199 coalesced, 1 scheduled"))
        #expect(try gateway.stats().integer("pushes", "accepted") == 1200)
        let refused = try gateway.wakegate("push", "zz", "--topic", self.topic)
        #expect(refused.status == 1)
        #expect(refused.output.hasPrefix("400 BadDeviceToken"))
    }

    @Test("push --count and a worker that answers more than once work in cleartext, too")
    func cleartext() throws {
        let gateway = try RunningGateway()
        let url = "http://\(gateway.plain)"
        let push = ["push", self.token, "--topic", self.topic, "--count", "250", "--gateway", url]
        let many = try ChildProcess.wakegate(push, folder: gateway.folder)
        #expect(many.status == 0, "\(many.errors)")
        #expect(many.output.contains("250 pushes: 249 coalesced, 1 scheduled"))
        for number in 1...3 {
            let token = String(repeating: "0\(number)", count: 32)
            #expect(try gateway.push(token, topic: self.topic).status == 200)
        }
        let line = ["worker", "--topic", self.topic, "--gateway", url, "--", "true"]
        let worker = try ChildProcess(wakegate: line, folder: gateway.folder)
        try gateway.eventually("four results") { try gateway.stats().integer("pushes", "completed") == 4 }
        #expect(try worker.end().status == 0)
    }
}

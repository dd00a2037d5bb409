import Foundation
import Testing

@Suite("wakegate doctor and its route", .serialized, .timeLimit(.minutes(15)))
struct DoctorCommandTests {
    private let token = String(repeating: "d0", count: 32)
    private let topic = "com.example.doctor"

    @Test("The doctor names what holds a push back with the commands that fix it, and they do")
    func doctor() throws {
        let gateway = try RunningGateway()
        let unknown = try gateway.wakegate("doctor", self.token)
        #expect(unknown.status == 1 && unknown.errors.contains("UnknownDevice"), "\(unknown.errors)")
        #expect(try gateway.wakegate("device", "register", self.token, "--topic", self.topic).status == 0)
        #expect(try gateway.wakegate("device", "conditions", self.token, "network=false").status == 0)
        var answer = try gateway.wakegate("doctor", self.token)
        #expect(answer.status == 1, "\(answer.errors)")
        #expect(answer.output.hasPrefix("a push of priority 5 to \(self.token) of \(self.topic) is held back\n"))
        let remedy = "wakegate device conditions \(self.token) network=true\n"
        for text in ["ok      registered", "not ok  handler", "wakegate worker --topic \(self.topic) --", remedy] {
            #expect(answer.output.contains(text), "\(answer.output)")
        }
        #expect(try gateway.wakegate("device", "conditions", self.token, "network=true").status == 0)
        try gateway.curlWorker(topic: self.topic)
        answer = try gateway.wakegate("doctor", self.token)
        #expect(answer.status == 0 && !answer.output.contains("not ok"), "\(answer.output)")
        answer = try gateway.wakegate("doctor", self.token, "com.example.refresh")
        #expect(answer.status == 1 && answer.output.contains("--task com.example.refresh"), "\(answer.output)")
        let diagnosis = try gateway.admin("/v1/devices/\(self.token)/diagnosis?task=com.example.refresh")
        #expect(diagnosis.value("verdict") as? String == "held" && diagnosis.value("kind") as? String == "appRefresh")
        #expect(try gateway.admin("/v1/devices/\(self.token)/diagnosis?tsk=a").reason == "BadQuery")
        #expect(try gateway.admin("/v1/devices/\(self.token)/diagnosis?task=a%20b").reason == "BadTaskRequest")
    }

    @Test("The dashboard shows the times of a sentence in the reader's time zone")
    func moments() throws {
        let page = RunningGateway.root.appendingPathComponent("Sources/Server/Gateway/Edge/Dashboard/format.js").path
        let script = """
            import("data:text/javascript," + encodeURIComponent(require("fs").readFileSync(process.argv[1])))
                .then((page) => console.log(page.local(process.argv[2])))
            """
        let sentence = "It waits until 2026-11-28T09:00:01Z: a.2026-11-28 is not a time."
        let told = try ChildProcess.run("env", ["TZ=Asia/Tokyo", "node", "-e", script, page, sentence])
        let text = "It waits until 28 Nov 2026, 18:00:01 GMT+9: a.2026-11-28 is not a time.\n"
        #expect(told.output == text, "\(told.errors)")
    }
}

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

    @Test("Every reason and outcome of tasks and sessions is counted from the beginning")
    func counters() throws {
        let stats = try RunningGateway().stats()
        let object = try JSONSerialization.jsonObject(with: Data(stats.body.utf8))
        func names(_ path: String...) -> Set<String> {
            Set((Answer.value(at: path, in: object) as? [String: Any])?.keys.map { $0 } ?? [])
        }
        let reasons: Set = ["exhausted", "forceQuit", "cancelled", "unregistered"]
        let outcomes: Set = ["success", "failure", "expired", "interrupted", "cancelled", "lost"]
        #expect(
            names("tasks") == [
                "submitted", "refused", "replaced", "cancelled", "discarded", "results", "waiting", "inFlight",
            ]
        )
        #expect(
            names("tasks", "refused") == [
                "NotPermitted", "Unavailable", "NotForeground", "TooManyPendingTaskRequests", "ImmediateRunIneligible",
            ]
        )
        #expect(names("tasks", "discarded") == reasons && names("tasks", "results") == outcomes)
        #expect(
            names("sessions") == ["finished", "refused", "completed", "discarded", "results", "waiting", "inFlight"]
        )
        #expect(names("sessions", "discarded") == reasons && names("sessions", "results") == outcomes)
    }
}

import Foundation
import Glibc
import Testing

@Suite("The commands against a running gateway", .serialized, .timeLimit(.minutes(15)))
struct CommandTests {
    private let topic = "com.example.commands"
    private let token = String(repeating: "c0de", count: 16)

    @Test("A worker's command has the payload on standard input and the wake in its environment")
    func environment() throws {
        let gateway = try RunningGateway()
        let script = #"""
            cat; echo; echo "$WAKEGATE_WAKE|$WAKEGATE_DEVICE|$WAKEGATE_TOPIC|$WAKEGATE_ATTEMPT|$WAKEGATE_COALESCED"
            echo "$WAKEGATE_DEADLINE"
            """#
        let worker = try self.worker(gateway, script)
        let payload = #"{"aps":{"content-available":1},"n":[1,2]}"#
        let push = try gateway.wakegate("push", self.token, "--topic", self.topic, "--payload", "-", input: payload)
        #expect(push.status == 0)
        #expect(push.output.hasPrefix("200 launched"))
        let first = try #require(try worker.line())
        #expect(first.dropFirst(32) == " \(payload)")
        let fields = try #require(try worker.line()?.dropFirst(33)).split(separator: "|").map(String.init)
        #expect(fields[0].count == 32)
        #expect(first.hasPrefix(fields[0]))
        #expect(fields.dropFirst() == [self.token, self.topic, "1", "0"])
        let deadline = try #require(try worker.line().flatMap { Double($0.dropFirst(33)) })
        let left = deadline / 1000 - Date(timeIntervalSinceNow: 0).timeIntervalSince1970
        #expect((0...31).contains(left))
    }

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
        let many = try gateway.wakegate(
            "push",
            self.token,
            "--topic",
            self.topic,
            "--count",
            "250",
            "--gateway",
            url
        )
        #expect(many.status == 0, "\(many.errors)")
        #expect(many.output.contains("250 pushes: 249 coalesced, 1 scheduled"))
        for number in 1...3 {
            let token = String(repeating: "0\(number)", count: 32)
            #expect(try gateway.push(token, topic: self.topic).status == 200)
        }
        let line = ["worker", "--topic", self.topic, "--gateway", url, "--", "true"]
        let worker = try ChildProcess(RunningGateway.program, line, folder: gateway.folder)
        try gateway.eventually("four results") { try gateway.stats().integer("pushes", "completed") == 4 }
        worker.send(SIGTERM)
        #expect(try worker.finish().status == 0)
    }

    @Test("stats --json is the gateway's own answer; --device explains in a sentence")
    func stats() throws {
        let gateway = try RunningGateway()
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        let json = try gateway.wakegate("stats", "--json")
        #expect(json.status == 0)
        let object = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any]
        #expect((object?["pushes"] as? [String: Any])?["accepted"] as? Int == 1)
        let device = try gateway.wakegate("stats", "--device", self.token)
        #expect(device.status == 0)
        #expect(device.output.contains("wakegate worker --topic \(self.topic)"))
    }

    @Test("Devices are registered, held by their conditions, and removed")
    func devices() throws {
        let gateway = try RunningGateway()
        let registered = try gateway.wakegate("device", "register", self.token, "--topic", self.topic)
        #expect(registered.status == 0, "\(registered.errors)")
        let held = try gateway.wakegate("device", "conditions", self.token, "network=false")
        #expect(held.status == 0, "\(held.errors)")
        #expect(try gateway.push(self.token, topic: self.topic).headers["wakegate-held"] == "network")
        #expect(try gateway.wakegate("device", "remove", self.token).status == 0)
        let gone = try gateway.push(self.token, topic: self.topic)
        #expect(gone.status == 410)
        #expect(gone.reason == "Unregistered")
        #expect(gone.integer("timestamp") != nil)
    }

    /// Starts a `wakegate worker` that runs a shell script, and waits until it has subscribed.
    private func worker(_ gateway: RunningGateway, _ script: String) throws -> ChildProcess {
        let worker = try ChildProcess(
            RunningGateway.program,
            ["worker", "--topic", self.topic, "--", "bash", "-c", script],
            folder: gateway.folder
        )
        try gateway.eventually("a worker") { try gateway.stats().integer("workers", "connected") == 1 }
        return worker
    }
}

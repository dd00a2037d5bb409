import Foundation
import Testing

@Suite("What if the policy were another", .serialized, .timeLimit(.minutes(15)))
struct WhatIfTests {
    private let topic = "com.example.what.if"
    private let token = String(repeating: "0f1f", count: 16)

    @Test("Recorded pushes are replayed under another policy, and nothing of the device changes")
    func replay() throws {
        // Two seconds apart in force, so that three pushes in a row make two launches.
        let gateway = try RunningGateway(["--set", "policy.launchInterval=2"])
        let worker = try ChildProcess(
            RunningGateway.program,
            ["worker", "--topic", self.topic, "--", "true"],
            folder: gateway.folder
        )
        try gateway.eventually("a worker") { try gateway.stats().integer("workers", "connected") == 1 }
        for _ in 0..<3 { #expect(try gateway.push(self.token, topic: self.topic).status == 200) }
        try gateway.eventually("two launches") {
            let stats = try gateway.stats()
            return stats.integer("wakes", "launched") == 2 && stats.integer("pushes", "completed") == 2
        }
        let happened = try self.happened(gateway)
        let answer = try self.ask(gateway, #"{"policy":{"launchInterval":3600}}"#)
        #expect(answer.status == 200, "\(answer.body)")
        #expect(answer.integer("pushes") == 3 && answer.integer("assumed") == 0)
        #expect(answer.integer("policy", "launchInterval") == 2 && answer.integer("changes", "launchInterval") == 3600)
        for outcome in ["recorded", "replayed"] {
            #expect(answer.integer(outcome, "launched") == 2, "\(answer.body)")
            #expect(answer.integer(outcome, "completed") == 2 && answer.integer(outcome, "coalesced") == 1)
            let launches = answer.value(outcome, "launches") as? [[String: Any]]
            #expect(launches?.map { $0["result"] as? String } == ["newData", "newData"])
        }
        #expect(answer.integer("whatIf", "launched") == 1 && answer.integer("whatIf", "waiting") == 2)
        #expect(!happened.isEmpty)
        #expect(try self.happened(gateway) == happened)
        withExtendedLifetime(worker) {}
    }

    /// What happened to the device, without the moments: they are told by a wall clock that is read anew each time.
    private func happened(_ gateway: RunningGateway) throws -> [String] {
        let events = try gateway.admin("/v1/devices/\(self.token)").value("recent") as? [[String: Any]]
        return (events ?? []).map { "\($0["event"] ?? "") \($0["apnsID"] ?? "") \($0["detail"] ?? "")" }
    }

    @Test("Priority and lifetime of a push are recorded, and decide in the replay")
    func terms() throws {
        let gateway = try RunningGateway()
        let worker = try gateway.curlWorker(topic: self.topic)
        func push(_ fields: [String]) throws {
            let options = ["-H", "apns-topic: \(self.topic)", "-d", RunningGateway.payload] + fields
            let ended = try ChildProcess.run(
                "curl",
                gateway.curlOptions + options + ["https://\(gateway.edge)/3/device/\(self.token)"]
            )
            #expect(ended.status == 0, "\(ended.errors)")
        }
        try push(["-H", "apns-priority: 10"])
        try push(["-H", "apns-priority: 5", "-H", "apns-expiration: 0"])
        let answer = try self.ask(gateway, #"{"policy":{}}"#)
        // The first wake is in flight still, so that the second push came when it could not launch.
        #expect(answer.integer("replayed", "launched") == 1 && answer.integer("replayed", "discarded") == 1)
        #expect(answer.integer("recorded", "discarded") == 1, "\(answer.body)")
        withExtendedLifetime(worker) {}
    }

    @Test(
        "What cannot be tried is refused with the parameter and what it takes",
        arguments: [
            (#"{"policy":{"launchIntervall":1}}"#, "did you mean launchInterval?"),
            (#"{"policy":{"processingWindows":1}}"#, "did you mean processingWindow?"),
            (#"{"policy":{"continuedMax":0}}"#, "continuedMax is 0; it takes a whole number from 1 to 1000"),
            (#"{"policy":{"launchInterval":0}}"#, "launchInterval is 0; it takes a number of seconds"),
            (#"{"policy":{"maxAttempts":"many"}}"#, "maxAttempts is \"many\"; it takes a whole number"),
            (#"{"policies":{}}"#, "policies is not a member of a what-if"), (#"{}"#, "policy is missing"),
            ("[]", "not a JSON object"),
        ]
    )
    func refused(body: String, message: String) throws {
        let gateway = try RunningGateway()
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        let answer = try self.ask(gateway, body)
        #expect(answer.status == 400 && answer.reason == "BadPolicy")
        #expect((answer.value("message") as? String)?.contains(message) == true, "\(answer.body)")
    }

    @Test("A device without a push has nothing to replay; a device that nobody knows is 404")
    func nothing() throws {
        let gateway = try RunningGateway()
        #expect(try self.ask(gateway, #"{"policy":{}}"#).reason == "UnknownDevice")
        let registered = try gateway.edge("/v1/topics/\(self.topic)/devices", "-d", #"{"token":"\#(self.token)"}"#)
        #expect(registered.status == 201)
        let answer = try self.ask(gateway, #"{"policy":{}}"#)
        #expect(answer.integer("pushes") == 0 && answer.value("from") is NSNull)
        #expect(answer.integer("whatIf", "launched") == 0)
    }

    private func ask(_ gateway: RunningGateway, _ body: String) throws -> Answer {
        try gateway.admin("/v1/devices/\(self.token)/what-if", "-d", body)
    }
}

import Foundation
import Glibc
import Testing

@Suite("Fault rules that hold a client's bodies back", .serialized, .timeLimit(.minutes(15)))
struct FaultStallTests {
    /// Starts a client that pushes twice, the second time as described in `stalled_push.py`.
    private func client(_ faulty: FaultyGateway, _ end: String) throws -> ChildProcess {
        let arguments = [faulty.gateway.edge, faulty.gateway.certificateAuthority, faulty.topic, end]
        return try ChildProcess(client: "stalled_push.py", arguments)
    }

    /// Returns the number of sockets that the gateway has open.
    private func sockets(of faulty: FaultyGateway) throws -> Int {
        let folder = "/proc/\(faulty.gateway.process.identifier)/fd"
        return try FileManager.default.contentsOfDirectory(atPath: folder).filter { name in
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)")
            return target?.hasPrefix("socket:") == true
        }.count
    }

    @Test("A body beyond the window is held back until the rules are cleared, and then accepted")
    func untilCleared() throws {
        let faulty = try FaultyGateway("{ id: 'stall', when: { nth: 1 }, then: { streamWindow: 10 } }")
        let client = try self.client(faulty, "wait")
        #expect(try (0..<3).map { _ in try client.line() } == ["200", "window 10", "held 21"])
        #expect(try faulty.counts()["stall"] == FaultyGateway.Counts(matched: 1, fired: 1))
        #expect(try faulty.accepted() == 1)
        #expect(try faulty.gateway.admin("/v1/faults", "-X", "DELETE").status == 204)
        #expect(try (0..<3).map { _ in try client.line() } == ["open", "200", nil])
        #expect(try client.finish().status == 0)
        #expect(try faulty.accepted() == 2)
    }

    @Test("A stream window stays closed for its time, and then the stream resumes automatically")
    func timed() throws {
        let faulty = try FaultyGateway("{ when: { nth: 1 }, then: { streamWindow: { bytes: 0, for: 3000 } } }")
        let ended = try self.client(faulty, "wait").finish()
        #expect(ended.output == "200\nwindow 0\nheld 31\nopen\n200\n", "\(ended.errors)")
        #expect(try faulty.accepted() == 2)
    }

    @Test("Node is held back as well, and a stalled stream is ended by the request timeout")
    func bounded() throws {
        let faulty = try FaultyGateway(
            "{ when: { nth: 1 }, then: { streamWindow: 0 } }",
            set: "limits.requestSeconds=3"
        )
        #expect(try faulty.play(.node, pushes: 2) == [["200": 1], ["0": 1]])
        #expect(try faulty.gateway.stats().integer("limits", "requestSeconds") == 1)
        #expect(try faulty.accepted() == 1)
    }

    @Test("Nothing is left of clients that give up, before the window opens again and after")
    func givenUp() throws {
        let faulty = try FaultyGateway(
            "{ when: { from: 1, to: 7 }, then: { streamWindow: 0 } }",
            "{ when: { from: 8 }, then: { streamWindow: { bytes: 10, for: 1 } } }"
        )
        let before = try self.sockets(of: faulty)
        for _ in 0..<7 {
            let ended = try self.client(faulty, "give-up").finish()
            #expect(ended.output == "200\nwindow 0\nheld 31\n" && ended.status == 0, "\(ended.errors)")
        }
        try faulty.gateway.eventually("the ends of their connections") { try self.sockets(of: faulty) <= before }
        // Rules count pushes. The stalled requests never became pushes.
        #expect(try faulty.counts().values.map(\.matched).max() == 7)
        for index in 0..<3 {
            #expect(try faulty.gateway.push(FaultyGateway.device(index), topic: faulty.topic).status == 200)
        }
        #expect(try faulty.gateway.admin("/v1/faults", "-X", "DELETE").status == 204)
        #expect(try faulty.gateway.push(FaultyGateway.device(9), topic: faulty.topic).status == 200)
        #expect(try faulty.accepted() == 11)
        try faulty.gateway.eventually("the ends of all connections") { try self.sockets(of: faulty) <= before }
    }

    @Test("A client that is held back does not hold a shutdown up, and its push is refused as all are then")
    func shutdown() throws {
        let faulty = try FaultyGateway("{ when: { nth: 1 }, then: { streamWindow: 0 } }", set: "drainTimeout=600")
        let client = try self.client(faulty, "wait")
        #expect(try (0..<3).map { _ in try client.line() } == ["200", "window 0", "held 31"])
        faulty.gateway.process.send(SIGTERM)
        #expect(try (0..<3).map { _ in try client.line() } == ["open", "503", nil])
        #expect(try client.finish().status == 0)
        #expect(try faulty.gateway.process.finish().status == 0)
    }
}

@Suite("Real clients of APNs under faults", .serialized, .timeLimit(.minutes(15)))
struct FaultClientTests {
    private func client(_ name: String) throws -> ProviderClient {
        try #require(ProviderClient.withToken.first { $0.testDescription == name })
    }

    @Test("aioapns repeats a push whose answer was lost, and one that GOAWAY refused; each counts once")
    func repeated() throws {
        let faulty = try FaultyGateway(
            "{ id: 'lost', when: { nth: 1 }, then: { dropReply: 'close' } }",
            "{ id: 'refused', when: { nth: 3 }, then: { goaway: { inFlight: 'refuse' } } }"
        )
        #expect(try faulty.play(self.client("aioapns"), pushes: 2) == [["200": 1], ["200": 1]])
        let counts = FaultyGateway.Counts(matched: 4, fired: 1)
        #expect(try faulty.counts() == ["lost": counts, "refused": counts])
        #expect(try faulty.accepted() == 2)
    }

    @Test("Clients show their callers a 503 and a 429", arguments: ["kalyke", "pyapns2", "aioapns"])
    func refusals(name: String) throws {
        let faulty = try FaultyGateway(
            "{ when: { nth: 1 }, then: { reason: 'ServiceUnavailable' } }",
            "{ when: { nth: 2 }, then: { reason: 'TooManyRequests' } }"
        )
        let answers = try faulty.play(self.client(name), pushes: 3)
        #expect(answers == [["503 ServiceUnavailable": 1], ["429 TooManyRequests": 1], ["200": 1]])
        #expect(try faulty.rejected() == ["ServiceUnavailable": 1, "TooManyRequests": 1])
    }

    @Test("Node's session ends at GOAWAY, and the next push opens another")
    func node() throws {
        let faulty = try FaultyGateway("{ when: { nth: 2 }, then: { goaway: { inFlight: 'refuse' } } }")
        let answers = try faulty.play(.node, pushes: 3)
        #expect(answers == [["200": 1], ["0": 1], ["200": 1]])
        #expect(try faulty.accepted() == 2)
    }
}

@Suite("Fault rules from the command line and over the admin API", .serialized, .timeLimit(.minutes(15)))
struct FaultRouteTests {
    private let device = FaultyGateway.device(1)

    private func request(_ faulty: FaultyGateway, _ method: String, path: String = "", _ body: String) throws -> Answer
    {
        try faulty.gateway.admin("/v1/faults\(path)", "-X", method, "--data-binary", body)
    }

    private func reason(_ faulty: FaultyGateway) throws -> String {
        let answer = try faulty.gateway.push(self.device, topic: faulty.topic)
        return answer.status == 200 ? "200" : answer.reason ?? ""
    }

    @Test("Rules are added, listed with their counts, removed, replaced and cleared while the gateway runs")
    func life() throws {
        let faulty = try FaultyGateway()
        #expect(try faulty.gateway.admin("/v1/faults").body == #"{"rules":[]}"#)
        #expect(try self.reason(faulty) == "200")
        let first = try self.request(faulty, "POST", "{ times: 1, then: { reason: 'BadTopic' } } // JSON5")
        #expect(first.status == 201)
        #expect(first.body == #"{"id":"1","warnings":[]}"#)
        let second = try self.request(faulty, "POST", "{ id: 'own', then: { status: 500, reason: 'Own' } }")
        #expect(second.value("id") as? String == "own")
        #expect((second.value("warnings") as? [String])?.count == 1)
        #expect(try [self.reason(faulty), self.reason(faulty)] == ["BadTopic", "Own"])
        let list = #"""
            {"rules":[{"id":"1","matched":2,"fired":1,"spent":true,"rule":{"then":{"reason":"BadTopic"},"times":1}},\#
            {"id":"own","matched":2,"fired":1,"spent":false,\#
            "rule":{"id":"own","then":{"reason":"Own","status":500}}}]}
            """#
        #expect(try faulty.gateway.admin("/v1/faults").body == list)
        #expect(try self.request(faulty, "POST", path: "/reset", "").status == 204)
        #expect(try self.reason(faulty) == "BadTopic")
        #expect(try self.request(faulty, "DELETE", path: "/1", "").status == 204)
        #expect(try self.request(faulty, "DELETE", path: "/1", "").reason == "UnknownFaultRule")
        #expect(try self.reason(faulty) == "Own")
        let twice = try self.request(faulty, "POST", "{ id: 'own', then: { stuck: true } }")
        #expect(twice.status == 409)
        #expect(twice.reason == "FaultRuleExists")
        let replaced = try self.request(faulty, "PUT", "{ rules: [{ then: { reason: 'BadPriority' } }] }")
        #expect(replaced.status == 200)
        #expect(try self.reason(faulty) == "BadPriority")
        #expect(try faulty.counts() == ["1": FaultyGateway.Counts(matched: 1, fired: 1)])
        #expect(try self.request(faulty, "DELETE", "").status == 204)
        #expect(try self.reason(faulty) == "200")
        #expect(try faulty.accepted() == 2)
    }

    @Test("wakegate serve accepts no fault rules, on its command line or over the admin API")
    func serve() throws {
        let served = try ServedGateway()
        for (method, path) in [
            ("GET", ""), ("PUT", ""), ("POST", ""), ("DELETE", ""), ("DELETE", "/1"), ("POST", "/reset"),
        ] {
            let answer = try served.ask(.admin, method, "/v1/faults\(path)", body: "{}")
            #expect(answer.status == 403, "\(method) \(path)")
            #expect((answer.value("message") as? String)?.contains("`wakegate dev` alone takes them") == true)
        }
        let ended = try ChildProcess.wakegate(["serve", "--faults", "faults.json5"])
        #expect(ended.status == EX_USAGE)
        #expect(ended.errors.contains("unknown option --faults; `wakegate dev` alone takes it"), "\(ended.errors)")
        let set = try ChildProcess.wakegate(["serve", "--check", "--set", "faults=a", "--edge", "off"])
        #expect(set.status == EX_CONFIG)
    }

    @Test("wakegate faults shows, sets and clears the rules of the gateway that runs in this folder")
    func commands() throws {
        let faulty = try FaultyGateway()
        let file = faulty.gateway.folder.appendingPathComponent("next.json5")
        try Data("{ rules: [{ id: 'odd', when: { every: 2 }, times: 1, then: { status: 500, reason: 'Odd' } }] }".utf8)
            .write(to: file)
        #expect(try faulty.gateway.wakegate("faults", "list").output == "no fault rules\n")
        let set = try faulty.gateway.wakegate("faults", "set", "next.json5")
        #expect(set.status == 0)
        #expect(set.errors.contains("warning: rules[0].then.reason: \"Odd\" is not a reason of APNs"))
        #expect(try [self.reason(faulty), self.reason(faulty), self.reason(faulty)] == ["200", "Odd", "200"])
        let list = try faulty.gateway.wakegate("faults", "list")
        #expect(
            list.output == """
                id   matched  fired      rule
                odd  3        1 (spent)  when: {every: 2}, then: {reason: "Odd", status: 500}, times: 1

                """
        )
        #expect(try faulty.gateway.wakegate("faults", "list", "--json").output.hasPrefix(#"{"rules":[{"id":"odd""#))
        try Data("{ rules: [{ then: { evil: true } }] }".utf8).write(to: file)
        let refused = try faulty.gateway.wakegate("faults", "set", "next.json5")
        #expect(refused.status == 1)
        #expect(refused.errors.contains("400 BadFaults: rules[0].then.evil: is not a key"), "\(refused.errors)")
        #expect(try faulty.counts().keys.sorted() == ["odd"], "faulty rules change nothing")
        #expect(try faulty.gateway.wakegate("faults", "clear").status == 0)
        #expect(try faulty.gateway.wakegate("faults", "list").output == "no fault rules\n")
    }
}

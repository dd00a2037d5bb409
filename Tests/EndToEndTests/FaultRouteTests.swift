import Foundation
import Testing

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

    @Test("Faulty rules change nothing, and are told by the names of their keys")
    func faultyRules() throws {
        let faulty = try FaultyGateway("{ id: 'kept', then: { reason: 'BadTopic' } }")
        let answer = try self.request(
            faulty,
            "PUT",
            "{ rules: [{ then: { close: true } }, { then: { reson: 'BadTopic' } }] }"
        )
        #expect(answer.status == 400)
        #expect(answer.reason == "BadFaults")
        #expect(answer.value("message") as? String == "rules[1].then.reson: is not a key; did you mean reason?")
        #expect(try self.request(faulty, "POST", "{ then: { stuck: 1 } }").reason == "BadFaults")
        #expect(try self.request(faulty, "POST", "nonsense").reason == "BadFaults")
        // An argument cannot be so long.
        let file = faulty.gateway.folder.appendingPathComponent("long.json5")
        try Data(repeating: UInt8(ascii: " "), count: 262_145).write(to: file)
        #expect(try self.request(faulty, "PUT", "@\(file.path)").status == 413)
        #expect(try faulty.counts().keys.sorted() == ["kept"])
        #expect(try self.reason(faulty) == "BadTopic")
    }

    @Test("wakegate serve takes no fault rules, on its command line or over the admin API")
    func serve() throws {
        let served = try ServedGateway()
        for (method, path) in [
            ("GET", ""), ("PUT", ""), ("POST", ""), ("DELETE", ""), ("DELETE", "/1"), ("POST", "/reset"),
        ] {
            let answer = try served.ask(.admin, method, "/v1/faults\(path)", body: "{}")
            #expect(answer.status == 403, "\(method) \(path)")
            #expect((answer.value("message") as? String)?.contains("`wakegate dev` alone takes them") == true)
        }
        let ended = try ChildProcess.run(RunningGateway.program, ["serve", "--faults", "faults.json5"])
        #expect(ended.status == 64)
        #expect(ended.errors.contains("unknown option --faults; `wakegate dev` alone takes it"), "\(ended.errors)")
        let set = try ChildProcess.run(
            RunningGateway.program,
            ["serve", "--check", "--set", "faults=a", "--edge", "off"]
        )
        #expect(set.status == 78)
    }

    @Test("A file of rules that has faults ends the start with all of them")
    func badFile() throws {
        let folder = try RestartFolder()
        let file = folder.folder.appendingPathComponent("faults.json5")
        try Data("{ rules: [{ when: { evry: 2 }, then: { reset: 'CANCLE' } }] }".utf8).write(to: file)
        let ended = try folder.startInVain(["dev", "--faults", file.path])
        #expect(ended.status == 78)
        #expect(ended.errors.contains("the fault rules have 2 faults:"), "\(ended.errors)")
        #expect(ended.errors.contains("rules[0].when.evry: is not a key; did you mean every?"))
        #expect(ended.errors.contains("rules[0].then.reset: is \"CANCLE\"; did you mean CANCEL?"))
        let missing = try folder.startInVain(["dev", "--faults", "nowhere.json5"])
        #expect(missing.status == 78)
        #expect(missing.errors.contains("nowhere.json5: cannot be read (no such file)"), "\(missing.errors)")
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
        #expect(set.errors.contains("warning: rules[0].then.reason: \"Odd\" is no reason of APNs"))
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
        #expect(try faulty.gateway.wakegate("faults", "clear").status == 0)
        #expect(try faulty.gateway.wakegate("faults", "list").output == "no fault rules\n")
    }
}

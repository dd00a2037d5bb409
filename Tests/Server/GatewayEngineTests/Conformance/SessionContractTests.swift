import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The contract of an engine: finished transfers of sessions", .timeLimit(.minutes(15)))
struct SessionContractTests {
    @Test(
        "A session's wake stands for what finished until it launched, and is retried as a push",
        arguments: EngineKind.all
    )
    func counts(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask {
            $0.register(1, 1)
            $0.finish(2, 1, "uploads", 3, id: "one")
            $0.finish(3, 1, "uploads", 3, id: "one")
            $0.finish(4, 1, "uploads", 4)
            $0.listTasks(5, 1)
        }
        #expect((2...4).map { contract.answer($0) } == ["202", "202", "202"])
        #expect(contract.member(5, "waiting", "0", "session") == "uploads")
        #expect(contract.member(5, "waiting", "0", "count") == "7")
        contract.ask { $0.subscribe(6, sessions: ["up.*", "uploads"]) }
        let wake = try contract.lastWake()
        #expect(wake.kind == .urlSession && wake.name == "uploads" && wake.text.contains(#""count":7"#))
        contract.ask {
            $0.finish(7, 1, "uploads")
            $0.report(8, wake.id, TaskResult.failure)
        }
        contract.pass(seconds: 60)
        let again = try contract.lastWake()
        #expect(again.text.contains(#""count":8"#))
        contract.ask { $0.report(9, again.id, TaskResult.success) }
        let sessions = try contract.books().sessions
        #expect((sessions.finished, sessions.completed, sessions.waiting, sessions.inFlight) == (8, 8, 0, 0))
        #expect(sessions.finished == sessions.accountedFor)
    }

    @Test("A session's wake spends a launch of the day, and waits for one like a push", arguments: EngineKind.all)
    func budget(kind: EngineKind) throws {
        let contract = try EngineContract(kind) {
            $0 = EngineRig.open(EngineContract.policy + [(.dailyLaunches, 2), (.budgetWindow, 3600)])
        }
        contract.ask {
            $0.register(1, 1)
            $0.subscribe(2, sessions: ["uploads"])
        }
        for number in 1...2 {
            contract.ask { $0.finish(10 + number, 1, "uploads") }
            let wake = try contract.lastWake()
            #expect(wake.kind == .urlSession && wake.name == "uploads")
            contract.ask { $0.report(20 + number, wake.id, TaskResult.success) }
            contract.pass(seconds: 60)
        }
        contract.ask { $0.finish(30, 1, "uploads", 5) }
        // An hour after the first launch there is one again.
        contract.pass(seconds: 3600 - 121)
        var sessions = try contract.books().sessions
        #expect((sessions.completed, sessions.waiting, sessions.inFlight) == (2, 5, 0))
        contract.pass(seconds: 1)
        sessions = try contract.books().sessions
        #expect((sessions.completed, sessions.waiting, sessions.inFlight) == (2, 0, 5))
        #expect(try contract.lastWake().text.contains(#""count":5"#))
    }

    @Test("A ninth session is refused, and a session needs no permission", arguments: EngineKind.all)
    func ninth(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { requests in
            requests.register(1, 1)
            for number in 1...9 { requests.finish(10 + number, 1, "s\(number)") }
            requests.finish(20, 1, "s1")
        }
        #expect((11...18).allSatisfy { contract.answer($0) == "202" })
        #expect(contract.answer(19) == "409 TooManySessions" && contract.answer(20) == "202")
        let sessions = try contract.books().sessions
        #expect(sessions.finished == 9 && sessions.refused == 1 && sessions.waiting == 9)
    }
}

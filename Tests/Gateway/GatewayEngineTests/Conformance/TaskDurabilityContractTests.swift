import DeviceEngine
import EngineRoom
import LaunchPolicy
import Testing
import WakeFormat
import WakeGateTestKit

@Suite("The contract of an engine that keeps something: background tasks", .timeLimit(.minutes(15)))
struct TaskDurabilityContractTests {
    private func contract(_ kind: EngineKind) throws -> EngineContract {
        let contract = try EngineContract(kind) { $0.permittedTasks = .all }
        contract.ask { $0.register(900, 1) }
        return contract
    }

    @Test("A submission is answered only when it is durable", arguments: EngineKind.onCommand)
    func durableFirst(kind: EngineKind) throws {
        let contract = try self.contract(kind)
        contract.step { $0.submit(1, 1, "a") }
        contract.step { $0.finish(2, 1, "s") }
        #expect(contract.answer(1).isEmpty && contract.answer(2).isEmpty)
        try contract.restart()
        contract.ask { $0.listTasks(3, 1) }
        #expect(contract.text(3) == #"{"waiting":[],"running":[]}"#)
        contract.ask { $0.submit(4, 1, "a") }
        #expect(contract.answer(4) == "201")
    }

    @Test(
        "What was submitted is there after a restart, what ran is lost and launches again",
        arguments: EngineKind.keeping
    )
    func restart(kind: EngineKind) throws {
        let contract = try self.contract(kind)
        contract.ask {
            $0.subscribe(1, tasks: ["refresh"])
            $0.submit(2, 1, "refresh")
            $0.submit(3, 1, "clean", .processing(.externalPower), earliestBegin: contract.wall + 60_000)
            $0.finish(4, 1, "uploads", 5, id: "one")
        }
        let wake = try contract.lastWake()
        try contract.restart()
        contract.ask {
            $0.report(5, wake.id, TaskResult.success)
            $0.finish(6, 1, "uploads", 5, id: "one")
            $0.listTasks(7, 1)
        }
        #expect(contract.answer(5) == "409 WakeEnded" && contract.answer(6) == "202")
        #expect(contract.member(7, "running") == "a list" && contract.member(7, "running", "0").isEmpty)
        contract.ask { $0.subscribe(8, tasks: ["refresh"]) }
        let again = try contract.lastWake()
        #expect(again.name == "refresh" && again.id != wake.id && again.attempt == 1, "the attempt does not count")
        let books = try contract.books()
        #expect(books.requestResults(.lost) == 1 && books.requests.waiting.sum == 1)
        #expect(books.requests.submitted.sum == books.requestsAccountedFor)
        #expect(books.sessions.finished == 5 && books.sessions.finished == books.sessions.accountedFor)
    }

    @Test("A continued task goes on after a restart from what it told last", arguments: EngineKind.keeping)
    func resumed(kind: EngineKind) throws {
        let contract = try self.contract(kind)
        contract.ask {
            $0.conditions(1, 1) { $0.appState = .active }
            $0.subscribe(2, tasks: ["export"])
            $0.submit(3, 1, "export", .continued(.queue), details: TaskDetails(title: "Export"))
        }
        let wake = try contract.lastWake()
        contract.ask { $0.progress(4, wake.id, 40) }
        contract.pass(seconds: 2)
        try contract.restart()
        contract.ask { $0.subscribe(5, tasks: ["export"]) }
        let again = try contract.lastWake()
        #expect(again.text.contains(#""title":"Export","resumedFrom":{"completed":40,"total":100}"#), "\(again.text)")
    }

    @Test("A continued task that told nothing launches again after restarts from null", arguments: EngineKind.keeping)
    func resumedFromNothing(kind: EngineKind) throws {
        let contract = try self.contract(kind)
        contract.ask {
            $0.conditions(1, 1) { $0.appState = .active }
            $0.subscribe(2, tasks: ["export"])
            $0.submit(3, 1, "export", .continued(.queue))
        }
        let first = try contract.lastWake()
        #expect(!first.text.contains("resumedFrom"))
        var ids = [first.id]
        for request in 4...5 {
            try contract.restart()
            contract.ask { $0.subscribe(request, tasks: ["export"]) }
            let again = try contract.lastWake()
            #expect(again.attempt == 1 && again.text.contains(#""resumedFrom":null"#), "\(again.text)")
            ids.append(again.id)
        }
        #expect(Set(ids).count == 3)
    }

    @Test(
        "After a failed commit requests are refused, and lists show what is durable",
        arguments: EngineKind.keepingAlone
    )
    func failedCommit(kind: EngineKind) throws {
        let contract = try self.contract(kind)
        contract.ask { $0.submit(1, 1, "a") }
        contract.failNextCommit()
        contract.step { $0.submit(2, 1, "b", .processing([])) }
        contract.settle()
        #expect(contract.answer(2) == "503 ServiceUnavailable")
        contract.ask {
            $0.submit(3, 1, "c", .processing([]))
            $0.cancel(4, 1, "a")
            $0.finish(5, 1, "s")
            $0.listTasks(6, 1)
            $0.allTasks(7)
        }
        for request in 3...5 { #expect(contract.answer(request) == "503 ServiceUnavailable", "\(request)") }
        #expect(contract.member(6, "waiting", "0", "identifier") == "a")
        #expect(contract.member(6, "waiting", "1").isEmpty)
        #expect(contract.member(7, "tasks", "0", "identifier") == "a")
    }
}

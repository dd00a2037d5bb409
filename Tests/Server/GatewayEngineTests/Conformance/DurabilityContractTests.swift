import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The contract of an engine that keeps something: failures and restarts", .timeLimit(.minutes(15)))
struct DurabilityContractTests {
    @Test(
        "After a failed commit everybody who waits is refused once, and nothing goes on",
        arguments: EngineKind.keepingAlone
    )
    func failedCommit(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.subscribe(1, slots: 2) }
        contract.ask { $0.push(2, 1) }
        let wake = try contract.lastWake()
        contract.failNextCommit()
        contract.step {
            $0.push(3, 2)
            $0.report(4, wake.id, .newData)
            $0.register(5, 3)
            $0.explain(6, 1)
        }
        contract.step {
            $0.push(7, 4)
            $0.conditions(8, 1) { $0.charging = true }
        }
        contract.settle()
        #expect(contract.word(3) == "ServiceUnavailable" && contract.word(7) == "ServiceUnavailable")
        for request in [4, 5, 6, 8] { #expect(contract.answer(request) == "503 ServiceUnavailable", "\(request)") }
        #expect(contract.wakes.count == 1 && contract.released(1).isEmpty, "what was not durable has not happened")

        contract.ask {
            $0.push(9, 1)
            $0.report(10, wake.id, .newData)
            $0.subscribe(11)
            $0.readiness(12)
            $0.topics(13)
        }
        #expect(contract.word(9) == "ServiceUnavailable")
        for request in 10...12 { #expect(contract.answer(request) == "503 ServiceUnavailable", "\(request)") }
        #expect(contract.answer(13) == "200", "it is answered from what is durable")
        contract.pass(seconds: 120)
        #expect(contract.wakes.count == 1)
        for request in 1...13 { #expect(contract.answerCount(request) == 1, "request \(request)") }
        let statistics = try contract.statistics()
        let books = statistics.books
        #expect((books.accepted, books.inFlight, books.completed) == (1, 1, 0) && books.accepted == books.accountedFor)
        #expect(statistics.rejected[APNSReason.serviceUnavailable.index] == 3)
        #expect(statistics.workers.connected == 1, "the workers there were")
    }

    @Test(
        "A commit that a shared store refuses is refused once to everybody in it, and others go on",
        arguments: EngineKind.sharing
    )
    func refusedCommit(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.subscribe(1, slots: 2) }
        contract.ask { $0.push(2, 1) }
        let wake = try contract.lastWake()
        contract.failNextCommit()
        contract.ask {
            $0.push(3, 2)
            $0.report(4, wake.id, .newData)
            $0.register(5, 3)
        }
        #expect(contract.word(3) == "ServiceUnavailable")
        for request in [4, 5] { #expect(contract.answer(request) == "503 ServiceUnavailable", "\(request)") }
        #expect(contract.wakes.count == 1 && contract.released(1).isEmpty, "what was not durable has not happened")
        contract.ask {
            $0.push(6, 2)
            $0.report(7, wake.id, .newData)
            $0.register(8, 3)
            $0.readiness(9)
        }
        #expect(contract.word(6) == "launched" && contract.answer(7) == "204")
        #expect(contract.answer(8) == "201" && contract.answer(9) == "200")
        #expect(contract.wakes.count == 2 && contract.released(1) == [wake.id])
        for request in 1...9 { #expect(contract.answerCount(request) == 1, "request \(request)") }
        let statistics = try contract.statistics()
        #expect((statistics.books.accepted, statistics.books.inFlight, statistics.books.completed) == (2, 1, 1))
        #expect(statistics.rejected[APNSReason.serviceUnavailable.index] == 1)
    }

    @Test(
        "What was answered is there after a restart, wakes are launched again as if they had not been",
        arguments: EngineKind.keeping
    )
    func restart(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.subscribe(1, slots: 1) }
        contract.ask {
            $0.push(2, 1)
            $0.push(3, 2)
            $0.push(4, 2)
        }
        let wake = try contract.lastWake()
        try contract.restart()
        var books = try contract.books()
        #expect((books.accepted, books.inFlight, books.pending, books.coalesced) == (3, 0, 2, 1))
        #expect((books.launched, books.results[.lost]) == (1, 1))
        contract.ask { $0.report(5, wake.id, .newData) }
        #expect(contract.answer(5) == "409 WakeEnded")
        contract.ask { $0.subscribe(6, slots: 4) }
        let again = contract.wakes.dropFirst()
        #expect(Set(again.map(\.push)) == [EngineRig.apnsID(2), EngineRig.apnsID(4)])
        #expect(again.allSatisfy { $0.attempt == 1 && $0.stream == 6 })
        contract.ask { requests in
            for (number, wake) in again.enumerated() { requests.report(10 + number, wake.id, .newData) }
        }
        books = try contract.books()
        #expect((books.completed, books.coalesced, books.pending, books.inFlight) == (2, 1, 0, 0))
        #expect(contract.answerCount(2) == 1, "nobody is answered by the next process")
    }

    @Test("What ended before a restart has ended, and what a device reported holds", arguments: EngineKind.keeping)
    func ended(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.subscribe(1) }
        contract.ask { $0.push(2, 1) }
        let wake = try contract.lastWake()
        contract.ask {
            $0.report(3, wake.id, .newData)
            $0.register(4, 2)
            $0.conditions(5, 2) { $0.network = false }
            $0.rejected(.badTopic)
        }
        contract.pass(seconds: 2)
        try contract.restart()
        contract.ask {
            $0.report(6, wake.id, .newData)
            $0.report(7, wake.id, .failed)
            $0.push(8, 2)
            $0.subscribe(9)
        }
        #expect(contract.answer(6) == "204" && contract.answer(7) == "409 WakeEnded")
        #expect(contract.reply(8)?.hold == "network" && contract.wakes.count == 1)
        let statistics = try contract.statistics()
        #expect((statistics.books.completed, statistics.books.registered) == (1, 2))
        #expect(statistics.rejected[APNSReason.badTopic.index] == 1)
    }

    @Test(
        "A process that dies before the commit leaves no trace of what it was to tell",
        arguments: EngineKind.onCommand
    )
    func diesBeforeCommit(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.subscribe(1) }
        contract.ask { $0.push(2, 1) }
        contract.step { $0.push(3, 2) }
        contract.step { $0.push(4, 3) }
        try contract.restart()
        #expect(contract.answerCount(3) + contract.answerCount(4) == 0)
        let books = try contract.books()
        #expect((books.accepted, books.pending, books.registered) == (1, 1, 1))
    }

    @Test("Who is told to stop makes durable what was taken", arguments: EngineKind.keeping)
    func finishes(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.step { $0.push(1, 1) }
        contract.step { $0.push(2, 2) }
        contract.finish()
        #expect(contract.word(1) == "scheduled" && contract.word(2) == "scheduled")
        try contract.restart()
        #expect(try contract.books().pending == 2)
    }
}

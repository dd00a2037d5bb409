import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The contract of a durable engine: failures and restarts", .timeLimit(.minutes(15)))
struct DurabilityContractTests {
    @Test(
        "After a failed commit every waiting request is refused once, and nothing continues",
        arguments: EngineKind.keepingAlone
    )
    func failedCommit(kind: EngineKind) throws {
        let (contract, wake) = try EngineContract.launched(kind, slots: 2)
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
        let refused = contract.answered.filter { $0 == 4 || $0 == 8 }
        #expect(kind.sharesStore || refused == [4, 8], "later requests are refused after those in the commit")
        #expect(contract.wakes.count == 1 && contract.released(1).isEmpty, "undurable changes have not happened")

        contract.ask {
            $0.push(9, 1)
            $0.report(10, wake.id, .newData)
            $0.subscribe(11)
            $0.readiness(12)
            $0.topics(13)
            $0.metrics(14)
            $0.explain(15, 1)
        }
        #expect(contract.word(9) == "ServiceUnavailable")
        for request in 10...12 { #expect(contract.answer(request) == "503 ServiceUnavailable", "\(request)") }
        #expect(contract.answer(13) == "200", "the answer has the durable state")
        let reading = try MetricsReading(contract.text(14))
        #expect(reading["wakegate_store_failed"] == 1 && reading["wakegate_pushes_unaccounted"] == 0)
        #expect(reading["wakegate_pushes_accepted_total"] == 1)
        let events = (0...3).map { contract.member(15, "recent", "\($0)", "event") }
        #expect(events == ["launch", "push", "registered", ""], "the history has only durable events")
        contract.pass(seconds: 120)
        #expect(contract.wakes.count == 1)
        for request in 1...15 { #expect(contract.answerCount(request) == 1, "request \(request)") }
        let statistics = try contract.statistics()
        let counters = try contract.counters()
        #expect((counters.accepted, counters.inFlight, counters.completed) == (1, 1, 0))
        #expect(statistics.rejected[APNSReason.serviceUnavailable.index] == 3)
        #expect(statistics.workers.connected == 1, "the workers there were")
    }

    @Test(
        "A commit that a shared store refuses is refused once to each request in it, and others continue",
        arguments: EngineKind.sharing
    )
    func refusedCommit(kind: EngineKind) throws {
        let (contract, wake) = try EngineContract.launched(kind, slots: 2)
        contract.failNextCommit()
        contract.ask {
            $0.push(3, 2)
            $0.report(4, wake.id, .newData)
            $0.register(5, 3)
        }
        #expect(contract.word(3) == "ServiceUnavailable")
        for request in [4, 5] { #expect(contract.answer(request) == "503 ServiceUnavailable", "\(request)") }
        #expect(contract.wakes.count == 1 && contract.released(1).isEmpty, "undurable changes have not happened")
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
        #expect(
            (statistics.counters.accepted, statistics.counters.inFlight, statistics.counters.completed) == (2, 1, 1)
        )
        #expect(statistics.rejected[APNSReason.serviceUnavailable.index] == 1)
    }

    @Test(
        "Answered pushes survive a restart, and their wakes launch again without counting an attempt",
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
        var counters = try contract.counters()
        #expect((counters.accepted, counters.inFlight, counters.pending, counters.coalesced) == (3, 0, 2, 1))
        #expect((counters.launched, counters.results[.lost]) == (1, 1))
        contract.ask { $0.report(5, wake.id, .newData) }
        #expect(contract.answer(5) == "409 WakeEnded")
        contract.ask { $0.subscribe(6, slots: 4) }
        let again = contract.wakes.dropFirst()
        #expect(Set(again.map(\.push)) == [EngineRig.apnsID(2), EngineRig.apnsID(4)])
        #expect(again.allSatisfy { $0.attempt == 1 && $0.stream == 6 })
        #expect(again.map(\.coalesced).sorted() == [0, 1], "the newest stands for the other")
        contract.ask { requests in
            for (number, wake) in again.enumerated() { requests.report(10 + number, wake.id, .newData) }
        }
        counters = try contract.counters()
        #expect((counters.completed, counters.coalesced, counters.pending, counters.inFlight) == (2, 1, 0, 0))
        #expect(contract.answerCount(2) == 1, "the next process answers no request of the previous one")
    }

    @Test("Ended wakes and reported conditions survive a restart", arguments: EngineKind.keeping)
    func ended(kind: EngineKind) throws {
        let (contract, wake) = try EngineContract.launched(kind)
        contract.ask {
            $0.report(3, wake.id, .newData)
            $0.register(4, 2)
            $0.conditions(5, 2) { $0.network = false }
        }
        // Counted alone, without a change of a device.
        contract.ask { $0.rejected(.badTopic) }
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
        #expect((statistics.counters.completed, statistics.counters.registered) == (1, 2))
        #expect(statistics.rejected[APNSReason.badTopic.index] == 1)
    }

    @Test(
        "A process that dies before the commit leaves no trace of unanswered pushes and submissions",
        arguments: EngineKind.onCommand
    )
    func diesBeforeCommit(kind: EngineKind) throws {
        let (contract, _) = try EngineContract.launched(kind) { $0.permittedTasks = .all }
        contract.step {
            $0.push(3, 2)
            $0.submit(4, 1, "a")
        }
        contract.step {
            $0.push(5, 3)
            $0.finish(6, 1, "s")
        }
        try contract.restart()
        for request in 3...6 { #expect(contract.answerCount(request) == 0, "request \(request)") }
        let counters = try contract.counters()
        #expect((counters.accepted, counters.pending, counters.registered) == (1, 1, 1))
        #expect(counters.requests.submitted.sum == 0 && counters.sessions.finished == 0)
    }

    @Test("A stopping engine makes accepted work durable", arguments: EngineKind.keeping)
    func finishes(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.step { $0.push(1, 1) }
        contract.step { $0.push(2, 2) }
        contract.finish()
        #expect(contract.word(1) == "scheduled" && contract.word(2) == "scheduled")
        try contract.restart()
        #expect(try contract.counters().pending == 2)
    }
}

@Suite("The contract of a durable engine: background tasks", .timeLimit(.minutes(15)))
struct TaskDurabilityContractTests {
    @Test(
        "Submitted tasks survive a restart; a running task is lost and launches again",
        arguments: EngineKind.keeping
    )
    func restart(kind: EngineKind) throws {
        let contract = try taskContract(kind)
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
        #expect(contract.text(7).contains(#""session":"uploads""#) && contract.text(7).contains(#""count":5"#))
        contract.ask { $0.subscribe(8, tasks: ["refresh"]) }
        let again = try contract.lastWake()
        #expect(again.name == "refresh" && again.id != wake.id && again.attempt == 1, "the attempt does not count")
        let counters = try contract.counters()
        #expect(counters.requestResults(.lost) == 1 && counters.requests.waiting.sum == 1)
        #expect(counters.sessions.finished == 5)
    }

    @Test(
        "After a failed commit requests are refused, and lists show the durable state",
        arguments: EngineKind.keepingAlone
    )
    func failedCommit(kind: EngineKind) throws {
        let contract = try taskContract(kind)
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

    @Test(
        "After a restart a continued task resumes from its last reported progress, or from null",
        arguments: EngineKind.keeping
    )
    func resumed(kind: EngineKind) throws {
        let (contract, _) = try self.running(kind)
        #expect(try self.resumes(contract, from: "null"))
        let wake = try contract.lastWake()
        contract.ask { $0.progress(4, wake.id, 40) }
        contract.pass(seconds: 2)
        #expect(try self.resumes(contract, from: #"{"completed":40,"total":100}"#))
        #expect(try contract.lastWake().text.contains(#""title":"Export","resumedFrom":"#))
    }

    /// Returns an engine with a running continued task, and its wake.
    private func running(_ kind: EngineKind) throws -> (contract: EngineContract, wake: ReceivedWake) {
        let contract = try taskContract(kind)
        contract.ask {
            $0.conditions(1, 1) { $0.appState = .active }
            $0.subscribe(2, tasks: ["export"])
            $0.submit(3, 1, "export", .continued(.queue), details: TaskDetails(title: "Export"))
        }
        contract.pass(seconds: 1)
        return (contract, try contract.lastWake())
    }

    /// Returns true if a continued task launched after a restart reports that it resumes from this progress.
    private func resumes(_ contract: EngineContract, from progress: String) throws -> Bool {
        try contract.restart()
        contract.ask { $0.subscribe(90, tasks: ["export"]) }
        return try contract.lastWake().text.contains(#""resumedFrom":"# + progress)
    }

    @Test(
        "Progress is answered before it is durable, and is durable within a second or when the gateway ends",
        arguments: EngineKind.keepingAlone
    )
    func lazyProgress(kind: EngineKind) throws {
        let (early, wake) = try self.running(kind)
        early.step { $0.progress(4, wake.id, 40) }
        #expect(early.answer(4) == "200")
        #expect(early.wait < 1000, "the engine sleeps past the time at which progress must be stored")
        early.pass(milliseconds: 500)
        early.ask { $0.listTasks(5, 1) }
        #expect(early.member(5, "running", "0", "progress", "completed") == "40", "it counts at once")
        #expect(try self.resumes(early, from: "null"), "and is not yet stored")

        let (late, other) = try self.running(kind)
        for completed in 1...9 as ClosedRange<UInt64> {
            late.step { $0.progress(10 + Int(completed), other.id, completed) }
        }
        let wait = late.wait
        late.pass(milliseconds: wait)
        late.pass(milliseconds: 999 - wait)
        #expect(try self.resumes(late, from: #"{"completed":9,"total":100}"#))

        let (ended, last) = try self.running(kind)
        ended.step { $0.progress(4, last.id, 40) }
        ended.finish()
        #expect(try self.resumes(ended, from: #"{"completed":40,"total":100}"#))
    }
}

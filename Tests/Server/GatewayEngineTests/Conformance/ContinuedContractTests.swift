import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

/// The rules for continued tasks in every engine: the caller and time of a start, the tasks that may run at the same
/// time, and the end of a task.
@Suite("The contract of an engine: continued tasks", .timeLimit(.minutes(15)))
struct ContinuedContractTests {
    /// Returns an engine with an active device, and a stream 1 that accepts continued tasks.
    private func contract(_ kind: EngineKind, continuedMax: Double = 1) throws -> EngineContract {
        let contract = try taskContract(kind, [(.continuedMax, continuedMax)])
        contract.ask { $0.conditions(901, 1) { $0.appState = .active } }
        contract.ask { $0.subscribe(1, tasks: ["export.*"]) }
        return contract
    }

    @Test("A continued task starts only in the foreground, and continues in the background", arguments: EngineKind.all)
    func foreground(kind: EngineKind) throws {
        let contract = try self.contract(kind)
        let details = TaskDetails(title: "A", subtitle: "a")
        contract.ask { $0.submit(2, 1, "export.a", .continued(.queue), details: details) }
        contract.ask { $0.submit(3, 1, "export.b", .continued(.queue)) }
        contract.ask { $0.conditions(4, 1) { $0.appState = .background } }
        contract.ask { $0.submit(5, 1, "export.c", .continued(.queue)) }
        #expect(contract.answer(5) == "409 NotForeground")
        let wake = try contract.lastWake()
        #expect(wake.text.contains(#""task":"export.a""#) && wake.text.contains(#""title":"A","subtitle":"a""#))
        // A pending task does not need the foreground again.
        contract.ask { $0.report(6, wake.id, TaskResult.success) }
        #expect(try contract.lastWake().text.contains(#""task":"export.b""#))
        contract.ask { $0.explain(7, 1) }
        #expect(Int64(contract.member(7, "usage", "lastUse")) != nil)
        #expect(contract.member(7, "usage", "habitualHours") == "a list")
    }

    @Test("A continued task that cannot launch yet waits, or is refused by its strategy", arguments: EngineKind.all)
    func strategies(kind: EngineKind) throws {
        let contract = try self.contract(kind)
        contract.ask { $0.submit(2, 1, "other", .continued(.fail)) }
        #expect(contract.answer(2) == "409 ImmediateRunIneligible", "no stream takes it")
        contract.ask { $0.submit(3, 1, "export.a", .continued(.fail)) }
        contract.ask { $0.submit(4, 1, "export.b", .continued(.fail)) }
        contract.ask { $0.submit(5, 1, "export.c", .continued(.queue)) }
        contract.ask { $0.submit(6, 1, "export.d", .continued(.queue)) }
        #expect(contract.text(3).contains(#""disposition":"launched""#))
        #expect(contract.answer(4) == "409 ImmediateRunIneligible")
        #expect(contract.text(5).contains(#""disposition":"scheduled""#))
        var names: [String] = []
        for request in 7...9 {
            let wake = try contract.lastWake()
            names += ["export.a", "export.c", "export.d"].filter { wake.text.contains(#""task":"\#($0)""#) }
            contract.ask { $0.report(request, wake.id, TaskResult.success) }
        }
        #expect(names == ["export.a", "export.c", "export.d"])
    }

    @Test(
        "A critical temperature and a force quit end a running task, with the reason",
        arguments: EngineKind.all
    )
    func interrupted(kind: EngineKind) throws {
        let contract = try self.contract(kind)
        contract.ask { $0.submit(2, 1, "export.a", .continued(.queue)) }
        contract.ask { $0.conditions(3, 1) { $0.thermalState = .serious } }
        let hot = try contract.lastWake()
        #expect(contract.expired(1).isEmpty, "serious heat does not interrupt")
        contract.ask { $0.conditions(4, 1) { $0.thermalState = .critical } }
        #expect(contract.expired(1) == [hot.id] && contract.expirations(1) == [.conditions])
        contract.ask { $0.submit(5, 1, "export.b", .continued(.queue)) }
        contract.ask { $0.submit(6, 1, "export.c", .continued(.fail)) }
        #expect(contract.text(5).contains(#""held":"thermal""#) && contract.answer(6) == "409 ImmediateRunIneligible")
        contract.ask { $0.conditions(7, 1) { $0.thermalState = .nominal } }
        let next = try contract.lastWake()
        contract.ask { $0.submit(8, 1, "export.d", .continued(.queue)) }
        contract.ask { $0.conditions(9, 1) { $0.appState = .forceQuit } }
        #expect(contract.expired(1) == [hot.id, next.id] && contract.expirations(1) == [.conditions, .conditions])
        let counters = try contract.counters()
        #expect(counters.requestResults(.interrupted) == 2 && counters.requests.discarded[.forceQuit] == 1)
        #expect(counters.requests.waiting.sum == 0 && counters.requests.inFlight.sum == 0)
    }

    /// Returns three continued tasks in flight on one stream; the first has advanced most.
    private func pressed(_ kind: EngineKind, last: TaskSubmission.Strategy) throws -> (EngineContract, [WakeID]) {
        let contract = try self.contract(kind, continuedMax: 3)
        contract.ask { $0.submit(2, 1, "export.a", .continued(.queue)) }
        contract.ask { $0.submit(3, 1, "export.b", .continued(.queue)) }
        contract.ask { $0.submit(4, 1, "export.c", .continued(last)) }
        let wakes = contract.wakes.map(\.id)
        try #require(wakes.count == 3)
        contract.ask { $0.progress(5, wakes[0], 3, of: 4) }
        contract.ask { $0.progress(6, wakes[1], 1, of: 4) }
        return (contract, wakes)
    }

    @Test("Critical memory pressure ends the least advanced task first, one by one", arguments: EngineKind.all)
    func pressure(kind: EngineKind) throws {
        let (contract, wakes) = try self.pressed(kind, last: .fail)
        contract.ask { $0.conditions(10, 1) { $0.memoryPressure = .warning } }
        #expect(contract.member(10, "memoryPressure") == "warning" && contract.expired(1).isEmpty)
        contract.ask { $0.conditions(11, 1) { $0.memoryPressure = .critical } }
        #expect(contract.expired(1) == [wakes[2]] && contract.expirations(1) == [.pressure])
        contract.pass(milliseconds: 4999)
        #expect(contract.expired(1).count == 1)
        contract.pass(milliseconds: 1)
        #expect(contract.expired(1) == [wakes[2], wakes[1]])
        contract.ask {
            $0.listTasks(12, 1)
            $0.report(13, wakes[1], TaskResult.success)
            $0.diagnose(14, 1, task: "export.b")
        }
        #expect(contract.member(12, "waiting", "0", "held") == "memory")
        #expect(contract.member(12, "waiting", "0", "attempts") == "0")
        let why = contract.member(12, "waiting", "0", "why")
        #expect(why.contains("is held because the memory pressure is critical, and launches once the device reports "))
        #expect(contract.answer(13) == "409 WakeEnded")
        let command = "wakegate device conditions \(EngineRig.token(1).hex) memoryPressure=normal"
        #expect(contract.text(14).contains("\"check\":\"hold:memory\",\"ok\":false"), "\(contract.text(14))")
        #expect(contract.text(14).contains(command))
        contract.ask { $0.conditions(15, 1) { $0.memoryPressure = .normal } }
        let again = try contract.lastWake()
        #expect(again.name == "export.b" && again.attempt == 1)
        #expect(again.text.contains(#""resumedFrom":{"completed":1,"total":4"#), "\(again.text)")
        contract.pass(seconds: 20)
        #expect(contract.expired(1).count == 2, "it was lifted")
        let counters = try contract.counters()
        #expect(counters.requestResults(.interrupted) == 1 && counters.requestResults(.lost) == 1)
    }

    @Test("Critical memory pressure holds refreshes and processing, and no push", arguments: EngineKind.all)
    func memory(kind: EngineKind) throws {
        let contract = try EngineContract(kind) { $0.permittedTasks = .all }
        contract.ask { $0.subscribe(1, tasks: ["a", "clean"]) }
        contract.ask { $0.register(2, 1) }
        contract.ask { $0.submit(3, 1, "clean", .processing([])) }
        let wake = try contract.lastWake()
        contract.ask { $0.conditions(4, 1) { $0.memoryPressure = .critical } }
        #expect(contract.expired(1) == [wake.id] && contract.expirations(1) == [.conditions])
        contract.ask {
            $0.submit(5, 1, "a")
            $0.submit(6, 1, "clean", .processing([]))
            $0.push(7, 1, isDryRun: true)
            $0.explain(8, 1)
        }
        #expect(contract.member(5, "held") == "memory" && contract.member(6, "held") == "memory")
        #expect(contract.word(7) == "launched" && contract.member(8, "conditions", "memoryPressure") == "critical")
        #expect(try contract.counters().requests.held[.memory] == 2)
        contract.ask { $0.conditions(9, 1) { $0.memoryPressure = .warning } }
        #expect(try contract.lastWake().name == "a")
    }

    @Test("A reload that lowers continuedMax ends the least advanced tasks immediately", arguments: EngineKind.all)
    func lowered(kind: EngineKind) throws {
        let (contract, wakes) = try self.pressed(kind, last: .queue)
        var configuration = EngineRig.open(EngineContract.policy)
        configuration.permittedTasks = .all
        contract.step { $0.configure(configuration) }
        contract.settle()
        #expect(Set(contract.expired(1)) == [wakes[1], wakes[2]] && contract.expirations(1) == [.pressure, .pressure])
        contract.ask { $0.listTasks(10, 1) }
        #expect(contract.member(10, "running", "0", "identifier") == "export.a")
        #expect(contract.member(10, "waiting", "1", "identifier") == "export.c")
        contract.ask { $0.report(11, wakes[0], TaskResult.success) }
        #expect(try contract.lastWake().name == "export.b")
        _ = try contract.counters()
    }

    @Test("Only an advance moves the deadline: an equal or lower report does not", arguments: EngineKind.all)
    func advance(kind: EngineKind) throws {
        let contract = try self.contract(kind)
        contract.ask { $0.submit(2, 1, "export.a", .continued(.queue)) }
        let wake = try contract.lastWake()
        let launched = contract.wall
        contract.pass(seconds: 10)
        contract.ask { $0.progress(3, wake.id, 0) }
        #expect(contract.member(3, "deadline") == "\(launched + 60_000)", "no progress yet")
        #expect(contract.member(3, "timeLeft") == "50000")
        contract.ask { $0.progress(4, wake.id, 5) }
        let advanced = contract.wall
        contract.pass(seconds: 30)
        contract.ask { $0.progress(5, wake.id, 5) }
        contract.ask { $0.progress(6, wake.id, 2, of: 7) }
        #expect(contract.member(5, "deadline") == "\(advanced + 60_000)" && contract.text(6) == contract.text(5))
        #expect(contract.member(5, "timeLeft") == "30000")
        contract.ask { $0.listTasks(7, 1) }
        #expect(contract.member(7, "running", "0", "progress", "completed") == "2", "the last progress is shown")
        #expect(contract.member(7, "running", "0", "why").contains("advanced to 2 of 7 at "))
        contract.pass(seconds: 31)
        #expect(contract.expirations(1) == [.progress])
    }

    @Test("Of a lost task and a pending one with the same identifier the later one remains", arguments: EngineKind.all)
    func twins(kind: EngineKind) throws {
        let contract = try self.contract(kind)
        contract.ask { $0.submit(2, 1, "export.a", .continued(.fail)) }
        let wake = try contract.lastWake()
        contract.ask { $0.submit(3, 1, "export.a", .continued(.queue), details: TaskDetails(title: "Later")) }
        contract.ask { $0.lose(wake.id, on: 1, takingBackAttempt: false) }
        let later = try contract.lastWake()
        #expect(later.text.contains(#""title":"Later""#) && later.attempt == 1 && !later.text.contains("resumedFrom"))
        #expect(try contract.counters().requests.replaced == 1)
        // A lost task is pending again, even with the strategy `fail`.
        contract.ask { $0.report(4, later.id, TaskResult.failure) }
        contract.ask { $0.submit(5, 1, "export.b", .continued(.fail)) }
        let lost = try contract.lastWake()
        contract.ask { $0.lose(lost.id, on: 1, takingBackAttempt: false) }
        #expect(try contract.lastWake().attempt == 2)
        _ = try contract.counters()
    }

    @Test("A task without an advance for fifteen seconds is stalled, until it advances", arguments: EngineKind.all)
    func stalled(kind: EngineKind) throws {
        let contract = try self.contract(kind, continuedMax: 2)
        contract.ask { $0.subscribe(9, tasks: ["refresh"]) }
        contract.ask { $0.submit(2, 1, "export.a", .continued(.queue)) }
        let wake = try contract.lastWake()
        contract.ask { $0.submit(3, 1, "export.b", .continued(.queue)) }
        contract.ask { $0.conditions(4, 1) { $0.appState = .background } }
        contract.ask { $0.submit(5, 1, "refresh") }
        var request = 100
        func reading() throws -> MetricsReading {
            request += 1
            contract.ask { $0.metrics(request) }
            return try MetricsReading(contract.text(request))
        }
        contract.pass(seconds: 14)
        #expect(try reading()["wakegate_tasks_stalled"] == 0)
        contract.pass(seconds: 1)
        let stalled = try reading()
        #expect(stalled["wakegate_tasks_stalled"] == 2, "a refresh has no progress to make")
        #expect(stalled["wakegate_tasks_in_flight", "kind", "continued"] == 2)
        contract.ask { $0.progress(6, wake.id, 0) }
        #expect(try reading()["wakegate_tasks_stalled"] == 2, "no advance")
        contract.ask { $0.progress(7, wake.id, 1) }
        let advanced = try reading()
        #expect(advanced["wakegate_tasks_stalled"] == 1 && advanced["wakegate_task_progress_reports_total"] == 2)
        contract.ask { $0.report(8, wake.id, TaskResult.success) }
        contract.pass(seconds: 46)
        let expired = try reading()
        #expect(expired["wakegate_tasks_stalled"] == 0)
        let ended = expired.samples(of: "wakegate_task_wakes_ended_total").filter {
            $0.value > 0 && $0.labels["kind"] == "continued"
        }
        #expect(Set(ended.map { $0.labels["result"] }) == ["expired", "success"])
    }

    @Test("A running task that is cancelled launches no more, and an eleventh is refused", arguments: EngineKind.all)
    func bounds(kind: EngineKind) throws {
        let contract = try self.contract(kind)
        contract.ask { $0.submit(2, 1, "export.run", .continued(.queue)) }
        for number in 0..<10 { contract.ask { $0.submit(10 + number, 1, "export.\(number)", .continued(.queue)) } }
        contract.ask { $0.submit(30, 1, "export.more", .continued(.queue)) }
        contract.ask { $0.submit(31, 1, "export.3", .continued(.queue)) }
        #expect(contract.answer(30) == "409 TooManyPendingTaskRequests")
        #expect(contract.text(31).contains(#""disposition":"replaced""#))
        let wake = try contract.lastWake()
        contract.ask { $0.cancel(32, 1, nil) }
        #expect(contract.expired(1) == [wake.id] && contract.expirations(1) == [.cancelled])
        contract.ask { $0.progress(33, wake.id, 1) }
        #expect(contract.answer(33) == "409 WakeEnded")
        let counters = try contract.counters()
        #expect(counters.requestResults(.cancelled) == 1 && counters.requests.cancelled == 10)
        #expect(counters.requests.submitted.sum == 12)
    }
}

@Suite("The contract of an engine: finished transfers of sessions", .timeLimit(.minutes(15)))
struct SessionContractTests {
    @Test(
        "A session's wake covers the transfers that finished before its launch, and is retried like a push",
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
        let sessions = try contract.counters().sessions
        #expect((sessions.finished, sessions.completed, sessions.waiting, sessions.inFlight) == (8, 8, 0, 0))
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
        let sessions = try contract.counters().sessions
        #expect(sessions.finished == 9 && sessions.refused == 1 && sessions.waiting == 9)
    }
}

@Suite("The contract of an engine: a new policy", .timeLimit(.minutes(15)))
struct ReloadContractTests {
    @Test(
        "Pushes that a new policy allows earlier launch earlier, without another event",
        arguments: EngineKind.all
    )
    func earlier(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        // More devices than one batch of a sweep.
        let devices = Array(1...300)
        contract.ask { $0.subscribe(1, slots: 1000) }
        contract.ask { for device in devices { $0.push(1000 + device, device) } }
        let first = contract.wakes.map(\.id)
        try #require(first.count == devices.count)
        contract.ask { for (number, wake) in first.enumerated() { $0.report(2000 + number, wake, .newData) } }
        contract.ask { for device in devices { $0.push(3000 + device, device) } }
        contract.pass(seconds: 20)
        #expect(contract.wakes.count == devices.count, "launches are a minute apart")
        var policy = EngineContract.policy
        policy[0] = (.launchInterval, 30)
        contract.step { $0.configure(EngineRig.open(policy)) }
        contract.settle()
        #expect(contract.wakes.count == devices.count)
        for _ in 0..<3 { contract.pass(seconds: 5) }
        #expect(contract.wakes.count == 2 * devices.count, "launches are half a minute apart")
        contract.ask { $0.explain(9000, 1) }
        #expect(contract.member(9000, "policyVersion") == "2")
        let launches = (0..<6).filter { contract.member(9000, "recent", "\($0)", "event") == "launch" }
        let versions = launches.map { contract.member(9000, "recent", "\($0)", "policyVersion") }
        #expect(versions == ["2", "1"], "each launch names its policy: \(contract.text(9000))")
    }
}

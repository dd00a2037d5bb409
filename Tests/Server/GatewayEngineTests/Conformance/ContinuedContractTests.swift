import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

/// The rules for continued tasks that depend on the engine, not on the policy alone.
@Suite("The contract of an engine: continued tasks", .timeLimit(.minutes(15)))
struct ContinuedContractTests {
    /// Returns an engine with an active device, and a stream 1 that accepts continued tasks.
    private func contract(_ kind: EngineKind, continuedMax: Double = 1) throws -> EngineContract {
        let contract = try taskContract(kind, [(.continuedMax, continuedMax)])
        contract.ask { $0.conditions(901, 1) { $0.appState = .active } }
        contract.ask { $0.subscribe(1, tasks: ["export.*"]) }
        return contract
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
            $0.explain(16, 1)
        }
        #expect(contract.member(16, "conditions", "memoryPressure") == "critical")
        #expect(Int64(contract.member(16, "usage", "lastUse")) != nil)
        #expect(contract.member(16, "usage", "habitualHours") == "a list")
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

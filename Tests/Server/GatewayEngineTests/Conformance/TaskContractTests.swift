import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

/// Returns a contract in which every task is permitted, with these parameters, and in which the device is registered.
func taskContract(_ kind: EngineKind, _ parameters: [(PolicyParameter, Double)] = []) throws -> EngineContract {
    let contract = try EngineContract(kind) {
        $0.permittedTasks = .all
        for (name, value) in parameters { precondition(name.set(value, in: &$0.policy), "\(name.rawValue) is invalid") }
    }
    contract.ask { $0.register(900, 1) }
    return contract
}

@Suite("The contract of an engine: background tasks", .timeLimit(.minutes(15)))
struct TaskContractTests {
    @Test("A request launches immediately if possible, and its worker reports the outcome", arguments: EngineKind.all)
    func launch(kind: EngineKind) throws {
        let contract = try taskContract(kind)
        contract.ask { $0.subscribe(1, tasks: ["com.example.*"]) }
        contract.ask { $0.submit(2, 1, "com.example.refresh") }
        #expect(contract.answer(2) == "201" && contract.member(2, "disposition") == "launched")
        #expect(contract.member(2, "eligibleAt") == "null" && contract.member(2, "held") == "null")
        let wake = try contract.lastWake()
        #expect(wake.kind == .appRefresh && wake.name == "com.example.refresh" && wake.attempt == 1 && wake.stream == 1)
        #expect(wake.timeLeft == 20_000 && wake.deadline == contract.wall + 20_000)
        contract.ask {
            $0.report(3, wake.id, FetchResult.newData)
            $0.report(4, wake.id, TaskResult.success)
            $0.report(5, wake.id, TaskResult.success)
            $0.report(6, wake.id, TaskResult.failure)
        }
        #expect((3...6).map { contract.answer($0) } == ["400 BadResult", "204", "204", "409 WakeEnded"])
        #expect(contract.released(1) == [wake.id])
        let counters = try contract.counters()
        #expect(counters.requests.submitted.sum == 1 && counters.requestResults(.success) == 1)
        #expect(counters.launched == 0)
    }

    @Test("A task with required resources goes only to a stream that offers them", arguments: EngineKind.all)
    func resources(kind: EngineKind) throws {
        let contract = try taskContract(kind)
        contract.ask {
            $0.conditions(1, 1) { $0.appState = .active }
            $0.subscribe(2, tasks: ["export"])
        }
        let details = TaskDetails(title: "Export", subtitle: "of all", resources: ["gpu"])
        contract.ask { $0.submit(3, 1, "export", .continued(.queue), details: details) }
        #expect(contract.member(3, "held") == "worker" && contract.wakes.isEmpty)
        contract.ask { $0.submit(4, 1, "export", .continued(.fail), details: details) }
        #expect(contract.answer(4) == "409 ImmediateRunIneligible")
        contract.ask { $0.resources(5) }
        #expect(contract.text(5) == #"{"resources":[]}"#)
        contract.ask { $0.subscribe(6, tasks: ["export"], resources: ["npu", "gpu"]) }
        contract.ask { $0.resources(7) }
        #expect(contract.text(7) == #"{"resources":["gpu","npu"]}"#)
        let wake = try contract.lastWake()
        #expect(wake.stream == 6 && wake.text.contains(#""title":"Export","subtitle":"of all""#))
        contract.ask {
            $0.endStream(6)
            $0.resources(8)
        }
        #expect(contract.text(8) == #"{"resources":[]}"#)
    }

    @Test("An earliest beginning that is nearer than the interval is answered with a hint", arguments: EngineKind.all)
    func hint(kind: EngineKind) throws {
        let contract = try taskContract(kind)
        let now = contract.wall
        contract.ask {
            $0.submit(2, 1, "near", earliestBegin: now + 30_000)
            $0.submit(3, 1, "near", earliestBegin: now + 60_000)
            $0.submit(4, 1, "clean", .processing([]), earliestBegin: now + 60_000)
            $0.submit(5, 1, "other", .processing([]))
        }
        let near = "earliestBegin is 30 s away, but launches are at least 60 s apart (policy.launchInterval): "
        #expect(contract.member(2, "hint") == "\(near)it may launch later.")
        #expect(contract.member(3, "hint").isEmpty && contract.member(5, "hint").isEmpty)
        #expect(contract.member(4, "hint").contains("are at least 3600 s apart (policy.processingInterval)"))
    }

    @Test("A refusal by the policy has its reason and is counted", arguments: EngineKind.all)
    func refused(kind: EngineKind) throws {
        let contract = try EngineContract(kind) { $0.permittedTasks[EngineRig.topicName(0)] = [.init("a.*")] }
        contract.ask { $0.register(1, 1) }
        contract.ask {
            $0.submit(2, 1, "b")
            $0.submit(3, 1, "a.x", .continued(.queue))
            $0.submit(4, 1, "a.1")
            $0.submit(5, 1, "a.2")
            $0.conditions(6, 1) { $0.backgroundRefresh = .denied }
            $0.submit(7, 1, "a.3", .processing([]))
            $0.submit(8, 9, "a.3")
        }
        #expect(
            [2, 3, 4, 5, 7, 8].map { contract.answer($0) } == [
                "403 NotPermitted", "409 NotForeground", "201", "409 TooManyPendingTaskRequests", "409 Unavailable",
                "404 UnknownDevice",
            ]
        )
        let message = contract.member(2, "message")
        #expect(message.hasPrefix("The configuration of \(EngineRig.topicName(0)) does not permit b; "), "\(message)")
        let refused = try contract.counters().requests.refused
        #expect(refused[.notPermitted] == 1 && refused[.unavailable] == 1 && refused.sum == 4)
        contract.ask { $0.unregister(9, 1) }
        contract.ask {
            $0.submit(10, 1, "a.1")
            $0.cancel(11, 1, nil)
            $0.listTasks(12, 1)
            $0.finish(13, 1, "s")
        }
        for request in 10...13 { #expect(contract.answer(request) == "410 Unregistered") }
        #expect(try contract.counters().requests.discarded[.unregistered] == 1)
    }

    @Test("A request over a limit of the gateway is answered 429, with the limit's name", arguments: EngineKind.all)
    func bound(kind: EngineKind) throws {
        let contract = try EngineContract(kind) {
            $0.permittedTasks = .all
            $0.taskRequestsMax = 1
        }
        contract.ask {
            $0.register(1, 1)
            $0.submit(2, 1, "a")
            $0.submit(3, 1, "b", .processing([]))
            $0.finish(4, 1, "s")
            $0.submit(5, 1, "a")
        }
        #expect(contract.answer(3) == "429 TooManyRequests" && contract.text(3).contains("limits.taskRequestsMax"))
        #expect(contract.answer(4) == "429 TooManyRequests")
        #expect(contract.member(5, "disposition") == "replaced")
    }

    @Test(
        "A pending request can be cancelled, and a running task continues unless it is a continued one",
        arguments: EngineKind.all
    )
    func cancelled(kind: EngineKind) throws {
        let contract = try taskContract(kind)
        contract.ask {
            $0.submit(1, 1, "a")
            $0.submit(2, 1, "b", .processing([]))
            $0.cancel(3, 1, "a")
            $0.cancel(4, 1, "a")
            $0.cancel(5, 1, nil)
            $0.listTasks(6, 1)
        }
        #expect((3...5).map { contract.answer($0) } == ["204", "204", "204"])
        #expect(contract.text(6) == #"{"waiting":[],"running":[]}"#)
        #expect(try contract.counters().requests.cancelled == 2)
        contract.ask {
            $0.conditions(7, 1) { $0.appState = .active }
            $0.subscribe(8, tasks: ["export"])
            $0.submit(9, 1, "export", .continued(.queue))
        }
        let wake = try contract.lastWake()
        contract.ask { $0.cancel(10, 1, "export") }
        #expect(contract.expired(8) == [wake.id] && contract.expirations(8) == [.cancelled])
        contract.ask { $0.report(11, wake.id, TaskResult.success) }
        #expect(contract.answer(11) == "409 WakeEnded" && contract.text(11).contains(#""outcome":"cancelled""#))
        #expect(try contract.counters().requestResults(.cancelled) == 1)
    }

    @Test("A continued task lives by its progress, and resumes from it after a loss", arguments: EngineKind.all)
    func progress(kind: EngineKind) throws {
        let contract = try taskContract(kind)
        contract.ask {
            $0.conditions(1, 1) { $0.appState = .active }
            $0.subscribe(2, tasks: ["export", "refresh"])
            $0.submit(3, 1, "export", .continued(.queue))
        }
        let wake = try contract.lastWake()
        #expect(wake.timeLeft == 60_000 && !wake.text.contains("resumedFrom"))
        contract.pass(seconds: 50)
        contract.ask { $0.progress(4, wake.id, 10) }
        #expect(contract.member(4, "deadline") == "\(contract.wall + 60_000)")
        contract.pass(seconds: 50)
        #expect(contract.expired(2).isEmpty)
        contract.ask { $0.listTasks(5, 1) }
        #expect(contract.member(5, "running", "0", "progress", "completed") == "10")
        #expect(contract.member(5, "running", "0", "why").contains("advanced to 10 of 100 at "))
        contract.ask {
            $0.extend(6, wake.id)
            $0.progress(7, EngineContract.unknownWake, 1)
            $0.lose(wake.id, on: 2, takingBackAttempt: false)
        }
        #expect(contract.answer(6) == "409 ExtensionLimitReached" && contract.answer(7) == "404 UnknownWake")
        #expect(contract.text(6).contains("/progress"))
        let again = try contract.lastWake()
        #expect(again.text.contains(#""resumedFrom":{"completed":10,"total":100}"#) && again.attempt == 2)
        contract.pass(seconds: 61)
        #expect(contract.expired(2) == [wake.id, again.id] && contract.expirations(2) == [.lost, .progress])
        contract.ask { $0.progress(8, again.id, 90) }
        #expect(contract.answer(8) == "409 WakeEnded")
    }

    @Test("A processing task ends when its conditions do, and may be extended", arguments: EngineKind.all)
    func interrupted(kind: EngineKind) throws {
        let contract = try taskContract(kind)
        // Answered before the stream begins, so that the stream is not notified.
        contract.ask { $0.conditions(1, 1) { $0.charging = true } }
        contract.ask {
            $0.subscribe(2, tasks: ["clean"], reportsConditions: true)
            $0.submit(3, 1, "clean", .processing(.externalPower))
        }
        let wake = try contract.lastWake()
        #expect(wake.kind == .processing && wake.timeLeft == 600_000)
        contract.pass(seconds: 10)
        contract.ask { $0.extend(4, wake.id) }
        guard case .extended(wake.id, let deadline, let timeLeft) = contract.outcome(4) else {
            throw RigFailure("an extension is answered \(contract.answer(4))")
        }
        #expect(deadline == wake.deadline + 10_000 && timeLeft == 600_000)
        contract.ask { $0.conditions(5, 1) { $0.charging = false } }
        #expect(contract.expirations(2) == [.conditions])
        #expect(contract.conditions(2).map(\.charging) == [false])
        contract.ask { $0.conditions(6, 1) { $0.charging = false } }
        #expect(contract.conditions(2).count == 1, "nothing has changed")
        #expect(try contract.counters().requestResults(.interrupted) == 1)
    }

    @Test("An operator launches and ends a task by its identifier", arguments: EngineKind.all)
    func simulated(kind: EngineKind) throws {
        let contract = try taskContract(kind)
        let later = contract.wall + 3_600_000
        contract.ask {
            $0.submit(1, 1, "a", earliestBegin: later)
            $0.simulateLaunch(2, 1, of: "a")
            $0.simulateLaunch(3, 1, of: "b")
            $0.simulateExpiration(4, 1, of: "a")
        }
        #expect(contract.member(1, "eligibleAt") == "\(later)" && contract.member(1, "held") == "null")
        #expect(
            (2...4).map { contract.answer($0) } == ["409 NoWorker", "409 TaskNotWaiting", "409 NoWakeInFlight"]
        )
        contract.ask {
            $0.subscribe(5, tasks: ["a"])
            $0.simulateLaunch(6, 1, of: "a")
        }
        #expect(contract.answer(6) == "202" && contract.wakes.count == 1)
        contract.ask {
            $0.submit(7, 1, "a")
            $0.simulateLaunch(8, 1, of: "a")
            $0.simulateExpiration(9, 1, of: "a")
        }
        #expect(contract.answer(8) == "409 WakeInFlight" && contract.answer(9) == "202")
        #expect(contract.expirations(5) == [.operator])
    }

    @Test("Without a name, an operator ends only the wake in the short lane", arguments: EngineKind.all)
    func simulatedOfDevice(kind: EngineKind) throws {
        let contract = try taskContract(kind)
        contract.ask {
            $0.subscribe(1, tasks: ["refresh", "clean"], sessions: ["uploads"])
            $0.submit(2, 1, "clean", .processing([]))
            $0.simulateExpiration(3, 1)
        }
        #expect(contract.answer(3) == "409 NoWakeInFlight" && contract.expired(1).isEmpty)
        contract.ask { $0.submit(4, 1, "refresh") }
        let refresh = try contract.lastWake()
        contract.ask {
            $0.simulateLaunch(5, 1)
            $0.simulateExpiration(6, 1)
        }
        #expect(contract.answer(5) == "409 WakeInFlight" && contract.answer(6) == "202")
        #expect(contract.expired(1) == [refresh.id] && contract.expirations(1) == [.operator])
        contract.ask { $0.finish(7, 1, "uploads") }
        contract.pass(seconds: 600)
        let session = try contract.lastWake()
        #expect(session.name == "uploads")
        contract.ask { $0.simulateExpiration(8, 1) }
        #expect(contract.answer(8) == "202" && contract.expired(1).last == session.id)
    }
}

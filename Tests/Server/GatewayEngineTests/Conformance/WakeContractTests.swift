import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The contract of an engine: wakes", .timeLimit(.minutes(15)))
struct WakeContractTests {
    @Test("A result may come from anywhere: the holder is notified, and its slot is free", arguments: EngineKind.all)
    func resultFromElsewhere(kind: EngineKind) throws {
        let (contract, wake) = try EngineContract.launched(kind, slots: 1)
        contract.ask {
            $0.subscribe(3, topic: 1)
            $0.push(4, 2)
        }
        contract.ask { $0.report(5, wake.id, .newData) }
        #expect(contract.answer(5) == "204")
        #expect(contract.released(1) == [wake.id] && contract.released(3).isEmpty)
        #expect(contract.wakes.count == 2 && contract.wakes.last?.stream == 1)
    }

    @Test(
        "A repeated result is accepted, a different one gets the outcome of the wake, and that of a task is refused",
        arguments: EngineKind.all
    )
    func lateResults(kind: EngineKind) throws {
        let (contract, wake) = try EngineContract.launched(kind, slots: 1)
        contract.ask {
            $0.report(9, wake.id, TaskResult.success)
            $0.report(3, wake.id, .newData)
            $0.report(4, wake.id, .newData)
            $0.report(5, wake.id, .failed)
            $0.extend(6, wake.id)
            $0.report(7, EngineContract.unknownWake, .newData)
            $0.extend(8, EngineContract.unknownWake)
        }
        #expect(
            (3...9).map { contract.answer($0) } == [
                "204", "204", "409 WakeEnded", "409 WakeEnded", "404 UnknownWake", "404 UnknownWake", "400 BadResult",
            ]
        )
        #expect(contract.released(1) == [wake.id], "the holder is notified once")
        let counters = try contract.counters()
        #expect(counters.completed == 1 && counters.results.sum == 1)
    }

    @Test("An extension moves the deadline, within the limit of the policy", arguments: EngineKind.all)
    func extensions(kind: EngineKind) throws {
        let (contract, wake) = try EngineContract.launched(kind, slots: 1)
        contract.pass(seconds: 15)
        contract.ask { $0.extend(3, wake.id) }
        guard case .extended(let extended, let deadline, let timeLeft) = contract.outcome(3) else {
            throw RigFailure("an extension is answered \(contract.answer(3))")
        }
        #expect(extended == wake.id && timeLeft == 20_000 && deadline == wake.deadline + 15_000)
        contract.pass(seconds: 10)
        #expect(contract.expired(1).isEmpty, "the first deadline has passed")
        contract.ask { $0.explain(8, 1) }
        #expect(contract.member(8, "inFlight", "deadline") == "\(wake.deadline + 15_000)")
        contract.ask { $0.extend(4, wake.id) }
        contract.pass(seconds: 15)
        contract.ask { $0.extend(5, wake.id) }
        contract.ask { $0.extend(6, wake.id) }
        #expect(contract.answer(6) == "409 ExtensionLimitReached")
        contract.pass(seconds: 20)
        #expect(contract.expired(1) == [wake.id])
        contract.ask { $0.extend(7, wake.id) }
        #expect(contract.answer(7) == "409 WakeEnded")
    }

    @Test(
        "A wake ends at its deadline: its stream is notified, its slot is free, and its push is pending",
        arguments: EngineKind.all
    )
    func expiry(kind: EngineKind) throws {
        let (contract, wake) = try EngineContract.launched(kind, slots: 1)
        contract.ask {
            $0.push(3, 2)
            $0.progress(5, wake.id, 1)
        }
        #expect(contract.answer(5) == "409 NotContinued", "only continued tasks have progress")
        contract.pass(seconds: 21)
        #expect(contract.expired(1) == [wake.id] && contract.expirations(1) == [.deadline])
        #expect(contract.released(1) == [wake.id])
        #expect(contract.wakes.last?.push == EngineRig.apnsID(3), "the waiting push gets the slot")
        contract.ask { $0.report(4, wake.id, .newData) }
        #expect(contract.answer(4) == "409 WakeEnded")
        let counters = try contract.counters()
        #expect(counters.results[.expired] == 1 && counters.pending == 1 && counters.completed == 0)
    }

    @Test(
        "The wakes of an ended stream are lost and launch again on another, with a counted attempt",
        arguments: EngineKind.all
    )
    func streamEnds(kind: EngineKind) throws {
        let (contract, wake) = try EngineContract.launched(kind, slots: 1)
        contract.ask { $0.endStream(1) }
        #expect(contract.released(1).isEmpty, "an ended stream is not notified")
        var counters = try contract.counters()
        #expect((counters.results[.lost], counters.inFlight, counters.pending) == (1, 0, 1))
        contract.ask { $0.subscribe(3) }
        let again = try contract.lastWake()
        #expect(again.stream == 3 && again.push == wake.push && again.id != wake.id && again.attempt == 2)
        contract.ask { $0.report(4, wake.id, .newData) }
        #expect(contract.answer(4) == "409 WakeEnded")
        contract.ask { $0.report(5, again.id, .newData) }
        counters = try contract.counters()
        #expect((counters.completed, counters.launched) == (1, 2))
    }

    @Test("A wake that never reached its worker launches again, without a counted attempt", arguments: EngineKind.all)
    func neverReached(kind: EngineKind) throws {
        let (contract, wake) = try EngineContract.launched(kind, slots: 1)
        contract.ask { $0.lose(wake.id, on: 1, takingBackAttempt: true) }
        #expect(contract.released(1) == [wake.id])
        let again = try contract.lastWake()
        #expect(again.id != wake.id && again.attempt == 1)
        contract.ask { $0.lose(again.id, on: 1, takingBackAttempt: false) }
        #expect(try contract.lastWake().attempt == 2)
        #expect(try contract.counters().results[.lost] == 2)
        contract.ask { $0.lose(wake.id, on: 1, takingBackAttempt: true) }
        #expect(try contract.counters().results[.lost] == 2, "it had ended")
    }

    @Test("A wake that could not begin goes to another worker, without a counted attempt", arguments: EngineKind.all)
    func released(kind: EngineKind) throws {
        let (contract, wake) = try EngineContract.launched(kind, slots: 1)
        contract.ask { $0.subscribe(3, slots: 1) }
        contract.ask { $0.release(4, wake.id) }
        #expect(contract.answer(4) == "204" && contract.released(1) == [wake.id] && contract.expired(1).isEmpty)
        let again = try contract.lastWake()
        #expect(again.stream == 3 && again.push == wake.push && again.id != wake.id && again.attempt == 1)
        contract.ask {
            $0.release(5, wake.id)
            $0.report(6, wake.id, .newData)
            $0.release(7, EngineContract.unknownWake)
        }
        #expect((5...7).map { contract.answer($0) } == ["409 WakeEnded", "409 WakeEnded", "404 UnknownWake"])
        #expect(contract.member(5, "outcome") == "lost")
        contract.ask { $0.report(8, again.id, .newData) }
        contract.ask { $0.release(9, again.id) }
        #expect(contract.answer(9) == "409 WakeEnded" && contract.member(9, "outcome") == "newData")
        let counters = try contract.counters()
        #expect(
            (counters.completed, counters.launched, counters.results[.lost], counters.results[.failed]) == (1, 2, 1, 0)
        )
    }

    @Test(
        "A worker that gives three wakes back in a row gets no more, and all views show the reason",
        arguments: EngineKind.all
    )
    func stalledByReleases(kind: EngineKind) throws {
        let (contract, _) = try EngineContract.launched(kind, slots: 1)
        for number in 3...5 {
            let wake = try contract.lastWake()
            #expect(wake.stream == 1 && wake.attempt == 1)
            contract.ask { $0.release(number, wake.id, "/bin/x cannot be started") }
        }
        #expect(contract.wakes.count == 3)
        let reason =
            "a worker without a name: it gave back 3 wakes in a row that it could not begin: "
            + "/bin/x cannot be started"
        for topic in [nil, 0] as [Int?] {
            let workers = try contract.statistics(topic: topic).workers
            #expect(workers.stalled == 1 && workers.stallReason == reason)
        }
        contract.ask {
            $0.topics(6)
            $0.explain(7, 1)
            $0.diagnose(10, 1)
        }
        #expect(contract.member(10, "checks", "2", "check") == "slots")
        #expect(contract.member(10, "checks", "2", "ok") == "false")
        #expect(contract.member(10, "checks", "2", "remedy") == "null", "no command helps")
        let detail = contract.member(10, "checks", "2", "detail")
        #expect(detail.contains(reason), "\(detail)")
        #expect(detail.hasSuffix(" a worker that gave wakes back tries again automatically."), "\(detail)")
        #expect(contract.member(6, "topics", "0", "stalled") == "1")
        #expect(contract.member(6, "topics", "0", "stallReason") == reason)
        #expect(contract.member(7, "why").contains(reason) && contract.member(7, "pending", "attempts") == "0")
        contract.ask { $0.subscribe(8, slots: 1) }
        let wake = try contract.lastWake()
        #expect(wake.stream == 8)
        contract.ask { $0.report(9, wake.id, .newData) }
        contract.ask { $0.endStream(1) }
        #expect(try contract.statistics().workers.stalled == 0)
        let counters = try contract.counters()
        #expect((counters.completed, counters.results[.lost], counters.pending) == (1, 3, 0))
    }

    @Test(
        "If a first wake expires on a silent stream, it may not have been received",
        arguments: EngineKind.all
    )
    func doubt(kind: EngineKind) throws {
        let (contract, _) = try EngineContract.launched(kind, slots: 3)
        contract.pass(seconds: 21)
        contract.ask { $0.explain(3, 1) }
        #expect(contract.member(3, "why").hasSuffix("the worker may not have received it: a buffering proxy?"))
        contract.ask { $0.push(4, 2) }
        let wake = try contract.lastWake()
        contract.ask { $0.report(5, wake.id, .noData) }
        contract.ask { $0.explain(6, 1) }
        #expect(contract.member(6, "why").hasPrefix("The push waits until"))
        #expect(!contract.member(6, "why").contains("proxy"), "the worker has answered another wake")
    }

    @Test("A stream that drains gets no wake, and ends after its last", arguments: EngineKind.all)
    func streamDrains(kind: EngineKind) throws {
        let (contract, wake) = try EngineContract.launched(kind, slots: 2)
        contract.ask {
            $0.drainStream(3, 1)
            $0.push(4, 2)
            $0.drainStream(5, 99)
        }
        #expect(contract.answer(3) == "204" && contract.answer(5) == "404 UnknownStream")
        #expect(contract.wakes.count == 1 && !contract.hasDrained(1))
        contract.ask { $0.report(6, wake.id, .newData) }
        #expect(contract.hasDrained(1) && contract.wakes.count == 1)
        contract.ask { $0.subscribe(7) }
        #expect(contract.wakes.last?.stream == 7)
    }

    @Test("A paused stream gets no wakes until it resumes", arguments: EngineKind.all)
    func paused(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.subscribe(1) }
        contract.ask {
            $0.pauseStream(1, true)
            $0.push(2, 1)
        }
        #expect(contract.word(2) == "scheduled" && contract.wakes.isEmpty)
        contract.ask { $0.pauseStream(1, false) }
        #expect(contract.wakes.count == 1)
    }

    @Test("A stream's number of slots may change, and the stream keeps its wakes", arguments: EngineKind.all)
    func slotsChange(kind: EngineKind) throws {
        let (contract, wake) = try EngineContract.launched(kind, slots: 1)
        contract.ask { $0.push(3, 2) }
        contract.ask { $0.changeSlots(1, to: 2) }
        #expect(contract.wakes.count == 2)
        contract.ask {
            $0.changeSlots(1, to: 1)
            $0.push(4, 3)
        }
        contract.ask { $0.report(5, wake.id, .newData) }
        #expect(contract.wakes.count == 2, "one wake, one slot")
        #expect(contract.released(1) == [wake.id])
    }

    @Test("A gateway that shuts down launches nothing, and takes results and cancellations", arguments: EngineKind.all)
    func drains(kind: EngineKind) throws {
        let (contract, wake) = try EngineContract.launched(kind, slots: 3) { $0.permittedTasks = .all }
        contract.ask {
            $0.push(3, 1)
            $0.submit(8, 1, "a")
        }
        contract.ask { $0.drain() }
        #expect(contract.isDraining)
        contract.ask {
            $0.push(4, 2)
            $0.subscribe(5)
            $0.readiness(6)
            $0.report(7, wake.id, .newData)
            // Device 7 does not exist.
            for device in [1, 7] {
                $0.submit(10 + device, device, "b", .processing([]))
                $0.finish(20 + device, device, "s")
            }
            $0.listTasks(9, 1)
        }
        #expect(contract.word(4) == "Shutdown" && contract.answer(7) == "204")
        for request in [5, 6, 11, 17, 21, 27] { #expect(contract.answer(request) == "503 Shutdown", "\(request)") }
        #expect(contract.member(9, "waiting", "0", "identifier") == "a")
        contract.ask { $0.cancel(10, 1, "a") }
        #expect(contract.answer(10) == "204")
        contract.pass(seconds: 120)
        #expect(contract.wakes.count == 1)
        let counters = try contract.counters()
        #expect((counters.completed, counters.pending) == (1, 1))
        contract.finish()
    }
}

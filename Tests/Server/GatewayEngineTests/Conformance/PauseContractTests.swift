import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The contract of an engine: paused topics and dropped pushes", .timeLimit(.minutes(15)))
struct PauseContractTests {
    @Test(
        "A paused topic launches nothing automatically, and its waiting pushes launch when it is resumed",
        arguments: EngineKind.all
    )
    func pause(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask {
            $0.subscribe(1)
            $0.subscribe(2, topic: 1)
            $0.register(3, 1)
        }
        contract.ask { $0.pause(4) }
        #expect(contract.member(4, "topic") == EngineRig.topicName(0) && contract.member(4, "paused") == "true")
        contract.ask {
            $0.push(5, 1)
            $0.push(6, 2, .immediate)
            $0.push(7, 3, topic: 1)
        }
        #expect(contract.reply(5)?.hold == "paused" && contract.reply(6)?.hold == "paused")
        #expect(contract.word(5) == "scheduled" && contract.reply(5)?.eligibleAt == nil)
        #expect(contract.wakes.map(\.push) == [EngineRig.apnsID(7)], "another topic continues")
        contract.ask { $0.report(9, contract.wakes[0].id, FetchResult.newData) }
        contract.pass(seconds: 600)
        #expect(contract.wakes.count == 1)
        var counters = try contract.counters()
        #expect((counters.pending, counters.held[.paused], counters.held[.worker]) == (2, 2, 0))
        counters = try contract.statistics(topic: 0).counters
        #expect((counters.pending, counters.held.sum, counters.held[.paused]) == (2, 2, 2))
        contract.ask { $0.resume(8) }
        #expect(contract.member(8, "paused") == "false")
        #expect(Set(contract.wakes.dropFirst().map(\.push)) == [EngineRig.apnsID(5), EngineRig.apnsID(6)])
        #expect(try contract.counters().held.sum == 0)
    }

    @Test("Repeated pauses and resumes have no effect, and an unknown topic is refused", arguments: EngineKind.all)
    func idempotent(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.register(1, 1) }
        contract.ask {
            $0.pause(2)
            $0.pause(3)
        }
        contract.ask { $0.pause(4, topic: 7) }
        contract.ask {
            $0.resume(5)
            $0.resume(6)
        }
        let unknownPeer = try Caller.ofTopics([1])
        contract.ask {
            $0.caller = unknownPeer
            $0.pause(7)
        }
        #expect([2, 3, 5, 6].map { contract.answer($0) } == ["200", "200", "200", "200"])
        #expect([4, 7].map { contract.answer($0) } == ["404 UnknownTopic", "404 UnknownTopic"])
        contract.ask {
            $0.topics(8)
            $0.statistics(9, topic: 7)
        }
        #expect(contract.member(8, "topics", "0", "paused") == "false")
        #expect(contract.answer(9) == "404 UnknownTopic")
    }

    @Test(
        "Explain names a pause and its end before every other hold",
        arguments: EngineKind.all
    )
    func explained(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        let topic = EngineRig.topicName(0)
        contract.ask {
            $0.push(1, 1)
            $0.conditions(2, 1) { $0.network = false }
        }
        contract.ask { $0.pause(3) }
        contract.ask { $0.explain(4, 1) }
        #expect(contract.member(4, "held", "0") == "paused" && contract.member(4, "held", "1") == "network")
        #expect(
            contract.member(4, "why") == "The push is held for 2 reasons, and launches once all of them have ended: "
                + "the topic \(topic) is paused, until it is resumed (wakegate topic resume \(topic)); the device has "
                + "no network, until it reports one. Besides, no worker is subscribed to \(topic): start one "
                + "(wakegate worker --topic \(topic) -- COMMAND)."
        )
        contract.ask { $0.dropPending(5, 1) }
        contract.ask { $0.conditions(8, 1) { $0.network = true } }
        contract.ask { $0.subscribe(9) }
        contract.ask { $0.explain(6, 1) }
        #expect(contract.text(6).contains("\"held\":[]"))
        #expect(
            contract.member(6, "why")
                == "Nothing is pending, and a push of priority 5 that comes now would be held because the topic "
                + "\(topic) is paused, until it is resumed (wakegate topic resume \(topic))."
        )
        contract.ask { $0.topics(7) }
        #expect(contract.member(7, "topics", "0", "paused") == "true")
    }

    @Test("An operator can launch a push of a paused topic, and its wake proceeds normally", arguments: EngineKind.all)
    func simulated(kind: EngineKind) throws {
        let (contract, _) = try EngineContract.launched(kind, slots: 1)
        contract.ask { $0.pause(3) }
        contract.ask { $0.push(4, 2) }
        contract.ask { $0.simulateLaunch(5, 2) }
        #expect(contract.answer(5) == "409 NoWorker", "its only slot is taken")
        let first = try contract.lastWake()
        contract.ask { $0.report(6, first.id, .newData) }
        #expect(contract.answer(6) == "204" && contract.wakes.count == 1, "only the wake in flight ends")
        contract.ask { $0.simulateLaunch(7, 2) }
        #expect(contract.answer(7) == "202")
        let second = try contract.lastWake()
        #expect(second.push == EngineRig.apnsID(4))
        contract.ask { $0.report(8, second.id, .failed) }
        contract.pass(seconds: 120)
        #expect(contract.wakes.count == 2, "its retry is paused")
        contract.ask { $0.resume(9) }
        #expect(contract.wakes.count == 3)
    }

    @Test("A launch of the pending push only creates no empty wake without a pending push", arguments: EngineKind.all)
    func pendingAlone(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.subscribe(1) }
        contract.ask { $0.register(2, 1) }
        contract.ask { $0.simulateLaunch(3, 1, ofPendingAlone: true) }
        #expect(contract.answer(3) == "404 NothingPending" && contract.wakes.isEmpty)
        contract.ask { $0.pause(4) }
        contract.ask { $0.push(5, 1) }
        contract.ask { $0.simulateLaunch(6, 1, ofPendingAlone: true) }
        #expect(contract.answer(6) == "202")
        let wake = try contract.lastWake()
        #expect(wake.push == EngineRig.apnsID(5))
        contract.ask { $0.simulateLaunch(7, 1, ofPendingAlone: true) }
        #expect(contract.answer(7) == "404 NothingPending", "its wake is in flight")
        contract.ask { $0.report(8, wake.id, .newData) }
        contract.ask { $0.simulateLaunch(9, 1) }
        #expect(contract.answer(9) == "202" && contract.wakes.count == 2, "an empty one")
    }

    @Test("A now-or-never push does not wait for the end of a pause", arguments: EngineKind.all)
    func nowOrNever(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.subscribe(1) }
        contract.ask { $0.register(2, 1) }
        contract.ask { $0.pause(3) }
        contract.ask { $0.push(4, 1, expiration: 0) }
        #expect(contract.word(4) == "discarded")
        #expect(try contract.counters().discarded[.expired] == 1)
    }

    @Test("Tasks and sessions of a paused topic wait as pushes do", arguments: EngineKind.all)
    func tasks(kind: EngineKind) throws {
        let contract = try taskContract(kind)
        contract.ask { $0.subscribe(2, tasks: ["com.example.*"], sessions: ["uploads"]) }
        contract.ask { $0.pause(3) }
        contract.ask { $0.submit(4, 1, "com.example.refresh") }
        contract.ask { $0.finish(5, 1, "uploads", 3) }
        #expect(contract.member(4, "disposition") == "scheduled" && contract.member(4, "held") == "paused")
        #expect(contract.answer(5) == "202" && contract.wakes.isEmpty)
        #expect(try contract.counters().requests.held[.paused] == 1)
        contract.ask { $0.explain(6, 1) }
        #expect(contract.member(6, "tasks", "waiting", "0", "held") == "paused")
        #expect(
            contract.member(6, "tasks", "waiting", "0", "why").contains(
                "is held because the topic \(EngineRig.topicName(0)) is paused"
            )
        )
        contract.ask { $0.simulateLaunch(7, 1, of: "com.example.refresh") }
        #expect(contract.answer(7) == "202" && contract.wakes.count == 1, "a person launches it")
        contract.ask { $0.report(8, contract.wakes[0].id, TaskResult.success) }
        contract.pass(seconds: 60)
        #expect(contract.wakes.count == 1)
        contract.ask { $0.resume(9) }
        let session = try contract.lastWake()
        #expect(session.kind == .urlSession && session.name == "uploads" && session.text.contains(#""count":3"#))
    }

    @Test("A pause survives restarts until the topic is resumed", arguments: EngineKind.keeping)
    func restart(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.push(1, 1) }
        contract.ask { $0.pause(2) }
        try contract.restart()
        contract.ask { $0.subscribe(3) }
        contract.pass(seconds: 300)
        #expect(contract.wakes.isEmpty)
        #expect(try contract.counters().held[.paused] == 1)
        contract.ask { $0.resume(4) }
        #expect(contract.wakes.count == 1)
        try contract.restart()
        contract.ask { $0.subscribe(5) }
        contract.settle()
        #expect(contract.wakes.count == 2, "the wake was lost, and the topic is not paused")
    }

    @Test("A push that is dropped is discarded as cancelled, and nothing else is", arguments: EngineKind.all)
    func drop(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.subscribe(1, slots: 1) }
        contract.ask {
            $0.push(2, 1)
            $0.push(3, 1)
        }
        contract.ask { $0.dropPending(4, 1) }
        contract.ask {
            $0.dropPending(5, 1)
            $0.dropPending(6, 9)
        }
        #expect(contract.member(4, "dropped") == "1" && contract.member(5, "dropped") == "0")
        #expect(contract.answer(6) == "404 UnknownDevice")
        var counters = try contract.counters()
        #expect(
            (counters.pending, counters.inFlight, counters.discarded[.cancelled], counters.discarded.sum) == (
                0, 1, 1, 1
            )
        )
        contract.ask { $0.report(7, contract.wakes[0].id, .newData) }
        contract.pass(seconds: 120)
        counters = try contract.counters()
        #expect((counters.completed, counters.launched) == (1, 1))
    }

    @Test("A pending push is shown with its original payload", arguments: EngineKind.all)
    func pending(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.register(1, 1) }
        contract.ask { $0.pendingPush(2, 1) }
        contract.ask { $0.push(3, 1, .immediate) }
        contract.ask {
            $0.pendingPush(4, 1)
            $0.pendingPush(5, 2)
        }
        #expect([2, 4, 5].map { contract.answer($0) } == ["404 NothingPending", "200", "404 UnknownDevice"])
        #expect(contract.member(4, "priority") == "10" && contract.member(4, "collapseID") == "null")
        #expect(contract.member(4, "receivedAt") == "\(contract.wall)")
        #expect(contract.member(4, "payload", "aps", "content-available") == "1")
    }

    @Test("An operator's push is handled and counted like a provider's", arguments: EngineKind.all)
    func testPush(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.subscribe(1) }
        contract.ask { $0.register(2, 1) }
        contract.ask {
            $0.testPush(3, 1)
            $0.testPush(4, 1, topic: 0)
            $0.testPush(5, 1, topic: 1)
            $0.testPush(6, 2)
            $0.testPush(7, 3, refused: .badCollapseId)
        }
        contract.ask { $0.testPush(8, 4, topic: 5) }
        #expect(
            (3...8).map { contract.answer($0) } == [
                "200", "200", "200", "404 UnknownDevice", "404 UnknownDevice", "200",
            ]
        )
        #expect([3, 4, 8].map { contract.member($0, "status") } == ["200", "200", "200"])
        #expect(contract.member(3, "disposition") == "launched" && contract.member(4, "disposition") == "scheduled")
        #expect(contract.member(5, "status") == "400" && contract.member(5, "reason") == "DeviceTokenNotForTopic")
        #expect(contract.member(8, "held") == "worker", "the first push of a token registers it where that is open")
        let wake = try contract.lastWake()
        #expect(wake.push == EngineRig.apnsID(3))
        contract.ask { $0.testPush(9, 4, refused: .badCollapseId) }
        #expect(contract.member(9, "status") == "400" && contract.member(9, "reason") == "BadCollapseId")
        let statistics = try contract.statistics()
        #expect(statistics.counters.accepted == 3 && statistics.rejected[APNSReason.badCollapseId.index] == 1)
        let unknownPeer = try Caller.ofTopics([1])
        contract.ask {
            $0.caller = unknownPeer
            $0.testPush(10, 1)
            $0.testPush(11, 1, topic: 0)
        }
        #expect([10, 11].map { contract.answer($0) } == ["404 UnknownDevice", "404 UnknownTopic"])
    }
}

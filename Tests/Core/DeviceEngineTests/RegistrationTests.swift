import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Registration and removal", .timeLimit(.minutes(15)))
struct RegistrationTests {
    private static func admit(_ rig: EngineRig, _ device: Int, topic: Int = 0, isDryRun: Bool = false) -> Admission {
        EngineRig.topicName(topic).withByteView {
            rig.engine.admit(EngineRig.token(device), topic: $0, isDryRun: isDryRun)
        }
    }

    @Test("A removal discards the pending push and dates later refusals")
    func removal() {
        let rig = EngineRig()
        rig.push(1, .considerate)
        rig.advance(by: 5)
        rig.engine.unregister(rig.index(1))
        let removedAt = rig.instant
        let counters = rig.engine.totals
        #expect(counters.discarded[.unregistered] == 1 && counters.pending == 0 && counters.registered == 0)
        #expect(counters.held.sum == 0)
        rig.advance(by: 100)
        #expect(Self.admit(rig, 1) == .refused(.unregistered(removedAt)))
        // A second removal has no effect.
        rig.engine.unregister(rig.index(1))
        #expect(Self.admit(rig, 1) == .refused(.unregistered(removedAt)))
        #expect(rig.engine.totals == counters)
        #expect(rig.takeEvents(1).last?.kind == .discard(.push, .unregistered))
    }

    @Test("A removed device is no longer claimed")
    func removedNotClaimed() {
        let rig = EngineRig()
        for device in 1...3 { rig.push(device) }
        let topic = rig.engine.identity(rig.index(2)).topic
        #expect(rig.engine.readyCount(topic) == 3)
        rig.engine.unregister(rig.index(2))
        #expect(rig.engine.readyCount(topic) == 2)
        let claimed = (0..<3).map { _ in rig.engine.claim(topic)?.token }
        #expect(claimed == [EngineRig.token(1), EngineRig.token(3), nil])
    }

    @Test("A device registered after a removal starts fresh, despite reports in between")
    func fresh() throws {
        let rig = EngineRig()
        let wake = try #require(rig.push(1, .considerate, workerIsFree: true)?.wake)
        rig.advance(by: 30_000)
        #expect(rig.snapshot(1).state.penalty == 1)
        #expect(rig.engine.report(.push(.newData), wake: wake) == .endedOtherwise(.push(.expired)))
        rig.engine.unregister(rig.index(1))
        rig.conditions(1) { $0.network = false }
        rig.advance(by: 10)
        #expect(rig.register(1) == .device(rig.index(1)))
        #expect(rig.snapshot(1).state == DeviceState())
        #expect(rig.snapshot(1).isRegistered)
        #expect(rig.snapshot(1).registrationChangedAt == rig.instant)
        #expect(rig.engine.totals.registered == 1)
        #expect(rig.push(1, workerIsFree: true)?.disposition == .launched)
    }

    @Test("A wake in flight survives a removal; its retry is discarded", arguments: [false, true])
    func wakeGoesOn(registersAgain: Bool) throws {
        let rig = EngineRig()
        let wake = try #require(rig.push(1, workerIsFree: true)?.wake)
        rig.engine.unregister(rig.index(1))
        #expect(rig.engine.launchedWake(wake)?.id == wake)
        if registersAgain {
            rig.register(1)
            #expect(rig.push(1, workerIsFree: true)?.disposition == .scheduled)
        }
        #expect(rig.engine.report(.push(.failed), wake: wake) == .ended)
        let counters = rig.engine.totals
        #expect(counters.discarded[.unregistered] == 1 && counters.inFlight == 0)
        #expect(counters.pending == (registersAgain ? 1 : 0))
        #expect(counters.accepted == counters.accountedFor)
        // The launch of the old registration does not count for the new one.
        if registersAgain { #expect(rig.snapshot(1).held == [.worker]) }
    }

    @Test("After a removal a token may change its topic, once its wake has ended")
    func otherTopic() throws {
        let rig = EngineRig()
        let wake = try #require(rig.push(1, workerIsFree: true)?.wake)
        rig.engine.unregister(rig.index(1))
        #expect(rig.register(1, topic: 1) == .refused(.otherTopic))
        #expect(rig.engine.report(.push(.noData), wake: wake) == .ended)
        #expect(rig.register(1, topic: 1) == .device(rig.index(1)))
        #expect(rig.snapshot(1).topic == EngineRig.topicName(1))
        rig.push(1, topic: 1)
        let counters = rig.engine.topicSnapshots.map(\.counters)
        #expect(counters.map(\.registered) == [0, 1])
        #expect(counters.map(\.accepted) == [1, 1])
        #expect(counters.map(\.completed) == [1, 0])
        #expect(counters.map(\.pending) == [0, 1])
    }

    @Test("devicesMax tokens fit and not one more; removed ones count")
    func devicesMax() {
        var configuration = EngineRig.open()
        configuration.devicesMax = 3
        let rig = EngineRig(configuration)
        rig.register(1)
        #expect(Self.admit(rig, 2) == .device(rig.index(2)))
        rig.register(3)
        #expect(rig.register(4) == .refused(.tooManyDevices))
        #expect(Self.admit(rig, 4) == .refused(.tooManyDevices))
        #expect(Self.admit(rig, 4, isDryRun: true) == .refused(.tooManyDevices))
        rig.engine.unregister(rig.index(2))
        #expect(rig.register(4) == .refused(.tooManyDevices))
        #expect(rig.register(2) == .device(rig.index(2)))
        #expect(rig.find(4) == nil)
        #expect(Refusal.tooManyDevices.limit == .devicesMax)
        #expect(Refusal.tooManyDevicesOfTopic.limit == .devicesPerTopicMax)
    }

    @Test("topicsMax topics fit and not one more")
    func topicsMax() {
        var configuration = EngineRig.open()
        configuration.topicsMax = 2
        let rig = EngineRig(configuration)
        rig.register(1, topic: 0)
        rig.register(2, topic: 1)
        #expect(rig.register(3, topic: 2) == .refused(.tooManyTopics))
        #expect(Self.admit(rig, 3, topic: 2) == .refused(.tooManyTopics))
        #expect(Self.admit(rig, 3, topic: 1) == .device(rig.index(3)))
        rig.engine.unregister(rig.index(1))
        #expect(rig.register(1, topic: 2) == .refused(.tooManyTopics))
        #expect(EngineRig.topicName(2).withByteView { !rig.engine.mayAddTopic($0) })
        #expect(EngineRig.topicName(1).withByteView { rig.engine.mayAddTopic($0) })
        #expect(rig.engine.topicSnapshots.map(\.name) == [EngineRig.topicName(0), EngineRig.topicName(1)])
        #expect(Refusal.tooManyTopics.limit == .topicsMax)
    }
}

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

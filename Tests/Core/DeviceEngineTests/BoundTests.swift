import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Limits of the engine", .timeLimit(.minutes(15)))
struct BoundTests {
    /// The memory of one push of `EngineRig` whose number has one digit, in bytes.
    private static let pushBytes: Int = {
        let rig = EngineRig()
        rig.push(1)
        return rig.engine.contentBytes
    }()

    private func rig(_ change: (inout EngineConfiguration) -> Void) -> EngineRig {
        var configuration = EngineRig.open()
        change(&configuration)
        return EngineRig(configuration)
    }

    private func refusal(_ rig: EngineRig, _ push: Push, _ device: Int) -> Refusal? {
        let index = rig.index(device)
        return rig.engine.memoryRefusal(push, index, rig.engine.identity(index).topic)
    }

    @Test("Devices of a topic are limited, including removed ones; other topics are not affected")
    func devicesPerTopic() {
        let rig = self.rig { $0.devicesPerTopicMax = 2 }
        #expect(rig.push(1) != nil)
        #expect(rig.register(2) == .device(DeviceIndex(rawValue: 1)))
        #expect(rig.register(3) == .refused(.tooManyDevicesOfTopic))
        #expect(rig.push(3) == nil)
        #expect(rig.find(3) == nil)
        rig.engine.unregister(rig.index(1))
        #expect(rig.register(3) == .refused(.tooManyDevicesOfTopic))
        #expect(rig.push(3, topic: 1) != nil)
        #expect(rig.push(2) != nil)
        // A removed device may move to a topic with room, which makes room in its former topic.
        #expect(rig.push(4, topic: 1) != nil)
        #expect(rig.register(1, topic: 1) == .refused(.tooManyDevicesOfTopic))
        #expect(rig.register(1, topic: 2) == .device(rig.index(1)))
        #expect(rig.push(5) != nil)
        #expect(rig.push(6) == nil)
    }

    @Test("Pending pushes use limited memory; one more is refused without effect, and an end frees memory")
    func memory() throws {
        let rig = self.rig { $0.pendingBytesMax = 2 * Self.pushBytes }
        #expect(rig.push(1) != nil)
        #expect(rig.push(2, workerIsFree: true)?.disposition == .launched)
        #expect(rig.engine.contentBytes == 2 * Self.pushBytes)
        let counters = rig.engine.totals
        #expect(rig.push(3) == nil)
        #expect(rig.engine.totals.accepted == counters.accepted)
        rig.makePush(.considerate) { push, _ in
            #expect(self.refusal(rig, push, 3) == .noMemory)
        }
        // A push that wakes no device and a push that replaces another need no memory.
        #expect(rig.push(3, wakes: false) != nil)
        #expect(rig.push(1) != nil)
        #expect(rig.engine.contentBytes == 2 * Self.pushBytes)
        let wake = try #require(rig.snapshot(2).wake)
        #expect(rig.engine.report(.push(.newData), wake: wake) == .ended)
        #expect(rig.engine.contentBytes == Self.pushBytes)
        #expect(rig.push(3) != nil)
        rig.engine.unregister(rig.index(3))
        rig.engine.unregister(rig.index(1))
        #expect(rig.engine.contentBytes == 0)
    }

    @Test("A topic beyond its share of the memory is refused; the others have the rest")
    func topicMemory() {
        let rig = self.rig {
            $0.pendingBytesMax = 3 * Self.pushBytes
            $0.pendingBytesPerTopicMax = 2 * Self.pushBytes
        }
        #expect(rig.push(1) != nil)
        #expect(rig.push(2) != nil)
        #expect(rig.push(3) == nil)
        rig.makePush(.considerate) { push, _ in
            #expect(self.refusal(rig, push, 3) == .noMemoryForTopic)
        }
        #expect(rig.push(4, topic: 1) != nil)
        #expect(rig.push(5, topic: 1) == nil)
        rig.makePush(.considerate) { push, _ in
            #expect(self.refusal(rig, push, 5) == .noMemory)
            // A topic over its share gets the topic's reason, even if the total is also used up.
            #expect(self.refusal(rig, push, 3) == .noMemoryForTopic)
        }
        rig.engine.unregister(rig.index(1))
        #expect(rig.engine.contentBytes == 2 * Self.pushBytes)
        #expect(rig.push(3) != nil, "the end of a push frees the memory of its topic")
    }

    @Test("Counts are restored after a restart")
    func restart() throws {
        var configuration = EngineRig.open()
        configuration.devicesPerTopicMax = 2
        let before = EngineRig(configuration)
        before.push(1)
        before.push(2, workerIsFree: true)
        let store = SimulatedStore()
        try store.commit(from: before.engine)
        let after = try before.restarted(from: store, configuration)
        after.engine.loseEveryWake()
        #expect(after.engine.contentBytes == before.engine.contentBytes)
        #expect(after.engine.contentBytes == 2 * Self.pushBytes)
        #expect(after.register(3) == .refused(.tooManyDevicesOfTopic))
        after.engine.unregister(after.index(1))
        after.engine.unregister(after.index(2))
        #expect(after.engine.contentBytes == 0)
    }
}

@Suite("The push rate of one device", .timeLimit(.minutes(15)))
struct PushRateTests {
    private func rig(_ pushesMax: Int, seconds: Int = 60) -> EngineRig {
        var configuration = EngineRig.open()
        configuration.pushRate.pushesMax = pushesMax
        configuration.pushRate.seconds = seconds
        return EngineRig(configuration)
    }

    @Test("Pushes per window are limited; an excess push is refused without effect, until the window ends")
    func window() throws {
        let rig = self.rig(3)
        #expect(rig.push(1) != nil)
        rig.advance(by: 59_000)
        for _ in 0..<2 { #expect(rig.push(1) != nil) }
        let (counters, state) = (rig.engine.totals, rig.snapshot(1).state)
        _ = rig.engine.takeStep()
        _ = rig.takeEvents(1)
        for _ in 0..<5 { #expect(rig.push(1) == nil) }
        let end = rig.instant + 1000
        #expect(rig.engine.rateRefusal(rig.index(1)) == .tooMany(until: end))
        #expect(rig.engine.totals == counters && rig.snapshot(1).state == state)
        let step = rig.engine.takeStep()
        #expect(step.devices.isEmpty && step.topics.isEmpty && rig.takeEvents(1).isEmpty)
        rig.advance(by: 999)
        #expect(rig.push(1) == nil)
        rig.advance(by: 1)
        // The push that opens the next window counts as its first.
        for _ in 0..<3 { #expect(rig.push(1) != nil) }
        #expect(rig.push(1) == nil)
        #expect(rig.engine.totals.accepted == 6)
    }

    @Test("A device that was quiet, however long, has a whole window again", arguments: [60, 86_400, 1 << 31])
    func quiet(seconds: Int64) {
        let rig = self.rig(2)
        for _ in 0..<2 { #expect(rig.push(1, wakes: false) != nil) }
        rig.advance(by: seconds * 1000)
        for _ in 0..<2 { #expect(rig.push(1, wakes: false) != nil) }
        #expect(rig.push(1, wakes: false) == nil)
    }

    @Test("Devices are counted apart, and pushes without a wake are counted")
    func apart() {
        let rig = self.rig(2)
        for device in 1...3 {
            #expect(rig.push(device, wakes: false) != nil)
            #expect(rig.push(device) != nil)
            #expect(rig.push(device) == nil)
            #expect(rig.push(device, wakes: false) == nil)
        }
    }

    @Test("Zero means no limit, and the largest limit is enforced", arguments: [0, 65_535])
    func extremes(pushesMax: Int) {
        let rig = self.rig(pushesMax)
        for number in 0..<70_000 {
            let isTaken = rig.push(1, wakes: false) != nil
            guard isTaken == (pushesMax == 0 || number < pushesMax) else {
                Issue.record("push \(number)")
                return
            }
        }
    }

    @Test("A push that is sent again is answered as before, counts nothing, and is answered in a full window, too")
    func repeated() throws {
        let rig = self.rig(2)
        let first = try #require(rig.push(1, clientID: 7))
        for _ in 0..<5 { #expect(rig.push(1, clientID: 7)?.disposition == first.disposition) }
        #expect(rig.push(1, clientID: 8) != nil)
        #expect(rig.push(1, clientID: 9) == nil)
        #expect(rig.push(1, clientID: 7)?.disposition == first.disposition)
        #expect(rig.push(1, clientID: 8) != nil)
        rig.advance(by: 60_000)
        // A refused push is not remembered under its apns-id.
        #expect(rig.push(1, clientID: 9)?.disposition == .coalesced)
        #expect(rig.engine.totals.accepted == 3)
    }

    @Test("A dry run counts nothing, and foretells the refusal")
    func dryRun() {
        var configuration = EngineRig.open()
        configuration.pushRate.pushesMax = 2
        let rig = DispatchRig(configuration)
        for _ in 0..<5 { #expect(rig.push(1, isDryRun: true) != nil) }
        for _ in 0..<2 {
            #expect(rig.push(1) != nil)
        }
        #expect(rig.push(1, isDryRun: true) == nil)
        #expect(rig.push(1) == nil)
        #expect(rig.push(2, isDryRun: true) != nil)
    }
}

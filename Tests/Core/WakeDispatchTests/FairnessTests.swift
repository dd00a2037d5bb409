import Engine
import Policy
import Testing
import WakeGateTestKit

@Suite("Who gets the next wake", .timeLimit(.minutes(15)))
struct FairnessTests {
    @Test("A stream never holds more wakes than it has slots", arguments: [1, 2, 16])
    func slots(slots: Int) {
        let rig = DispatchRig()
        rig.subscribe(1, slots: slots)
        for device in 0..<40 { rig.push(device) }
        var delivered = rig.takeDeliveries()
        #expect(delivered.count == slots)
        #expect(rig.dispatcher.workerCounts(nil) == .init(connected: 1, slots: slots, busy: slots))
        // Each answer makes room for exactly one more.
        for round in 0..<10 {
            rig.report(.newData, delivered[round].wake)
            let next = rig.takeDeliveries()
            #expect(next.count == 1)
            delivered += next
        }
    }

    @Test("Free streams of a topic take turns: none gets two wakes more than another")
    func roundRobin() {
        let rig = DispatchRig()
        for stream in 0..<5 { rig.subscribe(stream, slots: 1000) }
        var counts = [Int](repeating: 0, count: 5)
        for device in 0..<137 {
            rig.push(device)
            for delivery in rig.takeDeliveries() {
                counts[delivery.stream.number] += 1
                if device % 3 == 0 { rig.report(.newData, delivery.wake) }
            }
            #expect((counts.max() ?? 0) - (counts.min() ?? 0) <= 1)
        }
        #expect(counts.reduce(0, +) == 137)
    }

    @Test("Devices that wait are launched in the order in which they came to wait")
    func fifo() {
        let rig = DispatchRig()
        for device in [4, 2, 9, 1, 7] { rig.push(device) }
        // A second push keeps the place of the first.
        rig.push(2)
        rig.subscribe(1, slots: 5)
        #expect(rig.takeDeliveries().map(\.token) == [4, 2, 9, 1, 7].map { EngineRig.token($0) })
    }

    @Test("A topic with ten thousand due devices keeps no other topic waiting")
    func betweenTopics() {
        let rig = DispatchRig(EngineRig.open([(.launchInterval, 60)]))
        rig.subscribe(1, topic: 0, slots: 1)
        rig.subscribe(2, topic: 1, slots: 4096)
        let others = [20_001, 20_002]
        // All have launched once, and have a push that becomes due at one moment.
        for other in others { rig.push(other, topic: 1) }
        for delivery in rig.takeDeliveries() where delivery.topic == EngineRig.topicName(1) {
            rig.report(.noData, delivery.wake)
        }
        for device in 0..<10_000 { rig.push(device, topic: 0) }
        rig.push(others[0], topic: 1)
        _ = rig.takeDeliveries()
        // Ten thousand wait for a slot; they are not looked at again.
        rig.rig.pass(60_000)
        var steps = 1
        while !rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 16) { steps += 1 }
        #expect(steps == 1)
        #expect(rig.takeDeliveries().contains { $0.topic == EngineRig.topicName(1) })
        rig.push(others[1], topic: 1)
        #expect(rig.takeDeliveries().map(\.token) == [EngineRig.token(others[1])])
    }

    @Test("Ten thousand devices that become due at once delay another topic by no more than their number of looks")
    func dueAtOnce() {
        let rig = DispatchRig()
        rig.subscribe(2, topic: 1, slots: 10)
        rig.push(20_000, topic: 1)
        rig.report(.noData, rig.takeDeliveries()[0].wake)
        for device in 0..<10_000 {
            rig.push(device, topic: 0, .considerate, .at(rig.rig.instant + 900_000))
        }
        rig.push(20_000, topic: 1)
        rig.rig.pass(900_000)
        var steps = 1
        while !rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 256) { steps += 1 }
        #expect(steps <= 10_001 / 256 + 1)
        #expect(rig.takeDeliveries().map(\.token) == [EngineRig.token(20_000)])
        #expect(rig.engine.totals.discarded[.expired] == 10_000)
    }

    @Test("A stream that names a device goes before one that takes any")
    func namedFirst() {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 10)
        rig.subscribe(2, slots: 1, devices: [5, 6])
        rig.push(5)
        #expect(rig.takeDeliveries().map(\.stream) == [DispatchRig.address(2)])
        // It is busy now: the others may take what it names.
        rig.push(6)
        #expect(rig.takeDeliveries().map(\.stream) == [DispatchRig.address(1)])
        rig.push(7)
        #expect(rig.takeDeliveries().map(\.stream) == [DispatchRig.address(1)])
    }

    @Test("A naming stream that comes free in the same step still goes first")
    func namedFirstWhenFreedTogether() {
        let rig = DispatchRig(EngineRig.open([(.maxAttempts, 1)]))
        rig.subscribe(1, slots: 1)
        rig.subscribe(2, slots: 1, devices: [5, 6])
        rig.push(5)
        rig.push(1)
        rig.push(6)
        #expect(rig.takeDeliveries().count == 2)
        rig.advance(by: 30_000)
        #expect(rig.takeDeliveries().map(\.stream) == [DispatchRig.address(2)])
    }

    @Test("A due device that no stream may take never blocks others")
    func blocksNobody() {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 10, devices: [3, 4])
        for device in 0..<6 { rig.push(device) }
        #expect(rig.takeDeliveries().map(\.token) == [3, 4].map { EngineRig.token($0) })
        rig.subscribe(2, slots: 10)
        #expect(rig.takeDeliveries().map(\.token) == [0, 1, 2, 5].map { EngineRig.token($0) })
    }

    @Test("A naming stream gives its devices turns: one that is always due keeps no other waiting")
    func namedTurns() {
        let rig = DispatchRig()
        for device in [1, 2] {
            rig.rig.register(device)
            rig.rig.conditions(device) { $0.appState = .active }
        }
        rig.subscribe(1, slots: 1, devices: [1, 2])
        rig.push(1)
        var order: [Int] = []
        for _ in 0..<8 {
            for device in [1, 2] { rig.push(device) }
            guard let delivery = rig.takeDeliveries().last else { break }
            order.append(delivery.token == EngineRig.token(1) ? 1 : 2)
            rig.report(.newData, delivery.wake)
            guard let next = rig.output.deliveries.last else { break }
            order.append(next.token == EngineRig.token(1) ? 1 : 2)
            rig.report(.newData, next.wake)
        }
        #expect(order.count { $0 == 1 } > 3 && order.count { $0 == 2 } > 3)
    }

    @Test("A wake goes only to streams of its topic")
    func topicsApart() {
        let rig = DispatchRig()
        rig.subscribe(1, topic: 1, slots: 10)
        rig.push(1, topic: 0)
        #expect(rig.takeDeliveries().isEmpty)
        rig.subscribe(2, topic: 0, slots: 10)
        #expect(rig.takeDeliveries().map(\.stream) == [DispatchRig.address(2)])
    }

    @Test("A subscription to a topic past the limit is refused")
    func topicsMax() {
        var configuration = EngineRig.open()
        configuration.topicsMax = 1
        let rig = DispatchRig(configuration)
        #expect(rig.subscribe(1, topic: 0))
        #expect(!rig.subscribe(2, topic: 1))
        #expect(rig.subscribe(2, topic: 0))
        #expect(rig.dispatcher.workerCounts(nil).connected == 2)
    }
}

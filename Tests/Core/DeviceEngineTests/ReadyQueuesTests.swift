import Engine
import Policy
import Testing
import WakeGateTestKit

@Suite("Queues of devices that wait for a slot", .timeLimit(.minutes(15)))
struct ReadyQueuesTests {
    @Test("A queue is a list of its topic's devices, wherever one leaves it", arguments: UInt64(1)...8)
    func likeLists(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var devices = DeviceTable.registered(30, topicCount: 3)
        var queues = ReadyQueues()
        queues.grow(topicCount: 3)
        var lists: [[UInt32]] = [[], [], []]
        var (fromTheMiddle, joined) = (0, [UInt32]())
        for step in 0..<3000 {
            let number = UInt32(generator.number(below: 30))
            let topic = Int(number % 3)
            let device = DeviceIndex(rawValue: number)
            if let place = lists[topic].firstIndex(of: number) {
                if place > 0, place < lists[topic].count - 1 { fromTheMiddle += 1 }
                queues.remove(device, in: &devices)
                lists[topic].remove(at: place)
            } else {
                queues.append(device, since: Instant(milliseconds: Int64(step)), in: &devices)
                lists[topic].append(number)
                joined.append(number)
            }
            for topic in 0..<3 {
                let index = TopicIndex(rawValue: UInt32(topic))
                #expect(queues.count(index) == lists[topic].count, "seed \(seed), step \(step)")
                let first = queues.first(index, at: Instant(milliseconds: 3000), in: devices)
                #expect(first?.rawValue == lists[topic].first, "seed \(seed), step \(step)")
            }
        }
        #expect(fromTheMiddle > 100)
        // Every device is offered once, in the order of arrival.
        var told: [UInt32] = []
        while let device = queues.popNewlyReady() { told.append(device.rawValue) }
        #expect(told == joined)
        #expect(queues.hasNewlyReady == false)
        // Removing the first element repeatedly returns each queue in order.
        for topic in 0..<3 {
            var left: [UInt32] = []
            let index = TopicIndex(rawValue: UInt32(topic))
            while let device = queues.first(index, at: Instant(milliseconds: 3000), in: devices) {
                left.append(device.rawValue)
                queues.remove(device, in: &devices)
            }
            #expect(left == lists[topic])
        }
    }

    @Test("Devices of one second go in the order of their last use, wherever one leaves", arguments: UInt64(1)...8)
    func lastUse(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var devices = DeviceTable.registered(40)
        var queues = ReadyQueues()
        queues.grow(topicCount: 1)
        let topic = TopicIndex(rawValue: 0)
        var list: [(second: Int64, lastUse: Int64, since: Int64, number: UInt32)] = []
        var now: Int64 = 0
        var reordered = 0
        for step in 0..<3000 {
            now += Int64(generator.number(below: 200))
            let number = UInt32(generator.number(below: 40))
            let device = DeviceIndex(rawValue: number)
            if let place = list.firstIndex(where: { $0.number == number }) {
                queues.remove(device, in: &devices)
                list.remove(at: place)
            } else {
                // Two out of five devices were never used.
                let uses: [Int64] = [.min, .min, 5, 6, 7]
                let use = uses[Int(generator.number(below: 5))]
                let lastUse = use == .min ? Instant.distantPast : Instant(milliseconds: use)
                queues.append(device, since: Instant(milliseconds: now), lastUse: lastUse, in: &devices)
                let entry = (second: now / 1000, lastUse: use, since: now, number: number)
                // After all earlier devices, but before those of the same second with an earlier last use.
                let place = list.firstIndex { $0.second == entry.second && $0.lastUse < use } ?? list.count
                if place < list.count { reordered += 1 }
                list.insert(entry, at: place)
            }
            let first = queues.first(topic, at: Instant(milliseconds: now), in: devices)
            #expect(first?.rawValue == list.first?.number, "seed \(seed), step \(step)")
            #expect(queues.count(topic) == list.count)
        }
        #expect(reordered > 100)
        var left: [UInt32] = []
        while let device = queues.first(topic, at: Instant(milliseconds: now), in: devices) {
            left.append(device.rawValue)
            queues.remove(device, in: &devices)
        }
        #expect(left == list.map(\.number))
    }

    @Test("The longest wait is that of the first of some queue")
    func longest() {
        var devices = DeviceTable.registered(4, topicCount: 2)
        var queues = ReadyQueues()
        queues.grow(topicCount: 2)
        func wait(_ number: UInt32, since milliseconds: Int64) {
            let since = Instant(milliseconds: milliseconds)
            queues.append(DeviceIndex(rawValue: number), since: since, in: &devices)
        }
        let now = Instant(milliseconds: 1000)
        #expect(queues.longestMilliseconds(at: now, in: devices) == nil)
        wait(1, since: 700)
        #expect(queues.longestMilliseconds(at: now, in: devices) == 300)
        wait(0, since: 400)
        wait(2, since: 900)
        #expect(queues.longestMilliseconds(at: now, in: devices) == 600)
        queues.remove(DeviceIndex(rawValue: 0), in: &devices)
        #expect(queues.longestMilliseconds(at: now, in: devices) == 300)
        let used = Instant(milliseconds: 100)
        queues.append(DeviceIndex(rawValue: 3), since: used, lastUse: used, in: &devices)
        #expect(queues.longestMilliseconds(at: now, in: devices) == 900)
    }
}

@Suite("A queue", .timeLimit(.minutes(15)))
struct FIFOQueueTests {
    @Test("A queue is first in, first out, however additions and removals alternate", arguments: UInt64(1)...8)
    func likeList(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var queue = FIFOQueue<Int>()
        var list: [Int] = []
        var emptied = 0
        for step in 0..<2000 {
            if generator.once(in: 2) {
                #expect(queue.popFirst() == (list.isEmpty ? nil : list.removeFirst()), "seed \(seed), step \(step)")
                if list.isEmpty { emptied += 1 }
            } else {
                queue.append(step)
                list.append(step)
            }
            #expect(queue.first == list.first && queue.isEmpty == list.isEmpty, "seed \(seed), step \(step)")
        }
        #expect(emptied > 3)
    }

    @Test("A queue frees the memory of a burst only when it is empty")
    func shrink() {
        var queue = FIFOQueue<Int>()
        for number in 0..<1000 { queue.append(number) }
        queue.shrink(keeping: 8)
        for number in 0..<1000 { #expect(queue.popFirst() == number) }
        #expect(queue.capacity >= 1000)
        queue.shrink(keeping: 8)
        #expect(queue.isEmpty && queue.capacity == 0)
        queue.append(1)
        #expect(queue.popFirst() == 1)
    }
}

extension DeviceTable {
    /// Returns a table of new devices, each of the next topic.
    static func registered(_ count: Int, topicCount: Int = 1) -> DeviceTable {
        var devices = DeviceTable(key: EngineRig.historyKey)
        for number in 0..<count {
            let topic = TopicIndex(rawValue: UInt32(number % topicCount))
            _ = devices.insert(
                DeviceRecord(token: EngineRig.token(number), topic: topic, registeredAt: .distantPast)
            )
        }
        return devices
    }
}

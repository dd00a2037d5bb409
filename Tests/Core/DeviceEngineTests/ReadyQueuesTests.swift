import Engine
import Policy
import Testing
import WakeGateTestKit

@Suite("Queues of devices that wait for a slot", .timeLimit(.minutes(15)))
struct ReadyQueuesTests {
    @Test(
        "Each topic has a queue by second and last use, wherever a device leaves it, and each device is offered once",
        arguments: UInt64(1)...8
    )
    func likeLists(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var devices = DeviceTable.registered(60, topicCount: 3)
        var queues = ReadyQueues()
        queues.grow(topicCount: 3)
        var lists: [[(second: Int64, lastUse: Instant, number: UInt32)]] = [[], [], []]
        var (fromTheMiddle, reordered, joined) = (0, 0, [UInt32]())
        var now = Instant(milliseconds: 0)
        for step in 0..<3000 {
            now = now + Int64(generator.number(below: 200))
            let number = UInt32(generator.number(below: 60))
            let (topic, device) = (Int(number % 3), DeviceIndex(rawValue: number))
            if let place = lists[topic].firstIndex(where: { $0.number == number }) {
                if place > 0, place < lists[topic].count - 1 { fromTheMiddle += 1 }
                queues.remove(device, in: &devices)
                lists[topic].remove(at: place)
            } else {
                // Two out of five devices were never used.
                let uses = [Instant.distantPast, .distantPast] + (5...7).map { Instant(milliseconds: $0) }
                let (use, second) = (generator.pick(uses), now.milliseconds / 1000)
                queues.append(device, since: now, lastUse: use, in: &devices)
                joined.append(number)
                // After all earlier devices, but before those of the same second with an earlier last use.
                let place = lists[topic].firstIndex { $0.second == second && $0.lastUse < use }
                if place != nil { reordered += 1 }
                lists[topic].insert((second, use, number), at: place ?? lists[topic].count)
            }
            for topic in 0..<3 {
                let index = TopicIndex(rawValue: UInt32(topic))
                #expect(queues.count(index) == lists[topic].count, "seed \(seed), step \(step)")
                let first = queues.first(index, at: now, in: devices)
                #expect(first?.rawValue == lists[topic].first?.number, "seed \(seed), step \(step)")
            }
        }
        #expect(fromTheMiddle > 100 && reordered > 100)
        var told: [UInt32] = []
        while let device = queues.popNewlyReady() { told.append(device.rawValue) }
        #expect(told == joined)
        #expect(queues.hasNewlyReady == false)
        // Removing the first element repeatedly returns each queue in order.
        for topic in 0..<3 {
            var left: [UInt32] = []
            let index = TopicIndex(rawValue: UInt32(topic))
            while let device = queues.first(index, at: now, in: devices) {
                left.append(device.rawValue)
                queues.remove(device, in: &devices)
            }
            #expect(left == lists[topic].map(\.number))
        }
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

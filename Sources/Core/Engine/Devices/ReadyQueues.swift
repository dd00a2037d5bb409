package import Policy

/// Devices that wait for nothing but a slot: a queue for each topic, in the order in which they came to wait.
///
/// The links are in the devices' rows, so that a queue takes no memory of its own.
package struct ReadyQueues: ~Copyable {
    private struct Queue {
        var first = DeviceIndex.none
        var last = DeviceIndex.none
        var count = 0
    }

    /// By topic number.
    private var queues: [Queue] = []
    /// Devices that came to wait and were not yet offered to a driver.
    private var newcomers = FIFOQueue<DeviceIndex>()

    /// No queues.
    package init() {}

    /// Has a queue for each of so many topics from now on.
    package mutating func grow(topicCount: Int) {
        while self.queues.count < topicCount { self.queues.append(Queue()) }
    }

    /// The device that has waited longest for a slot of this topic.
    package func first(_ topic: TopicIndex) -> DeviceIndex? {
        let first = self.queues[Int(topic.rawValue)].first
        return first == .none ? nil : first
    }

    /// How many devices wait for a slot of this topic.
    package func count(_ topic: TopicIndex) -> Int { self.queues[Int(topic.rawValue)].count }

    /// How long the device has waited that waits longest in any queue, in milliseconds; nil when none waits.
    ///
    /// - `longestOf`: the most that devices of a topic can have waited; nil for a topic that is not looked at.
    package func longestMilliseconds(
        at now: Instant,
        in devices: borrowing DeviceTable,
        longestOf: (TopicIndex) -> Int64? = { _ in .max }
    ) -> Int64? {
        var longest: Int64?
        for (number, queue) in self.queues.enumerated() where queue.first != .none {
            guard let most = longestOf(TopicIndex(rawValue: UInt32(number))) else { continue }
            longest = max(longest ?? 0, min(most, devices[queue.first].readyMilliseconds(at: now)))
        }
        return longest
    }

    /// Puts a device that waits in no queue at the end of its topic's.
    ///
    /// - `moment`: when it came to wait.
    package mutating func append(_ device: DeviceIndex, since moment: Instant, in devices: inout DeviceTable) {
        let topic = Int(devices[device].topic.rawValue)
        let last = self.queues[topic].last
        devices[device].becameReady(at: moment)
        devices[device].previousReady = last
        devices[device].nextReady = .none
        if last == .none { self.queues[topic].first = device } else { devices[last].nextReady = device }
        self.queues[topic].last = device
        self.queues[topic].count += 1
        self.newcomers.append(device)
    }

    /// Takes a device that waits out of its topic's queue.
    package mutating func remove(_ device: DeviceIndex, in devices: inout DeviceTable) {
        let topic = Int(devices[device].topic.rawValue)
        let (previous, next) = (devices[device].previousReady, devices[device].nextReady)
        if previous == .none { self.queues[topic].first = next } else { devices[previous].nextReady = next }
        if next == .none { self.queues[topic].last = previous } else { devices[next].previousReady = previous }
        self.queues[topic].count -= 1
        devices[device].isReady = false
    }

    /// Empties the queue of this topic without a look at its devices, which are forgotten.
    package mutating func removeAll(_ topic: TopicIndex) { self.queues[Int(topic.rawValue)] = Queue() }

    /// No device came to wait: those that did are forgotten.
    package mutating func removeNewcomers() { self.newcomers.removeAll() }

    /// Whether a device came to wait that was not taken by `popNewcomer` yet.
    package var hasNewcomer: Bool { !self.newcomers.isEmpty }

    /// Takes one device that came to wait, the first first; it may have ceased to.
    package mutating func popNewcomer() -> DeviceIndex? { self.newcomers.popFirst() }
}

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

/// What waits in the order in which it came; taking the first costs the same however many wait.
///
/// Other modules have it made for their own elements, as generic code that is not would be many times slower.
@usableFromInline
package struct FIFOQueue<Element> {
    @usableFromInline var elements: [Element] = []
    /// The elements before it have been taken.
    @usableFromInline var firstIndex = 0

    /// An empty queue.
    @inlinable
    package init() {}

    @inlinable
    package var isEmpty: Bool { self.firstIndex == self.elements.count }

    /// The element that has waited longest.
    @inlinable
    package var first: Element? {
        self.firstIndex < self.elements.count ? self.elements[self.firstIndex] : nil
    }

    @inlinable
    package mutating func append(_ element: Element) { self.elements.append(element) }

    /// Takes the element that has waited longest.
    @inlinable
    package mutating func popFirst() -> Element? {
        guard self.firstIndex < self.elements.count else { return nil }
        let element = self.elements[self.firstIndex]
        self.firstIndex += 1
        // The memory is kept; an empty array would make some. A queue that is never empty keeps no more than it had.
        if self.firstIndex == self.elements.count {
            self.elements.removeAll(keepingCapacity: true)
            self.firstIndex = 0
        } else if self.firstIndex >= 1024, self.firstIndex * 2 >= self.elements.count {
            self.elements.removeFirst(self.firstIndex)
            self.firstIndex = 0
        }
        return element
    }

    /// For how many elements it has memory.
    @inlinable
    package var capacity: Int { self.elements.capacity }

    /// Gives the memory of an empty queue back that a burst has left, unless it is for no more elements than these.
    @inlinable
    package mutating func shrink(keeping count: Int) {
        guard self.isEmpty, self.capacity > count else { return }
        self = FIFOQueue()
    }

    /// Drops every element and keeps the memory.
    @inlinable
    package mutating func removeAll() {
        self.elements.removeAll(keepingCapacity: true)
        self.firstIndex = 0
    }
}

/// A request or a session that came to wait for nothing but a slot on a stream that takes it.
package struct ReadyTask: Sendable {
    package let device: DeviceIndex
    package let topic: TopicIndex
    package let target: LaunchTarget
    /// Since when it waits so.
    package let since: Instant
    /// Which of the device's tasks it is.
    let arrival: UInt64
}

/// What a stream has to take for a launch.
package struct LaunchTarget: Hashable, Sendable {
    package let kind: LaunchKind
    /// The identifier, or the session's name; empty for a push.
    package let name: String
    /// What the stream must offer.
    package let resources: [String]

    package static let push = LaunchTarget(kind: .push, name: "")

    package init(kind: LaunchKind, name: String, resources: [String] = []) {
        self.kind = kind
        self.name = name
        self.resources = resources
    }
}

extension EmbeddedEngine {
    /// Whether the device has requests, sessions or habits.
    package func hasTasks(_ device: DeviceIndex) -> Bool { self.devices[device].hasTasks }

    /// Whether the task still waits for nothing but a slot.
    package func isReady(_ task: ReadyTask) -> Bool {
        guard let row = self.tasks[task.device], row.readySince(task.arrival) != nil,
            let waiting = row.policy.waiting.first(where: { $0.arrival == task.arrival })
        else { return false }
        return LaunchKind(waiting.kind) == task.target.kind && row.text(waiting.name) == task.target.name
    }

    /// Launches what is next on the device by its policy, a slot for it provided.
    ///
    /// - `hasSlot`: whether a stream that takes it has a free slot for this device.
    /// - Returns: the wake, valid until the engine is next called; nil when nothing launches.
    package func claim(_ device: DeviceIndex, hasSlot: (LaunchTarget) -> Bool) -> LaunchedWake? {
        guard let row = self.tasks[device] else {
            return self.devices[device].isReady && hasSlot(.push) ? self.claim(device) : nil
        }
        if let moment = self.schedule[device], moment <= self.now { self.settle(device) }
        let candidate = self.lanes(device).nextLaunch(at: self.now, self.parameters(of: device)) { candidate in
            switch candidate {
            case .push: hasSlot(.push)
            case .task(let task): hasSlot(row.target(task))
            }
        }
        switch candidate {
        case nil: return nil
        case .push: return self.launchPush(device)
        case .task(let task):
            if let since = row.readySince(task.arrival) {
                self.times.lateness.record(self.lateness(since: since, self.devices[device].topic))
            }
            let wake = self.launchTask(task.arrival, device)
            self.reconcile(device)
            return self.launchedWake(wake)
        }
    }
}

extension TaskRow {
    /// What a stream has to take to be sent this task.
    func target(_ task: BackgroundTask) -> LaunchTarget {
        LaunchTarget(
            kind: LaunchKind(task.kind),
            name: self.text(task.name),
            resources: self.details(task).resources
        )
    }
}

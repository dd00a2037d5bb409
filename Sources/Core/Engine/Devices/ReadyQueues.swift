package import Policy

/// Devices that wait only for a slot: a queue for each topic, in the order of `ReadyOrder`.
///
/// Devices that were never used form a linked list in order of arrival. The links are in the device records and need no
/// separate memory. Used devices are in a heap. The next device is the first of the list or of the heap.
package struct ReadyQueues: ~Copyable {
    private struct Queue {
        var first = DeviceIndex.none
        var last = DeviceIndex.none
        var count = 0
        /// Devices that were used.
        var used = UsedDevices()
    }

    /// Queues by topic number.
    private var queues: [Queue] = []
    /// Devices that began to wait and were not offered to the dispatcher yet.
    private var newlyReady = FIFOQueue<DeviceIndex>()

    /// Creates a value without queues.
    package init() {}

    /// Adds queues for topics up to `topicCount`.
    package mutating func grow(topicCount: Int) {
        while self.queues.count < topicCount { self.queues.append(Queue()) }
    }

    /// Returns the device of this topic that is the next to get a slot.
    package func first(_ topic: TopicIndex, at now: Instant, in devices: borrowing DeviceTable) -> DeviceIndex? {
        let first = self.queues[Int(topic.rawValue)].first
        guard let used = self.queues[Int(topic.rawValue)].used.first else { return first == .none ? nil : first }
        guard first != .none else { return used }
        func second(_ device: DeviceIndex) -> Int64 {
            ReadyOrder.second(of: now - devices[device].readyMilliseconds(at: now))
        }
        return second(used) <= second(first) ? used : first
    }

    /// Returns the position of a device among all waiting devices. A use of the device while it waits does not change
    /// its position. With a shared store, the last use is read from the device's row in each step.
    ///
    /// - `moment`: the time at which the device began to wait.
    package func order(
        _ device: DeviceIndex,
        since moment: Instant,
        in devices: borrowing DeviceTable
    ) -> ReadyOrder {
        guard UsedDevices.holds(devices[device]) else { return ReadyOrder(since: moment, lastUse: .distantPast) }
        let topic = Int(devices[device].topic.rawValue)
        return self.queues[topic].used.order(at: Int(devices[device].previousReady.rawValue))
    }

    /// Returns the number of devices of this topic that wait for a slot.
    package func count(_ topic: TopicIndex) -> Int { self.queues[Int(topic.rawValue)].count }

    /// Returns the longest wait of a device in any queue, in milliseconds; nil if no device waits. Among used devices
    /// that began to wait in the same second, only the next to get a slot is examined.
    ///
    /// - `longestOf`: the longest possible wait of a topic's devices; nil to skip the topic.
    package func longestMilliseconds(
        at now: Instant,
        in devices: borrowing DeviceTable,
        longestOf: (TopicIndex) -> Int64? = { _ in .max }
    ) -> Int64? {
        var longest: Int64?
        for (number, queue) in self.queues.enumerated() where queue.count > 0 {
            guard let maximum = longestOf(TopicIndex(rawValue: UInt32(number))) else { continue }
            for device in [queue.first, queue.used.first ?? .none] where device != .none {
                longest = max(longest ?? 0, min(maximum, devices[device].readyMilliseconds(at: now)))
            }
        }
        return longest
    }

    /// Inserts a device into its topic's queue.
    ///
    /// - `moment`: the time at which the device began to wait.
    /// - `lastUse`: the time of the device's last use; `distantPast` for never.
    package mutating func append(
        _ device: DeviceIndex,
        since moment: Instant,
        lastUse: Instant = .distantPast,
        in devices: inout DeviceTable
    ) {
        let topic = Int(devices[device].topic.rawValue)
        devices[device].becameReady(at: moment)
        if lastUse == .distantPast {
            let last = self.queues[topic].last
            devices[device].previousReady = last
            devices[device].nextReady = .none
            if last == .none { self.queues[topic].first = device } else { devices[last].nextReady = device }
            self.queues[topic].last = device
        } else {
            self.queues[topic].used.insert(device, ReadyOrder(since: moment, lastUse: lastUse), in: &devices)
        }
        self.queues[topic].count += 1
        self.newlyReady.append(device)
    }

    /// Removes a device from its topic's queue.
    package mutating func remove(_ device: DeviceIndex, in devices: inout DeviceTable) {
        let topic = Int(devices[device].topic.rawValue)
        if UsedDevices.holds(devices[device]) {
            self.queues[topic].used.remove(device, in: &devices)
        } else {
            let (previous, next) = (devices[device].previousReady, devices[device].nextReady)
            if previous == .none { self.queues[topic].first = next } else { devices[previous].nextReady = next }
            if next == .none { self.queues[topic].last = previous } else { devices[next].previousReady = previous }
        }
        self.queues[topic].count -= 1
        devices[device].isReady = false
    }

    /// Empties the queue of this topic without access to the records of its devices, which are being dropped.
    package mutating func removeAll(_ topic: TopicIndex) { self.queues[Int(topic.rawValue)] = Queue() }

    /// Empties the queue of devices to offer.
    package mutating func removeNewlyReady() { self.newlyReady.removeAll() }

    /// True if there is a device for `popNewlyReady`.
    package var hasNewlyReady: Bool { !self.newlyReady.isEmpty }

    /// Removes and returns the next device to offer, in the order in which they began to wait. The device may no longer
    /// wait.
    package mutating func popNewlyReady() -> DeviceIndex? { self.newlyReady.popFirst() }
}

/// The order of launches that wait for a slot: the earliest second first, then the most recently used device, then the
/// earliest arrival.
package struct ReadyOrder: Comparable, Sendable {
    /// The time at which the launch began to wait.
    let since: Instant
    /// The time of the device's last use; `distantPast` for never.
    let lastUse: Instant

    /// Returns the second of policy time that contains `moment`.
    static func second(of moment: Instant) -> Int64 {
        let (seconds, rest) = moment.milliseconds.quotientAndRemainder(dividingBy: 1000)
        return rest < 0 ? seconds - 1 : seconds
    }

    package static func < (left: ReadyOrder, right: ReadyOrder) -> Bool {
        let seconds = (self.second(of: left.since), self.second(of: right.since))
        guard seconds.0 == seconds.1 else { return seconds.0 < seconds.1 }
        return left.lastUse == right.lastUse ? left.since < right.since : left.lastUse > right.lastUse
    }
}

/// The used devices of a topic that wait: a heap, with the position of each device in its record.
private struct UsedDevices {
    private struct Entry {
        let order: ReadyOrder
        /// The sequence number of the insertion.
        let number: UInt64
        let device: DeviceIndex

        func launchesBefore(_ other: Entry) -> Bool {
            self.order == other.order ? self.number < other.number : self.order < other.order
        }
    }

    /// The value of `nextReady` of a device in a heap; `previousReady` is its position in the heap.
    private static let mark = DeviceIndex(rawValue: .max - 1)

    private var heap: [Entry] = []
    private var latest: UInt64 = 0

    /// Returns true if a waiting device is in a heap.
    static func holds(_ record: DeviceRecord) -> Bool { record.nextReady == Self.mark }

    /// The first device in the order.
    var first: DeviceIndex? { self.heap.first?.device }

    func order(at place: Int) -> ReadyOrder { self.heap[place].order }

    mutating func insert(_ device: DeviceIndex, _ order: ReadyOrder, in devices: inout DeviceTable) {
        self.latest += 1
        let entry = Entry(order: order, number: self.latest, device: device)
        self.heap.append(entry)
        devices[device].nextReady = Self.mark
        self.rise(entry, from: self.heap.count - 1, in: &devices)
    }

    mutating func remove(_ device: DeviceIndex, in devices: inout DeviceTable) {
        let place = Int(devices[device].previousReady.rawValue)
        devices[device].previousReady = .none
        devices[device].nextReady = .none
        let last = self.heap.removeLast()
        if place < self.heap.count {
            self.rise(last, from: place, in: &devices)
            self.sink(last, from: Int(devices[last.device].previousReady.rawValue), in: &devices)
        }
        // Releases memory after a peak.
        if self.heap.isEmpty { self.heap = [] }
    }

    private mutating func rise(_ entry: Entry, from start: Int, in devices: inout DeviceTable) {
        var place = start
        while place > 0, entry.launchesBefore(self.heap[(place - 1) / 2]) {
            self.put(self.heap[(place - 1) / 2], at: place, in: &devices)
            place = (place - 1) / 2
        }
        self.put(entry, at: place, in: &devices)
    }

    private mutating func sink(_ entry: Entry, from start: Int, in devices: inout DeviceTable) {
        var place = start
        while place * 2 + 1 < self.heap.count {
            var child = place * 2 + 1
            if child + 1 < self.heap.count, self.heap[child + 1].launchesBefore(self.heap[child]) { child += 1 }
            guard self.heap[child].launchesBefore(entry) else { break }
            self.put(self.heap[child], at: place, in: &devices)
            place = child
        }
        self.put(entry, at: place, in: &devices)
    }

    private mutating func put(_ entry: Entry, at place: Int, in devices: inout DeviceTable) {
        self.heap[place] = entry
        devices[entry.device].previousReady = DeviceIndex(rawValue: UInt32(place))
    }
}

/// A first-in, first-out queue. Removing the first element takes amortized constant time.
///
/// The code is inlinable because unspecialized generic code would be many times slower.
@usableFromInline
package struct FIFOQueue<Element> {
    @usableFromInline var elements: [Element] = []
    /// The index of the first remaining element.
    @usableFromInline var firstIndex = 0

    /// Creates an empty queue.
    @inlinable
    package init() {}

    @inlinable
    package var isEmpty: Bool { self.firstIndex == self.elements.count }

    /// The oldest element.
    @inlinable
    package var first: Element? {
        self.firstIndex < self.elements.count ? self.elements[self.firstIndex] : nil
    }

    @inlinable
    package mutating func append(_ element: Element) { self.elements.append(element) }

    /// Removes and returns the oldest element.
    @inlinable
    package mutating func popFirst() -> Element? {
        guard self.firstIndex < self.elements.count else { return nil }
        let element = self.elements[self.firstIndex]
        self.firstIndex += 1
        // An empty queue keeps its memory. A queue that is never empty deletes its removed elements now and then, to
        // bound its memory.
        if self.firstIndex == self.elements.count {
            self.elements.removeAll(keepingCapacity: true)
            self.firstIndex = 0
        } else if self.firstIndex >= 1024, self.firstIndex * 2 >= self.elements.count {
            self.elements.removeFirst(self.firstIndex)
            self.firstIndex = 0
        }
        return element
    }

    /// The number of elements that fit without a new allocation.
    @inlinable
    package var capacity: Int { self.elements.capacity }

    /// Releases the memory of an empty queue if its capacity exceeds `count` elements.
    @inlinable
    package mutating func shrink(keeping count: Int) {
        guard self.isEmpty, self.capacity > count else { return }
        self = FIFOQueue()
    }

    /// Removes every element and keeps the memory.
    @inlinable
    package mutating func removeAll() {
        self.elements.removeAll(keepingCapacity: true)
        self.firstIndex = 0
    }
}

/// A request or a session that has begun to wait for a slot.
package struct ReadyTask: Sendable {
    package let device: DeviceIndex
    package let topic: TopicIndex
    package let target: LaunchTarget
    /// The position among all waiting launches.
    package let order: ReadyOrder
    /// The arrival number of the device's task.
    let arrival: UInt64
}

/// The properties that a stream must have to receive a launch.
package struct LaunchTarget: Hashable, Sendable {
    package let kind: LaunchKind
    /// The identifier, or the name of the session; empty for a push.
    package let name: String
    /// The resources that the stream must offer.
    package let resources: [String]

    package static let push = LaunchTarget(kind: .push, name: "")

    package init(kind: LaunchKind, name: String, resources: [String] = []) {
        self.kind = kind
        self.name = name
        self.resources = resources
    }
}

extension DeviceEngine {
    /// Returns true if the device has requests, sessions or habits.
    package func hasTasks(_ device: DeviceIndex) -> Bool { self.devices[device].hasTasks }

    /// Returns the time of the device's last use; `distantPast` for never.
    func lastUse(_ device: DeviceIndex) -> Instant {
        guard self.devices[device].hasTasks else { return .distantPast }
        return self.tasks[device]?.policy.usage.last ?? .distantPast
    }

    /// Returns the position of a device's push among all launches that wait for a slot.
    package func readyOrder(_ device: DeviceIndex) -> ReadyOrder {
        self.ready.order(device, since: self.readySince(device), in: self.devices)
    }

    /// Returns true if the task still waits only for a slot.
    package func isReady(_ task: ReadyTask) -> Bool {
        guard let row = self.tasks[task.device], row.readySince(task.arrival) != nil,
            let waiting = row.policy.waiting.first(where: { $0.arrival == task.arrival })
        else { return false }
        return LaunchKind(waiting.kind) == task.target.kind && row.text(waiting.name) == task.target.name
    }

    /// Launches the device's next push or task by its policy, if a slot is free.
    ///
    /// - `hasSlot`: returns true if a stream that accepts the launch has a free slot for this device.
    /// - Returns: the wake, valid until the next call of the engine; nil if nothing launches.
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
    /// Returns the properties that a stream must have to receive this task.
    func target(_ task: BackgroundTask) -> LaunchTarget {
        LaunchTarget(
            kind: LaunchKind(task.kind),
            name: self.text(task.name),
            resources: self.details(task).resources
        )
    }
}

package import Policy

/// Devices that wait for nothing but a slot: a queue for each topic, in the order of `ReadyOrder`.
///
/// Devices that were never used are a list in the order in which they came to wait: its links are in the devices' rows,
/// so that it takes no memory of its own. Devices that were used are in a heap, and the first of the two goes first.
package struct ReadyQueues: ~Copyable {
    private struct Queue {
        var first = DeviceIndex.none
        var last = DeviceIndex.none
        var count = 0
        /// Devices that were used.
        var used = UsedDevices()
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

    /// The device that goes first to a slot of this topic.
    package func first(_ topic: TopicIndex, at now: Instant, in devices: borrowing DeviceTable) -> DeviceIndex? {
        let first = self.queues[Int(topic.rawValue)].first
        guard let used = self.queues[Int(topic.rawValue)].used.first else { return first == .none ? nil : first }
        guard first != .none else { return used }
        func second(_ device: DeviceIndex) -> Int64 {
            ReadyOrder.second(of: now - devices[device].readyMilliseconds(at: now))
        }
        return second(used) <= second(first) ? used : first
    }

    /// The place of a waiting device among all that wait: a use since it came to wait does not move it within
    /// one engine. A shared store orders by the last use that is known when the row is read.
    ///
    /// - Parameter moment: When it came to wait.
    package func order(
        _ device: DeviceIndex,
        since moment: Instant,
        in devices: borrowing DeviceTable
    ) -> ReadyOrder {
        guard UsedDevices.holds(devices[device]) else { return ReadyOrder(since: moment, lastUse: .distantPast) }
        let topic = Int(devices[device].topic.rawValue)
        return self.queues[topic].used.order(at: Int(devices[device].previousReady.rawValue))
    }

    /// How many devices wait for a slot of this topic.
    package func count(_ topic: TopicIndex) -> Int { self.queues[Int(topic.rawValue)].count }

    /// The longest wait of a device in any queue, in milliseconds; nil if no device waits. Among used devices of the
    /// same second, the wait of the first one counts.
    ///
    /// - `longestOf`: the most that devices of a topic can have waited; nil for a topic that is not looked at.
    package func longestMilliseconds(
        at now: Instant,
        in devices: borrowing DeviceTable,
        longestOf: (TopicIndex) -> Int64? = { _ in .max }
    ) -> Int64? {
        var longest: Int64?
        for (number, queue) in self.queues.enumerated() where queue.count > 0 {
            guard let most = longestOf(TopicIndex(rawValue: UInt32(number))) else { continue }
            for device in [queue.first, queue.used.first ?? .none] where device != .none {
                longest = max(longest ?? 0, min(most, devices[device].readyMilliseconds(at: now)))
            }
        }
        return longest
    }

    /// Puts a device that waits in no queue at its place in its topic's.
    ///
    /// - Parameters:
    ///   - moment: When it came to wait.
    ///   - lastUse: When it was last used; `distantPast` for never.
    package mutating func append(
        _ device: DeviceIndex,
        since moment: Instant,
        lastUse: Instant = .distantPast,
        in devices: inout DeviceTable
    ) {
        let topic = Int(devices[device].topic.rawValue)
        let last = self.queues[topic].last
        devices[device].becameReady(at: moment)
        guard lastUse == .distantPast else {
            self.queues[topic].used.insert(device, ReadyOrder(since: moment, lastUse: lastUse), in: &devices)
            self.queues[topic].count += 1
            self.newcomers.append(device)
            return
        }
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
        if UsedDevices.holds(devices[device]) {
            self.queues[topic].used.remove(device, in: &devices)
            self.queues[topic].count -= 1
            devices[device].isReady = false
            return
        }
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

/// The order of launches among everything that waits for a slot: the earliest second first, then the device that was
/// used last, then the first comer.
package struct ReadyOrder: Comparable, Sendable {
    /// When it came to wait.
    let since: Instant
    /// When its device was last used; `distantPast` for never.
    let lastUse: Instant

    /// The second of policy time that `moment` is in.
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

/// The waiting devices of a topic that were used: a heap, of which each device's row knows its place.
private struct UsedDevices {
    private struct Entry {
        let order: ReadyOrder
        /// The number in the order of coming.
        let number: UInt64
        let device: DeviceIndex

        func goesBefore(_ other: Entry) -> Bool {
            self.order == other.order ? self.number < other.number : self.order < other.order
        }
    }

    /// The link of a device that is in a heap; its other one is its place there.
    private static let mark = DeviceIndex(rawValue: .max - 1)

    private var heap: [Entry] = []
    private var latest: UInt64 = 0

    /// Returns true if a device that waits is in a heap.
    static func holds(_ record: DeviceRecord) -> Bool { record.nextReady == Self.mark }

    /// The device that goes first.
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
        // The memory of a crowd is released.
        if self.heap.isEmpty { self.heap = [] }
    }

    private mutating func rise(_ entry: Entry, from start: Int, in devices: inout DeviceTable) {
        var place = start
        while place > 0, entry.goesBefore(self.heap[(place - 1) / 2]) {
            self.put(self.heap[(place - 1) / 2], at: place, in: &devices)
            place = (place - 1) / 2
        }
        self.put(entry, at: place, in: &devices)
    }

    private mutating func sink(_ entry: Entry, from start: Int, in devices: inout DeviceTable) {
        var place = start
        while place * 2 + 1 < self.heap.count {
            var child = place * 2 + 1
            if child + 1 < self.heap.count, self.heap[child + 1].goesBefore(self.heap[child]) { child += 1 }
            guard self.heap[child].goesBefore(entry) else { break }
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
    /// The place among all that wait.
    package let order: ReadyOrder
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

    /// When the device was last used; `distantPast` for never.
    func lastUse(_ device: DeviceIndex) -> Instant {
        guard self.devices[device].hasTasks else { return .distantPast }
        return self.tasks[device]?.policy.usage.last ?? .distantPast
    }

    /// The place of a device among all that wait for a slot, by when its push came to.
    package func readyOrder(_ device: DeviceIndex) -> ReadyOrder {
        self.ready.order(device, since: self.readySince(device), in: self.devices)
    }

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

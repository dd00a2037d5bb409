import Policy
import Wire

/// The streams subscribed to one topic.
struct TopicWorkers {
    /// The streams that take pushes of any device.
    var pushes = StreamRotation()
    var naming = NamingStreams()
    var tasks = TaskRotations()
    /// How many streams offer each resource.
    private var offers: [String: Int] = [:]
    /// What waits for a slot of a stream that names no device.
    var waiting = WaitingTasks()
    /// What the streams hear of conditions.
    var conditions = ConditionsLog()
    /// Whether the topic waits for its turn to be told.
    var isToldOfConditions = false
    /// The stalled streams, by the order in which they came.
    var stalled: [UInt64: Subscription] = [:]
    var connected = 0
    /// How many streams take pushes of any device.
    private var takingPushes = 0
    var slots = 0
    var busy = 0

    /// Puts a free stream that takes wakes of any device at the end of the rotations.
    mutating func rotate(_ subscription: Subscription) {
        self.tasks.rotate(subscription)
        guard subscription.request.devices.isEmpty, subscription.isFreeForPush else { return }
        self.pushes.append(subscription)
    }

    /// A stream got a wake: if it was next, it goes to the end.
    mutating func turnEnded(_ subscription: Subscription, isPush: Bool) {
        if isPush {
            self.pushes.turnEnded(subscription)
        } else {
            self.tasks.turnEnded(subscription)
        }
    }

    /// A stream that was next did not get its push after all: it is next again.
    mutating func turnTakenBack(_ subscription: Subscription) {
        if subscription.request.takesPushes { self.pushes.turnTakenBack(subscription) }
    }

    /// The stream that a task of this device goes to: a free one that names it, or else the one whose turn it is.
    mutating func free(_ token: borrowing DeviceToken, _ target: LaunchTarget) -> Subscription? {
        self.naming.first(token, target) ?? self.tasks.next(target)
    }

    /// Whether any stream, free or not, takes such a push or task of this device.
    func isTaken(_ token: borrowing DeviceToken, _ target: LaunchTarget) -> Bool {
        if self.naming.isTaken(token, target) { return true }
        return target.kind == .push ? self.takingPushes > 0 : self.tasks.isTaken(target)
    }

    /// What the streams offer, in the order of their names.
    var resources: [String] { self.offers.keys.sorted() }

    /// Conditions of a device have changed: all streams that name it, or none, are to hear of it.
    mutating func conditionsChanged(_ device: DeviceIndex, _ token: borrowing DeviceToken) {
        self.conditions.append(device)
        var naming: [Subscription] = []
        self.naming.forEachHearing(token) { naming.append($0) }
        for stream in naming { self.conditions.append(device, for: stream) }
    }

    /// A stream holds more or fewer wakes, or can take one that could not, or no more.
    mutating func changed(_ subscription: Subscription) {
        if subscription.request.devices.isEmpty {
            self.tasks.changed(subscription)
        } else {
            self.naming.changed(subscription)
        }
    }

    mutating func insert(_ subscription: Subscription) {
        self.connected += 1
        if subscription.takesAnyPush { self.takingPushes += 1 }
        self.slots += subscription.slots
        self.naming.insert(subscription)
        if subscription.request.devices.isEmpty { self.tasks.insert(subscription) }
        for resource in subscription.request.resources { self.offers[resource, default: 0] += 1 }
        if subscription.request.reportsConditions { self.conditions.insert(subscription) }
        self.rotate(subscription)
    }

    mutating func remove(_ subscription: Subscription) {
        self.connected -= 1
        if subscription.takesAnyPush { self.takingPushes -= 1 }
        self.slots -= subscription.slots
        self.naming.remove(subscription)
        self.tasks.remove(subscription)
        self.pushes.remove(subscription)
        for resource in subscription.request.resources {
            self.offers[resource] = self.offers[resource].flatMap { $0 > 1 ? $0 - 1 : nil }
        }
        if subscription.request.reportsConditions { self.conditions.remove(subscription) }
    }
}

/// The free streams that take pushes of any device, in turns: each gets one wake and goes to the end.
///
/// A stream that is no longer free is skipped, and is appended again once it is free.
struct StreamRotation {
    private var streams: [Subscription] = []
    /// The place of the stream that is next.
    private var first = 0
    /// The number of streams that stand here though they have ended.
    private var ended = 0

    /// Returns the free stream whose turn it is.
    mutating func next() -> Subscription? {
        while self.first < self.streams.count {
            let stream = self.streams[self.first]
            if stream.isFree { return stream }
            self.dropFirst()
        }
        return nil
    }

    /// Returns whether the stream is next.
    func isNext(_ stream: Subscription) -> Bool {
        self.first < self.streams.count && self.streams[self.first] === stream
    }

    /// Puts a free stream at the end, unless it stands here.
    mutating func append(_ stream: Subscription) {
        guard !stream.isInRotation else { return }
        stream.isInRotation = true
        self.streams.append(stream)
    }

    /// The stream got a wake: if it was next, it goes to the end.
    mutating func turnEnded(_ stream: Subscription) {
        guard self.isNext(stream) else { return }
        self.dropFirst()
        if stream.isFree { self.append(stream) }
    }

    /// The stream, which was next, did not get its wake after all: it is next again.
    mutating func turnTakenBack(_ stream: Subscription) {
        if stream.isInRotation, self.streams.count - self.first > 1, self.streams.last === stream {
            self.streams.removeLast()
            stream.isInRotation = false
        }
        guard stream.isFree, !stream.isInRotation else { return }
        stream.isInRotation = true
        if self.first > 0 {
            self.first -= 1
            self.streams[self.first] = stream
        } else {
            self.streams.insert(stream, at: 0)
        }
    }

    /// Notes that a stream has ended. Streams may come and go though no wake ever turns the rotation.
    mutating func remove(_ stream: Subscription) {
        guard stream.isInRotation else { return }
        self.ended += 1
        guard self.ended > 64, self.ended * 2 > self.streams.count else { return }
        self.streams.removeFirst(self.first)
        self.first = 0
        self.streams.removeAll { $0.hasEnded }
        self.ended = 0
    }

    private mutating func dropFirst() {
        let stream = self.streams[self.first]
        stream.isInRotation = false
        if stream.hasEnded { self.ended -= 1 }
        self.first += 1
        if self.first > 64, self.first * 2 > self.streams.count {
            self.streams.removeFirst(self.first)
            self.first = 0
        }
    }
}

/// The streams of a topic that name devices: of each device those that are free for a push, the one with the fewest
/// wakes first, and those that take tasks or hear of conditions.
///
/// Finding that one costs a look-up. A change of a stream costs a few steps of a heap for each device that it names, as
/// does its end, however many other streams name them.
struct NamingStreams {
    /// Where a stream stands for one of its devices.
    struct Place {
        /// The device's queue.
        fileprivate let queue: Int
        /// The place in the queue's heap; nil while the stream is not free.
        fileprivate var position: Int?
        /// The place among the queue's listeners; nil for a stream that takes pushes and no more.
        fileprivate var listener: Int?
    }

    /// A free stream, and which of its places leads here.
    private struct Entry {
        let subscription: Subscription
        let place: Int
        /// The order in which streams came: among equals the first goes first, so that a simulation replays.
        let number: UInt64

        func isBefore(_ other: Entry) -> Bool {
            let (wakes, others) = (self.subscription.wakes.count, other.subscription.wakes.count)
            return wakes != others ? wakes < others : self.number < other.number
        }
    }

    /// The streams that name one device.
    private struct Queue {
        /// How many streams there are, free or not.
        var count = 0
        /// How many of them take pushes.
        var pushCount = 0
        /// The streams that are free for a push: a binary heap.
        var heap: [Entry] = []
        /// The streams that take tasks or hear of conditions, free or not, in no order.
        var listeners: [Entry] = []
    }

    private var queues: [Queue] = []
    /// Queues of devices that no stream names any more.
    private var unused: [Int] = []
    private var numbers: [DeviceToken: Int] = [:]
    private var lastNumber: UInt64 = 0

    /// How many streams name this device, free or not.
    func count(_ token: DeviceToken) -> Int {
        self.numbers[token].map { self.queues[$0].count } ?? 0
    }

    /// The free stream with the fewest wakes that names this device.
    mutating func first(_ token: borrowing DeviceToken) -> Subscription? {
        guard !self.numbers.isEmpty, let queue = self.numbers[copy token] else { return nil }
        while let entry = self.queues[queue].heap.first {
            if entry.subscription.isFree { return entry.subscription }
            // A bound has been lowered since it was put here.
            self.take(0, from: queue)
        }
        return nil
    }

    /// The free stream with the fewest wakes that names this device and takes such a task.
    ///
    /// Every stream is looked at that names the device, of which there are at most `streamsPerDeviceMax`.
    func first(_ token: borrowing DeviceToken, _ target: LaunchTarget) -> Subscription? {
        guard !self.numbers.isEmpty, let queue = self.numbers[copy token] else { return nil }
        var best: Entry?
        for entry in self.queues[queue].listeners where entry.subscription.isFree {
            if let best, best.isBefore(entry) { continue }
            if entry.subscription.request.takes(target) { best = entry }
        }
        return best?.subscription
    }

    /// Whether any stream that names this device, free or not, takes such a push or task.
    func isTaken(_ token: borrowing DeviceToken, _ target: LaunchTarget) -> Bool {
        guard !self.numbers.isEmpty, let queue = self.numbers[copy token] else { return false }
        if target.kind == .push { return self.queues[queue].pushCount > 0 }
        return self.queues[queue].listeners.contains { $0.subscription.request.takes(target) }
    }

    /// Calls `body` with each stream that names this device and hears of conditions, in the order in which they came.
    func forEachHearing(_ token: borrowing DeviceToken, _ body: (Subscription) -> Void) {
        guard !self.numbers.isEmpty, let queue = self.numbers[copy token] else { return }
        for entry in self.queues[queue].listeners.sorted(by: { $0.number < $1.number })
        where entry.subscription.request.reportsConditions {
            body(entry.subscription)
        }
    }

    mutating func insert(_ subscription: Subscription) {
        guard !subscription.request.devices.isEmpty else { return }
        self.lastNumber += 1
        subscription.number = self.lastNumber
        var named: Set<DeviceToken> = []
        for token in subscription.request.devices where named.insert(token).inserted {
            let queue = self.numbers[token] ?? self.makeQueue(token)
            self.queues[queue].count += 1
            if subscription.request.takesPushes { self.queues[queue].pushCount += 1 }
            subscription.places.append(Place(queue: queue))
            guard subscription.request.takesTasks || subscription.request.reportsConditions else { continue }
            let place = subscription.places.count - 1
            subscription.places[place].listener = self.queues[queue].listeners.count
            self.queues[queue].listeners.append(
                Entry(subscription: subscription, place: place, number: subscription.number)
            )
        }
        self.changed(subscription)
    }

    /// Takes out a stream that has ended.
    mutating func remove(_ subscription: Subscription) {
        guard !subscription.places.isEmpty else { return }
        for place in subscription.places {
            if let position = place.position { self.take(position, from: place.queue) }
            if let listener = place.listener { self.takeListener(listener, from: place.queue) }
            self.queues[place.queue].count -= 1
            if subscription.request.takesPushes { self.queues[place.queue].pushCount -= 1 }
        }
        for token in Set(subscription.request.devices) {
            guard let queue = self.numbers[token], self.queues[queue].count == 0 else { continue }
            self.numbers[token] = nil
            self.unused.append(queue)
        }
        subscription.places = []
    }

    /// Brings a stream's places in line with its wakes, and with whether it is free.
    mutating func changed(_ subscription: Subscription) {
        let isFree = subscription.isFreeForPush
        for place in subscription.places.indices {
            let queue = subscription.places[place].queue
            switch (subscription.places[place].position, isFree) {
            case (nil, false): break
            case (nil, true):
                let entry = Entry(subscription: subscription, place: place, number: subscription.number)
                self.queues[queue].heap.append(entry)
                self.rise(self.queues[queue].heap.count - 1, in: queue)
            case (let position?, true):
                // As a rule a device has one worker of its own.
                if self.queues[queue].heap.count > 1 { self.settle(position, in: queue) }
            case (let position?, false): self.take(position, from: queue)
            }
        }
    }

    private mutating func makeQueue(_ token: DeviceToken) -> Int {
        let queue: Int
        if let old = self.unused.popLast() {
            queue = old
        } else {
            queue = self.queues.count
            self.queues.append(Queue())
        }
        self.numbers[token] = queue
        return queue
    }
}

// MARK: - Heaps

extension NamingStreams {
    private mutating func takeListener(_ position: Int, from queue: Int) {
        let last = self.queues[queue].listeners.removeLast()
        guard position < self.queues[queue].listeners.count else { return }
        self.queues[queue].listeners[position] = last
        last.subscription.places[last.place].listener = position
    }

    private mutating func take(_ position: Int, from queue: Int) {
        let entry = self.queues[queue].heap[position]
        entry.subscription.places[entry.place].position = nil
        let last = self.queues[queue].heap.removeLast()
        guard position < self.queues[queue].heap.count else { return }
        self.put(last, at: position, in: queue)
        self.settle(position, in: queue)
    }

    /// Moves an entry to where it belongs, up or down.
    private mutating func settle(_ position: Int, in queue: Int) {
        let entry = self.queues[queue].heap[position]
        if position > 0, entry.isBefore(self.queues[queue].heap[(position - 1) >> 1]) {
            self.rise(position, in: queue)
        } else {
            self.sink(position, in: queue)
        }
    }

    private mutating func rise(_ start: Int, in queue: Int) {
        var position = start
        let entry = self.queues[queue].heap[position]
        while position > 0 {
            let parent = (position - 1) >> 1
            guard entry.isBefore(self.queues[queue].heap[parent]) else { break }
            self.put(self.queues[queue].heap[parent], at: position, in: queue)
            position = parent
        }
        self.put(entry, at: position, in: queue)
    }

    private mutating func sink(_ start: Int, in queue: Int) {
        var position = start
        let entry = self.queues[queue].heap[position]
        while true {
            var child = position * 2 + 1
            guard child < self.queues[queue].heap.count else { break }
            if child + 1 < self.queues[queue].heap.count,
                self.queues[queue].heap[child + 1].isBefore(self.queues[queue].heap[child])
            {
                child += 1
            }
            guard self.queues[queue].heap[child].isBefore(entry) else { break }
            self.put(self.queues[queue].heap[child], at: position, in: queue)
            position = child
        }
        self.put(entry, at: position, in: queue)
    }

    private mutating func put(_ entry: Entry, at position: Int, in queue: Int) {
        self.queues[queue].heap[position] = entry
        entry.subscription.places[entry.place].position = position
    }
}

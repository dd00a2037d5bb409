import Policy
import Wire

/// The streams subscribed to one topic.
struct TopicWorkers {
    /// The streams that accept pushes of any device.
    var pushes = StreamRotation()
    var naming = NamingStreams()
    var tasks = TaskRotations()
    /// The number of streams that offer each resource.
    private var offers: [String: Int] = [:]
    /// Tasks that wait for a slot.
    var waiting = WaitingTasks()
    /// The condition changes to send to the streams.
    var conditions = ConditionsLog()
    /// True if the topic is in the queue of topics with condition changes.
    var hasQueuedConditions = false
    /// The stalled streams, by order of arrival.
    var stalled: [UInt64: Subscription] = [:]
    var connected = 0
    /// The number of streams that accept pushes of any device.
    private var takingPushes = 0
    var slots = 0
    var busy = 0

    /// Appends a free stream that accepts wakes of any device to the rotations.
    mutating func rotate(_ subscription: Subscription) {
        self.tasks.rotate(subscription)
        guard subscription.request.devices.isEmpty, subscription.isFreeForPush else { return }
        self.pushes.append(subscription)
    }

    /// Moves a stream that got a wake to the end, if it was next.
    mutating func turnEnded(_ subscription: Subscription, isPush: Bool) {
        if isPush {
            self.pushes.turnEnded(subscription)
        } else {
            self.tasks.turnEnded(subscription)
        }
    }

    /// Makes a stream next again, because its last push was taken back.
    mutating func turnTakenBack(_ subscription: Subscription) {
        if subscription.request.takesPushes { self.pushes.turnTakenBack(subscription) }
    }

    /// Returns the stream for a task of this device: a free stream that names the device, or else the next in rotation.
    mutating func free(_ token: borrowing DeviceToken, _ target: LaunchTarget) -> Subscription? {
        self.naming.first(token, target) ?? self.tasks.next(target)
    }

    /// Returns true if any stream, free or not, accepts this push or task of the device.
    func isTaken(_ token: borrowing DeviceToken, _ target: LaunchTarget) -> Bool {
        if self.naming.isTaken(token, target) { return true }
        return target.kind == .push ? self.takingPushes > 0 : self.tasks.isTaken(target)
    }

    /// The resources that the streams offer, sorted by name.
    var resources: [String] { self.offers.keys.sorted() }

    /// Adds a condition change for all streams that name this device or no device.
    mutating func conditionsChanged(_ device: DeviceIndex, _ token: borrowing DeviceToken) {
        self.conditions.append(device)
        var naming: [Subscription] = []
        self.naming.forEachConditionsReader(token) { naming.append($0) }
        for stream in naming { self.conditions.append(device, for: stream) }
    }

    /// Updates the positions of a stream after a change of its wakes or of its readiness.
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

/// The rotation of free streams that accept pushes of any device: a stream gets one wake and moves to the end.
///
/// Streams that are no longer free are dropped, and appended again when they are free.
struct StreamRotation {
    private var streams: [Subscription] = []
    /// The index of the next stream.
    private var first = 0
    /// The number of entries of ended streams.
    private var ended = 0

    /// Returns the next free stream.
    mutating func next() -> Subscription? {
        while self.first < self.streams.count {
            let stream = self.streams[self.first]
            if stream.isFree { return stream }
            self.dropFirst()
        }
        return nil
    }

    /// Returns true if the stream is next.
    func isNext(_ stream: Subscription) -> Bool {
        self.first < self.streams.count && self.streams[self.first] === stream
    }

    /// Appends a free stream if it is not in the rotation.
    mutating func append(_ stream: Subscription) {
        guard !stream.isInRotation else { return }
        stream.isInRotation = true
        self.streams.append(stream)
    }

    /// Moves a stream that got a wake to the end, if it was next.
    mutating func turnEnded(_ stream: Subscription) {
        guard self.isNext(stream) else { return }
        self.dropFirst()
        if stream.isFree { self.append(stream) }
    }

    /// Makes a stream next again, because its last wake was taken back.
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

    /// Notes that a stream has ended. Removes ended streams if there are many, because nothing else drops them while no
    /// wakes launch.
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

/// The streams of a topic that name devices. For each device, there is a heap of the streams free for a push, ordered
/// by their number of wakes. A list has the streams that accept tasks or receive condition changes.
///
/// Finding a stream for a push costs one lookup. A change or the end of a stream costs a few heap steps for each device
/// that it names, even if many other streams name the device.
struct NamingStreams {
    /// The positions of a stream for one of its devices.
    struct Place {
        /// The device's queue.
        fileprivate let queue: Int
        /// The index in the queue's heap; nil while the stream is not free.
        fileprivate var position: Int?
        /// The index in the queue's listeners; nil for a stream that only receives pushes.
        fileprivate var listener: Int?
    }

    /// A stream, and the index in its `places`.
    private struct Entry {
        let subscription: Subscription
        let place: Int
        /// The sequence number of the stream. It breaks ties, so that simulations are reproducible.
        let number: UInt64

        func isBefore(_ other: Entry) -> Bool {
            let (wakes, others) = (self.subscription.wakes.count, other.subscription.wakes.count)
            return wakes != others ? wakes < others : self.number < other.number
        }
    }

    /// The streams that name one device.
    private struct Queue {
        /// The number of streams, free or not.
        var count = 0
        /// The number of streams that accept pushes.
        var pushCount = 0
        /// The streams that are free for a push: a binary heap.
        var heap: [Entry] = []
        /// The streams that accept tasks or receive condition changes, free or not, in no particular order.
        var listeners: [Entry] = []
    }

    private var queues: [Queue] = []
    /// Queues of devices that no stream names.
    private var unused: [Int] = []
    private var numbers: [DeviceToken: Int] = [:]
    private var lastNumber: UInt64 = 0

    /// Returns the number of streams that name this device, free or not.
    func count(_ token: DeviceToken) -> Int {
        self.numbers[token].map { self.queues[$0].count } ?? 0
    }

    /// Returns the free stream with the fewest wakes that names this device.
    mutating func first(_ token: borrowing DeviceToken) -> Subscription? {
        guard !self.numbers.isEmpty, let queue = self.numbers[copy token] else { return nil }
        while let entry = self.queues[queue].heap.first {
            if entry.subscription.isFree { return entry.subscription }
            // The stream is not free because a limit was lowered.
            self.take(0, from: queue)
        }
        return nil
    }

    /// Returns the free stream with the fewest wakes that names this device and accepts this task.
    ///
    /// Examines every stream that names the device, at most `streamsPerDeviceMax`.
    func first(_ token: borrowing DeviceToken, _ target: LaunchTarget) -> Subscription? {
        guard !self.numbers.isEmpty, let queue = self.numbers[copy token] else { return nil }
        var best: Entry?
        for entry in self.queues[queue].listeners where entry.subscription.isFree {
            if let best, best.isBefore(entry) { continue }
            if entry.subscription.request.takes(target) { best = entry }
        }
        return best?.subscription
    }

    /// Returns true if any stream that names this device, free or not, accepts this push or task.
    func isTaken(_ token: borrowing DeviceToken, _ target: LaunchTarget) -> Bool {
        guard !self.numbers.isEmpty, let queue = self.numbers[copy token] else { return false }
        if target.kind == .push { return self.queues[queue].pushCount > 0 }
        return self.queues[queue].listeners.contains { $0.subscription.request.takes(target) }
    }

    /// Calls `body` with each stream that names this device and receives condition changes, in order of arrival.
    func forEachConditionsReader(_ token: borrowing DeviceToken, _ body: (Subscription) -> Void) {
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

    /// Removes a stream that has ended.
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

    /// Updates a stream's positions after a change of its wakes or of its readiness.
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
                // Usually a single stream names the device.
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

    /// Restores the heap order at a position, moving the entry up or down.
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

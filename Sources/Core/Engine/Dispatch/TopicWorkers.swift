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
        for stream in self.naming.conditionsReaders(token) { self.conditions.append(device, for: stream) }
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

/// A rotation of free streams: a stream gets one wake and moves to the end.
///
/// Streams that are no longer free are dropped, and appended again when they are free. A stream is in the rotation for
/// pushes, and in one rotation for each of its `taskPlaces`.
struct StreamRotation {
    /// The place of a stream in the rotation for pushes.
    static let pushes = -1

    private struct Entry {
        let stream: Subscription
        /// The index in the stream's `taskPlaces`, or `pushes`.
        let place: Int
    }

    private var entries: [Entry] = []
    /// The index of the next stream.
    private var first = 0
    /// The number of entries of ended streams.
    private var ended = 0

    /// Returns the next free stream.
    mutating func next() -> Subscription? {
        while self.first < self.entries.count {
            let stream = self.entries[self.first].stream
            if stream.isFree { return stream }
            self.dropFirst()
        }
        return nil
    }

    /// The streams from the next one on, in order. Some may no longer be free.
    var streams: some Sequence<Subscription> { self.entries[self.first...].lazy.map(\.stream) }

    /// Returns true if the stream is next.
    func isNext(_ stream: Subscription) -> Bool {
        self.first < self.entries.count && self.entries[self.first].stream === stream
    }

    /// Appends a free stream if it is not in the rotation.
    mutating func append(_ stream: Subscription, _ place: Int = Self.pushes) {
        guard !stream.isInTurn(place) else { return }
        stream.setInTurn(place, true)
        self.entries.append(Entry(stream: stream, place: place))
    }

    /// Moves a stream that got a wake to the end, if it was next.
    mutating func turnEnded(_ stream: Subscription, _ place: Int = Self.pushes) {
        guard self.isNext(stream) else { return }
        // A free stream that is alone stays next.
        guard self.entries.count - self.first > 1 || !stream.isFree else { return }
        self.dropFirst()
        if stream.isFree { self.append(stream, place) }
    }

    /// Makes a stream next again, because its last wake was taken back.
    mutating func turnTakenBack(_ stream: Subscription, _ place: Int = Self.pushes) {
        if self.entries.count - self.first > 1, let last = self.entries.last, last.stream === stream,
            last.place == place
        {
            self.entries.removeLast()
            stream.setInTurn(place, false)
        }
        guard stream.isFree, !stream.isInTurn(place) else { return }
        stream.setInTurn(place, true)
        let entry = Entry(stream: stream, place: place)
        if self.first > 0 {
            self.first -= 1
            self.entries[self.first] = entry
        } else {
            self.entries.insert(entry, at: 0)
        }
    }

    /// Notes that a stream has ended. Removes ended streams if there are many, because nothing else drops them while no
    /// wakes launch.
    mutating func remove(_ stream: Subscription, _ place: Int = Self.pushes) {
        guard stream.isInTurn(place) else { return }
        self.ended += 1
        guard self.ended > 64, self.ended * 2 > self.entries.count else { return }
        self.entries.removeFirst(self.first)
        self.first = 0
        self.entries.removeAll { $0.stream.hasEnded }
        self.ended = 0
    }

    private mutating func dropFirst() {
        let entry = self.entries[self.first]
        if entry.stream.hasEnded { self.ended -= 1 } else { entry.stream.setInTurn(entry.place, false) }
        self.first += 1
        if self.first == self.entries.count {
            self.entries.removeAll(keepingCapacity: true)
            self.first = 0
        } else if self.first > 64, self.first * 2 > self.entries.count {
            self.entries.removeFirst(self.first)
            self.first = 0
        }
    }
}

/// The streams of a topic that name devices.
///
/// Each search examines every stream that names the device. The limit `streamsPerDeviceMax` bounds their number; with 0
/// nothing does.
struct NamingStreams {
    /// The streams that name a device, free or not, in order of arrival.
    private var streams: [DeviceToken: [Subscription]] = [:]

    /// Returns the number of streams that name this device, free or not.
    func count(_ token: DeviceToken) -> Int { self.streams[token]?.count ?? 0 }

    /// Returns the free stream with the fewest wakes, and the oldest of these, that names this device and accepts this
    /// launch. Without a target, the launch is a push.
    func first(_ token: borrowing DeviceToken, _ target: LaunchTarget? = nil) -> Subscription? {
        guard !self.streams.isEmpty, let streams = self.streams[copy token] else { return nil }
        var best: Subscription?
        for stream in streams where stream.isFree {
            if let best, best.wakes.count <= stream.wakes.count { continue }
            if target.map({ stream.request.takes($0) }) ?? stream.request.takesPushes { best = stream }
        }
        return best
    }

    /// Returns true if any stream that names this device, free or not, accepts this push or task.
    func isTaken(_ token: borrowing DeviceToken, _ target: LaunchTarget) -> Bool {
        guard !self.streams.isEmpty, let streams = self.streams[copy token] else { return false }
        return streams.contains { $0.request.takes(target) }
    }

    /// Returns the streams that name this device and receive condition changes, in order of arrival.
    func conditionsReaders(_ token: borrowing DeviceToken) -> [Subscription] {
        guard !self.streams.isEmpty, let streams = self.streams[copy token] else { return [] }
        return streams.filter(\.request.reportsConditions)
    }

    mutating func insert(_ subscription: Subscription) {
        for token in Set(subscription.request.devices) { self.streams[token, default: []].append(subscription) }
    }

    /// Removes a stream that has ended.
    mutating func remove(_ subscription: Subscription) {
        for token in Set(subscription.request.devices) {
            if let place = self.streams[token]?.firstIndex(where: { $0 === subscription }) {
                self.streams[token]?.remove(at: place)
            }
            if self.streams[token]?.isEmpty == true { self.streams[token] = nil }
        }
    }
}

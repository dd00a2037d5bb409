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

import Wire

/// The streams subscribed to one topic.
struct TopicWorkers {
    /// Streams that take pushes of any device, from the one that is next: each gets one wake and goes to the end. Those
    /// that are not free are skipped, and stand here again once they are.
    private var rotation: [Subscription] = []
    private var firstInRotation = 0
    /// How many streams stand in the rotation that have ended.
    private var endedInRotation = 0
    private var naming = NamingStreams()
    private var rotations = TaskRotations()
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
    var slots = 0
    var busy = 0

    /// Puts a free stream that takes wakes of any device at the end of the rotations.
    mutating func rotate(_ subscription: Subscription) {
        self.rotations.rotate(subscription)
        self.rotateForPushes(subscription)
    }

    private mutating func rotateForPushes(_ subscription: Subscription) {
        guard subscription.request.devices.isEmpty, subscription.isFreeForPush, !subscription.isInRotation else {
            return
        }
        subscription.isInRotation = true
        self.rotation.append(subscription)
    }

    /// The stream whose turn it is.
    mutating func nextInRotation() -> Subscription? {
        while self.firstInRotation < self.rotation.count {
            let subscription = self.rotation[self.firstInRotation]
            if subscription.isFree { return subscription }
            self.dropFirst()
        }
        return nil
    }

    /// The stream at the head of the rotation got its wake: it goes to the end.
    mutating func turnEnded(_ subscription: Subscription) {
        guard self.firstInRotation < self.rotation.count, self.rotation[self.firstInRotation] === subscription else {
            return
        }
        self.dropFirst()
        self.rotateForPushes(subscription)
    }

    /// Whether the stream is the next to get a push's wake.
    func isNext(_ subscription: Subscription) -> Bool {
        self.firstInRotation < self.rotation.count && self.rotation[self.firstInRotation] === subscription
    }

    /// A stream that was next did not get its wake after all: it is next again.
    mutating func turnTakenBack(_ subscription: Subscription) {
        if subscription.isInRotation, self.rotation.count - self.firstInRotation > 1,
            self.rotation.last === subscription
        {
            self.rotation.removeLast()
            subscription.isInRotation = false
        }
        guard subscription.isFreeForPush, !subscription.isInRotation else { return }
        subscription.isInRotation = true
        if self.firstInRotation > 0 {
            self.firstInRotation -= 1
            self.rotation[self.firstInRotation] = subscription
        } else {
            self.rotation.insert(subscription, at: 0)
        }
    }

    /// In which of its places the stream is the next to get a task.
    func taskPlacesNext(_ subscription: Subscription) -> [Int] { self.rotations.placesNext(subscription) }

    /// A stream did not get its task after all: it is next again where it was.
    ///
    /// - `places`: in which of its places it was.
    mutating func taskTurnTakenBack(_ subscription: Subscription, _ places: [Int]) {
        self.rotations.turnTakenBack(subscription, places)
    }

    /// The stream got a task.
    mutating func taskTurnEnded(_ subscription: Subscription) { self.rotations.turnEnded(subscription) }

    /// The stream that a task of this device goes to: a free one that names it, or else the one whose turn it is.
    mutating func free(_ token: borrowing DeviceToken, _ target: LaunchTarget) -> Subscription? {
        self.naming.first(token, target) ?? self.rotations.next(target)
    }

    /// Whether any stream, free or not, takes such a task of this device.
    func isTaken(_ token: borrowing DeviceToken, _ target: LaunchTarget) -> Bool {
        self.naming.isTaken(token, target) || self.rotations.isTaken(target)
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

    /// A free stream that takes pushes and names this device: the one with the fewest wakes.
    mutating func naming(_ token: borrowing DeviceToken) -> Subscription? { self.naming.first(token) }

    /// How many streams name this device, free or not.
    func countNaming(_ token: DeviceToken) -> Int { self.naming.count(token) }

    /// A stream holds more or fewer wakes, or can take one that could not, or no more.
    mutating func changed(_ subscription: Subscription) {
        if subscription.request.devices.isEmpty {
            self.rotations.changed(subscription)
        } else {
            self.naming.changed(subscription)
        }
    }

    /// How many streams were looked at one by one, for tasks that need several resources.
    var searched: Int64 { self.rotations.searched }

    mutating func insert(_ subscription: Subscription) {
        self.connected += 1
        self.slots += subscription.slots
        self.naming.insert(subscription)
        if subscription.request.devices.isEmpty { self.rotations.insert(subscription) }
        for resource in subscription.request.resources { self.offers[resource, default: 0] += 1 }
        if subscription.request.reportsConditions { self.conditions.insert(subscription) }
        self.rotate(subscription)
    }

    mutating func remove(_ subscription: Subscription) {
        self.connected -= 1
        self.slots -= subscription.slots
        self.naming.remove(subscription)
        self.rotations.remove(subscription)
        for resource in subscription.request.resources {
            self.offers[resource] = self.offers[resource].flatMap { $0 > 1 ? $0 - 1 : nil }
        }
        if subscription.request.reportsConditions { self.conditions.remove(subscription) }
        guard subscription.isInRotation else { return }
        // Streams may come and go without a wake ever turning the rotation.
        self.endedInRotation += 1
        guard self.endedInRotation > 64, self.endedInRotation * 2 > self.rotation.count else { return }
        self.rotation.removeFirst(self.firstInRotation)
        self.firstInRotation = 0
        self.rotation.removeAll { $0.hasEnded }
        self.endedInRotation = 0
    }

    private mutating func dropFirst() {
        self.rotation[self.firstInRotation].isInRotation = false
        if self.rotation[self.firstInRotation].hasEnded { self.endedInRotation -= 1 }
        self.firstInRotation += 1
        if self.firstInRotation > 64, self.firstInRotation * 2 > self.rotation.count {
            self.rotation.removeFirst(self.firstInRotation)
            self.firstInRotation = 0
        }
    }
}

import Bytes

/// The streams subscribed to one topic.
struct TopicWorkers {
    /// Streams that take pushes of any device, from the one that is next: each gets one wake and goes to the end. Those
    /// that are not free are skipped, and stand here again once they are.
    private var rotation: [Subscription] = []
    private var firstInRotation = 0
    /// How many streams stand in the rotation that have ended.
    private var endedInRotation = 0
    private var naming = NamingStreams()
    var connected = 0
    var slots = 0
    var busy = 0

    /// Puts a free stream that takes pushes of any device at the end of the rotation.
    mutating func rotate(_ subscription: Subscription) {
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
        self.rotate(subscription)
    }

    /// A free stream that takes pushes and names this device: the one with the fewest wakes.
    mutating func naming(_ token: borrowing DeviceToken) -> Subscription? { self.naming.first(token) }

    /// How many streams name this device, free or not.
    func countNaming(_ token: DeviceToken) -> Int { self.naming.count(token) }

    /// A stream that names devices holds more or fewer wakes, or can take one that could not, or no more.
    mutating func changed(_ subscription: Subscription) { self.naming.changed(subscription) }

    mutating func insert(_ subscription: Subscription) {
        self.connected += 1
        self.slots += subscription.slots
        self.naming.insert(subscription)
        self.rotate(subscription)
    }

    mutating func remove(_ subscription: Subscription) {
        self.connected -= 1
        self.slots -= subscription.slots
        self.naming.remove(subscription)
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

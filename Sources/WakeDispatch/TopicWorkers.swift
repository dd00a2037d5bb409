import Bytes

/// The streams subscribed to one topic.
struct TopicWorkers {
    /// Streams that take any device, from the one that is next: each gets one wake and goes to the end. Those that
    /// are not free are skipped, and stand here again once they are.
    private var rotation: [Subscription] = []
    private var firstInRotation = 0
    /// How many streams stand in the rotation that have ended.
    private var endedInRotation = 0
    /// Streams that name devices, by device.
    private var byDevice: [DeviceToken: [Subscription]] = [:]
    var connected = 0
    var slots = 0
    var busy = 0

    /// Puts a free stream that takes any device at the end of the rotation.
    mutating func rotate(_ subscription: Subscription) {
        guard subscription.request.devices.isEmpty, subscription.isFree, !subscription.isInRotation else { return }
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

    /// A free stream that names this device: the one with the fewest wakes.
    func naming(_ token: borrowing DeviceToken) -> Subscription? {
        guard !self.byDevice.isEmpty else { return nil }
        return self.byDevice[copy token]?.filter { $0.isFree }.min { $0.wakes.count < $1.wakes.count }
    }

    mutating func insert(_ subscription: Subscription) {
        self.connected += 1
        self.slots += subscription.slots
        for token in Set(subscription.request.devices) { self.byDevice[token, default: []].append(subscription) }
        self.rotate(subscription)
    }

    mutating func remove(_ subscription: Subscription) {
        self.connected -= 1
        self.slots -= subscription.slots
        for token in Set(subscription.request.devices) {
            self.byDevice[token]?.removeAll { $0 === subscription }
            if self.byDevice[token]?.isEmpty == true { self.byDevice[token] = nil }
        }
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

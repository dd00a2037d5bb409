import Policy
import Wire

/// The assignment of wakes to streams.
extension Dispatcher {
    /// Returns true if launches of a topic are allowed: the gateway is not shutting down and the topic is not paused.
    func launches(_ topic: TopicIndex) -> Bool { !self.isDraining && !self.engine.isPaused(topic) }

    /// Returns the stream for a wake of this device; nil if no stream is free, or launches of the topic are not
    /// allowed.
    ///
    /// - `target`: the launch; nil for a push.
    /// - `isForced`: true for a launch by an operator, which a paused topic does not prevent.
    func freeStream(
        _ topic: TopicIndex,
        _ token: borrowing DeviceToken,
        _ target: LaunchTarget? = nil,
        isForced: Bool = false
    ) -> Subscription? {
        guard isForced ? !self.isDraining : self.launches(topic) else { return nil }
        return self.streams.free(topic, token, target)
    }

    /// Offers the push of a device that has begun to wait to a free stream. The stream gets this push, or the launch
    /// that has waited longest for it.
    func offer(_ device: DeviceIndex) {
        let identity = self.engine.identity(device)
        guard let stream = self.freeStream(identity.topic, identity.token) else { return }
        if stream.request.devices.isEmpty {
            self.launchLongest(for: stream)
            guard stream.request.takesTasks, self.engine.longestReady(identity.topic) != nil else { return }
            // A task launched before the push. A slot for the push may remain, on this stream or another.
            if let next = self.streams.nextInRotation(identity.topic) { self.freed.append(next) }
        } else if self.engine.hasTasks(device) {
            self.launchNext(device)
        } else if let wake = self.engine.claim(device) {
            self.workLeft -= 1
            self.hand(wake, to: stream)
        }
    }

    /// Launches a topic's longest waiting push on the next stream of the rotation, or on a free stream that names the
    /// device.
    ///
    /// - Returns: false if no push waits, or no stream is free for a push.
    private func claimNext(_ topic: TopicIndex) -> Bool {
        while let device = self.engine.longestReady(topic) {
            // A task of the device may have waited longer than its push.
            if self.engine.hasTasks(device), self.launchNext(device) {
                if self.engine.longestReady(topic) != device { return true }
                continue
            }
            // `launchNext` may have expired a wake, which may have stalled the stream.
            guard let stream = self.streams.nextInRotation(topic) else { return false }
            guard let wake = self.engine.claim(device) else { continue }
            self.workLeft -= 1
            self.hand(wake, to: self.streams.naming(topic, wake.token) ?? stream)
            return true
        }
        return false
    }

    /// Fills the free slots of a stream with waiting launches.
    ///
    /// - Returns: false if this step reached its work limit.
    func fill(_ subscription: Subscription) -> Bool {
        guard !self.isDraining else { return true }
        // An operator can launch on a paused topic, so its streams must be in the rotation, too.
        if subscription.request.devices.isEmpty { self.streams.rotate(subscription) }
        guard self.launches(subscription.topic) else { return true }
        guard subscription.request.devices.isEmpty else { return self.fillNaming(subscription) }
        guard self.fillWithTasks(subscription) else { return false }
        guard subscription.request.takesPushes else { return true }
        while let stream = self.streams.nextInRotation(subscription.topic) {
            guard self.workLeft > 0 else { return false }
            guard self.launchLongest(for: stream) else { return self.workLeft > 0 }
        }
        return true
    }

    /// Fills the free slots of a stream that accepts tasks with the longest waiting launches that it accepts.
    ///
    /// - Returns: false if this step reached its work limit.
    private func fillWithTasks(_ subscription: Subscription) -> Bool {
        guard subscription.request.takesTasks else { return true }
        while subscription.isFree {
            guard self.workLeft > 0 else { return false }
            guard self.launchLongest(for: subscription) else { return self.workLeft > 0 }
        }
        return true
    }

    /// Gives a stream wakes of the devices that it names, in turn.
    ///
    /// - Returns: false if this step reached its work limit.
    private func fillNaming(_ subscription: Subscription) -> Bool {
        guard subscription.request.takesTasks else {
            for _ in subscription.request.devices where subscription.isFreeForPush {
                self.launchNamed(subscription.nextDevice(), subscription)
            }
            return true
        }
        // A device can launch in several lanes. Each device gets one wake per round, until a round launches nothing.
        var devicesLeft = subscription.request.devices.count
        while subscription.isFree, devicesLeft > 0 {
            guard self.workLeft > 0 else { return false }
            let isLaunched = self.launchNamed(subscription.nextDevice(), subscription)
            devicesLeft = isLaunched ? subscription.request.devices.count : devicesLeft - 1
        }
        return true
    }

    /// Launches the next push or task of a device that a free stream names, in the order of the device's policy. The
    /// wake may go to another free stream, even if another launch has waited longer for that stream.
    @discardableResult
    private func launchNamed(_ token: DeviceToken, _ subscription: Subscription) -> Bool {
        guard let device = self.engine.find(token), self.engine.topic(of: device) == subscription.topic else {
            return false
        }
        if self.engine.hasTasks(device) { return self.launchNext(device) }
        guard subscription.isFreeForPush, let wake = self.engine.claim(device) else { return false }
        self.workLeft -= 1
        self.hand(wake, to: subscription)
        return true
    }
}

// MARK: - Longest waits

extension Dispatcher {
    /// Launches the longest waiting push or task that a free stream accepts. The wake goes to this stream, or to a
    /// stream before it in the rotation.
    ///
    /// - Returns: false if nothing waits for the stream, or the work limit is reached.
    @discardableResult
    func launchLongest(for stream: Subscription) -> Bool {
        guard stream.request.takesTasks else { return self.claimNext(stream.topic) }
        // A stream whose slot was just freed may be missing from the rotations.
        self.streams.rotate(stream)
        lazy var longest = stream.isFreeForPush ? self.engine.longestReady(stream.topic) : nil
        lazy var pushOrder = longest.map { self.engine.readyOrder($0) }
        while self.workLeft > 0, let task = self.streams.firstWaiting(for: stream) {
            if let pushOrder, pushOrder <= task.order { break }
            if self.isReady(task) {
                if self.launchNext(task.device) { return true }
                // `launchNext` first applied due events of the device, which may have held the task or stalled the
                // stream.
                if self.isReady(task) { break }
            }
            self.workLeft -= 1
            self.streams.waitsNoLonger(task.device, task.target, task.topic)
        }
        guard stream.isFreeForPush, self.workLeft > 0 else { return false }
        return self.claimNext(stream.topic)
    }

    /// Adds a task that has begun to wait for a slot. While a stream is free for the task, makes the launches that wait
    /// for this stream, in order.
    func offer(_ task: ReadyTask) {
        guard self.isReady(task) else { return }
        let token = self.engine.identity(task.device).token
        self.streams.wait(task, key: self.engine.topics.key) { self.isReady($0) }
        while self.isReady(task), let stream = self.freeStream(task.topic, token, task.target) {
            guard self.workLeft > 0 else {
                // Examine the task again in the next step.
                self.freed.append(stream)
                return
            }
            let isForAny = stream.request.devices.isEmpty
            let isLaunched = isForAny ? self.launchLongest(for: stream) : self.launchNext(task.device)
            // If the stream has stalled, the loop offers the task to another stream.
            guard isLaunched || self.workLeft <= 0 || !stream.isFree else { return }
        }
    }

    /// Launches the next push or task of a device that has tasks, if a stream is free for it.
    ///
    /// - Returns: false if nothing was launched.
    @discardableResult
    func launchNext(_ device: DeviceIndex) -> Bool {
        guard self.launches(self.engine.topic(of: device)) else { return false }
        // The expiration of a wake must be sent before the launch that replaces it.
        if self.engine.catchUp(device) { self.takeExpiredWakes() }
        let identity = self.engine.identity(device)
        let wake = self.engine.claim(device) { self.streams.free(identity.topic, identity.token, $0) != nil }
        guard let wake else { return false }
        guard let stream = self.streams.free(identity.topic, identity.token, wake.target) else {
            preconditionFailure("a stream was free for what was launched")
        }
        self.workLeft -= 1
        self.streams.waitsNoLonger(device, wake.target, identity.topic)
        self.hand(wake, to: stream)
        return true
    }

    /// Returns true if a task still waits for a slot, in the same topic.
    func isReady(_ task: ReadyTask) -> Bool {
        self.engine.topic(of: task.device) == task.topic && self.engine.isReady(task)
    }
}

extension LaunchedWake {
    /// The properties that a stream must have to receive this wake.
    var target: LaunchTarget {
        switch self.cause {
        case .push: .push
        case .task(let launched):
            LaunchTarget(kind: self.kind, name: launched.name, resources: launched.details.resources)
        }
    }

    /// The bytes that count against the stream's limit until the wake is answered.
    var byteCount: Int {
        switch self.cause {
        case .push(_, let content): content?.payload.count ?? 0
        case .task(let launched):
            launched.name.utf8.count + (launched.details.title?.utf8.count ?? 0)
                + (launched.details.subtitle?.utf8.count ?? 0)
        }
    }
}

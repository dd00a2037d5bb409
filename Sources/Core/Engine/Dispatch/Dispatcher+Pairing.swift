import Policy
import Wire

/// Which stream a wake goes to, and what goes to a stream.
extension Dispatcher {
    /// Whether anything of a topic launches by itself.
    func launches(_ topic: TopicIndex) -> Bool { !self.isDraining && !self.engine.isPaused(topic) }

    /// Returns the stream that a wake of this device goes to, or nil if none is free, or nothing of the topic launches.
    ///
    /// - Parameters:
    ///   - target: What is launched; nil for a push.
    ///   - isForced: True if a person launches it, which a paused topic does not prevent.
    func freeStream(
        _ topic: TopicIndex,
        _ token: borrowing DeviceToken,
        _ target: LaunchTarget? = nil,
        isForced: Bool = false
    ) -> Subscription? {
        guard isForced ? !self.isDraining : self.launches(topic) else { return nil }
        return self.streams.free(topic, token, target)
    }

    /// Launches a device whose push came to wait, if a stream can take it; what has waited longest for that stream
    /// otherwise.
    func offer(_ device: DeviceIndex) {
        let identity = self.engine.identity(device)
        guard let stream = self.freeStream(identity.topic, identity.token) else { return }
        if stream.request.devices.isEmpty {
            self.launchLongest(for: stream)
            guard stream.request.takesTasks, self.engine.longestReady(identity.topic) != nil else { return }
            // A task went before the push, and may have left room for it, here or on another stream.
            if let next = self.streams.nextInRotation(identity.topic) { self.freed.append(next) }
        } else if self.engine.hasTasks(device) {
            self.launchNext(device)
        } else if let wake = self.engine.claim(device) {
            self.workLeft -= 1
            self.hand(wake, to: stream)
        }
    }

    /// Launches a topic's longest waiting push on the stream whose turn it is, unless a free one names the device.
    ///
    /// - Returns: false when no push waits, or no stream is free for one.
    private func claimNext(_ topic: TopicIndex) -> Bool {
        while let device = self.engine.longestReady(topic) {
            // By its policy something else of the device may have waited longer.
            if self.engine.hasTasks(device), self.launchNext(device) {
                if self.engine.longestReady(topic) != device { return true }
                continue
            }
            // A wake of the device may just have expired, and its stream have stalled.
            guard let stream = self.streams.nextInRotation(topic) else { return false }
            guard let wake = self.engine.claim(device) else { continue }
            self.workLeft -= 1
            self.hand(wake, to: self.streams.naming(topic, wake.token) ?? stream)
            return true
        }
        return false
    }

    /// Gives a stream what has waited for it.
    ///
    /// - Returns: false when there is more than may be launched now.
    func fill(_ subscription: Subscription) -> Bool {
        guard !self.isDraining else { return true }
        // What a person launches is for streams of a paused topic, too: each stands where its turn is.
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

    /// Gives a stream that takes tasks what has waited longest of all that it takes, as long as it is free.
    ///
    /// - Returns: false when there is more than may be launched now.
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
    /// - Returns: false when there are more than may be launched now.
    private func fillNaming(_ subscription: Subscription) -> Bool {
        guard subscription.request.takesTasks else {
            for _ in subscription.request.devices where subscription.isFreeForPush {
                self.launchNamed(subscription.nextDevice(), subscription)
            }
            return true
        }
        // Of a device several lanes may launch: each device gets one wake in a round, until none gets any.
        var devicesLeft = subscription.request.devices.count
        while subscription.isFree, devicesLeft > 0 {
            guard self.workLeft > 0 else { return false }
            let isLaunched = self.launchNamed(subscription.nextDevice(), subscription)
            devicesLeft = isLaunched ? subscription.request.devices.count : devicesLeft - 1
        }
        return true
    }

    /// Launches something of a device that a free stream names: what its policy says, be it for another stream that has
    /// come free as well, and before what has waited longer for that one.
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

// MARK: - What has waited longest

extension Dispatcher {
    /// Launches what has waited longest of all that a free stream takes, be it for this stream or another one that goes
    /// before it.
    ///
    /// - Returns: false when nothing waits for it, or no more may be looked at.
    @discardableResult
    func launchLongest(for stream: Subscription) -> Bool {
        guard stream.request.takesTasks else { return self.claimNext(stream.topic) }
        // A stream that is free again, and waits to be filled, may stand in the rotation for pushes alone.
        self.streams.rotate(stream)
        let longest = stream.isFreeForPush ? self.engine.longestReady(stream.topic) : nil
        let pushOrder = longest.map { self.engine.readyOrder($0) }
        while self.workLeft > 0, let task = self.streams.firstWaiting(for: stream) {
            if let pushOrder, pushOrder <= task.order { break }
            if self.isReady(task) {
                if self.launchNext(task.device) { return true }
                // What was due of its device was done first: the task may be held now, or the stream have stalled.
                if self.isReady(task) { break }
            }
            self.workLeft -= 1
            self.streams.waitsNoLonger(task.device, task.target, task.topic)
        }
        guard pushOrder != nil, self.workLeft > 0 else { return false }
        return self.claimNext(stream.topic)
    }

    /// A task came to wait for a slot: it is launched if a stream can take it, after what has waited for that stream.
    func offer(_ task: ReadyTask) {
        guard self.isReady(task) else { return }
        let token = self.engine.identity(task.device).token
        self.streams.wait(task, key: self.engine.topics.key) { self.isReady($0) }
        while self.isReady(task), let stream = self.freeStream(task.topic, token, task.target) {
            guard self.workLeft > 0 else {
                // Nothing else would look at it again.
                self.freed.append(stream)
                return
            }
            let isForAny = stream.request.devices.isEmpty
            let isLaunched = isForAny ? self.launchLongest(for: stream) : self.launchNext(task.device)
            // A stream that has stalled meanwhile leaves the task to others.
            guard isLaunched || self.workLeft <= 0 || !stream.isFree else { return }
        }
    }

    /// Launches what is next on a device that has tasks, of what a stream is free for.
    ///
    /// - Returns: false when there is nothing.
    @discardableResult
    func launchNext(_ device: DeviceIndex) -> Bool {
        guard self.launches(self.engine.topic(of: device)) else { return false }
        // What ends now is told before what is launched in its place.
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

    /// Whether a task waits still, where it waited.
    func isReady(_ task: ReadyTask) -> Bool {
        self.engine.topic(of: task.device) == task.topic && self.engine.isReady(task)
    }
}

extension LaunchedWake {
    /// What a stream had to take to be sent this wake.
    var target: LaunchTarget {
        switch self.cause {
        case .push: .push
        case .task(let launched):
            LaunchTarget(kind: self.kind, name: launched.name, resources: launched.details.resources)
        }
    }

    /// How much of a stream's memory it takes until it is answered.
    var byteCount: Int {
        switch self.cause {
        case .push(_, let content): content?.payload.count ?? 0
        case .task(let launched):
            launched.name.utf8.count + (launched.details.title?.utf8.count ?? 0)
                + (launched.details.subtitle?.utf8.count ?? 0)
        }
    }
}

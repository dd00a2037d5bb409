package import Policy
package import Wire

/// What is said of devices.
extension Dispatcher {
    /// The engine's answer to a registration.
    package func register(_ token: borrowing DeviceToken, topic: ByteView) -> Admission {
        guard let device = self.engine.find(token) else { return self.engine.register(token, topic: topic) }
        self.catchUp(device)
        let before = self.engine.conditions(of: device)
        let admission = self.engine.register(token, topic: topic)
        self.conditionsMayDiffer(device, before)
        return admission
    }

    package func unregister(_ device: DeviceIndex) {
        self.catchUp(device)
        self.engine.unregister(device)
        self.flow()
    }

    /// - Returns: all the device's conditions now.
    package func conditions(_ report: ConditionsReport, _ device: DeviceIndex) -> Conditions {
        self.catchUp(device)
        let before = self.engine.conditions(of: device)
        let conditions = self.engine.conditions(report, device)
        self.conditionsMayDiffer(device, before)
        return conditions
    }

    /// What an operator's wish for a launch came to.
    package enum SimulatedLaunch: Hashable, Sendable {
        case launched, wakeInFlight, noWorker, nothingPending
    }

    /// Launches what is pending, or an empty wake, whatever holds it.
    ///
    /// - `ofPendingAlone`: whether nothing is launched where nothing is pending.
    package func simulateLaunch(_ device: DeviceIndex, ofPendingAlone: Bool = false) -> SimulatedLaunch {
        self.catchUp(device)
        guard !ofPendingAlone || self.engine.pendingPush(device) != nil else {
            self.flow()
            return .nothingPending
        }
        let identity = self.engine.identity(device)
        guard !self.engine.isShortLaneFull(device) else { return .wakeInFlight }
        self.takeExpiredWakes()
        guard let stream = self.freeStream(identity.topic, identity.token, isForced: true) else {
            self.flow()
            return .noWorker
        }
        defer { self.flow() }
        switch self.engine.launchForced(device) {
        case .launched(let wake):
            return self.launched(wake, for: stream) ? .launched : .noWorker
        case .wakeInFlight: return .wakeInFlight
        }
    }

    /// Ends the wake in flight of the short lane as expired, whatever it was launched for.
    ///
    /// - Returns: false when none is in flight.
    package func simulateExpiration(_ device: DeviceIndex) -> Bool {
        self.catchUp(device)
        defer { self.flow() }
        guard let wake = self.engine.expireForced(device) else { return false }
        self.wakeExpired(wake, .operator)
        return true
    }
}

/// What is said of background tasks.
extension Dispatcher {
    /// A request was submitted for a registered device.
    ///
    /// - Throws: `TaskRejection` when it is not taken; nothing but a count has changed.
    package func submit(_ request: IncomingTask, _ device: DeviceIndex) throws(TaskRejection) -> TaskAnswer {
        self.catchUp(device)
        let identity = self.engine.identity(device)
        let target = LaunchTarget(
            kind: LaunchKind(request.kind.taskKind),
            name: request.identifier,
            resources: request.details.resources
        )
        let stream = self.freeStream(identity.topic, identity.token, target)
        let answer = try self.engine.submit(request, device: device, hasSlot: stream != nil)
        if let wake = answer.wake { self.launched(wake, for: stream) }
        self.flow()
        return answer
    }

    /// Transfers of a background session of a registered device finished.
    ///
    /// - `count`: how many, at least 1.
    /// - `id`: the event's; one that came before changes nothing.
    /// - Throws: `TaskRejection` when they are not taken; nothing but a count has changed.
    package func transfersFinished(
        session: String,
        count: UInt64,
        id: String?,
        _ device: DeviceIndex
    ) throws(TaskRejection) {
        self.catchUp(device)
        try self.engine.transfersFinished(session: session, count: count, id: id, device: device)
        self.flow()
    }

    /// Cancels the request of an identifier, if there is one.
    package func cancelTask(_ identifier: String, _ device: DeviceIndex) {
        self.catchUp(device)
        self.engine.cancelTask(identifier, device: device)
        self.flow()
    }

    /// Cancels every request of a device.
    package func cancelAllTasks(_ device: DeviceIndex) {
        self.catchUp(device)
        self.engine.cancelAllTasks(device: device)
        self.flow()
    }

    /// What an operator's wish to launch a request came to.
    package enum SimulatedTaskLaunch: Hashable, Sendable {
        case launched
        /// There is no room in its lane.
        case laneIsFull
        /// No request of the identifier waits.
        case notWaiting
        /// No stream that takes it is free.
        case noWorker
    }

    /// Launches the request of an identifier, whatever holds it.
    package func simulateTaskLaunch(_ identifier: String, _ device: DeviceIndex) -> SimulatedTaskLaunch {
        self.catchUp(device)
        defer { self.flow() }
        var target: LaunchTarget?
        for task in self.engine.tasks(of: device) where task.name == identifier && task.task.kind != .urlSession {
            guard case .waiting(_, _, let laneIsFull) = task.state else { continue }
            guard !laneIsFull else { return .laneIsFull }
            target = task.target
        }
        guard let target else { return .notWaiting }
        self.takeExpiredWakes()
        let identity = self.engine.identity(device)
        guard let stream = self.freeStream(identity.topic, identity.token, target, isForced: true) else {
            return .noWorker
        }
        switch self.engine.launchTaskForced(identifier, device) {
        case .launched(let wake):
            self.streams.waitsNoLonger(device, target, identity.topic)
            return self.launched(wake, for: stream) ? .launched : .noWorker
        case .laneIsFull: return .laneIsFull
        case .notWaiting: return .notWaiting
        }
    }

    /// Ends the wake of an identifier's request, or of a session, as expired.
    ///
    /// - Returns: false when none is in flight.
    package func simulateTaskExpiration(_ identifier: String, _ device: DeviceIndex) -> Bool {
        self.catchUp(device)
        defer { self.flow() }
        guard let wake = self.engine.expireTaskForced(identifier, device) else { return false }
        self.wakeExpired(wake, .operator)
        return true
    }
}

// MARK: - Conditions

extension Dispatcher {
    /// A verb may have changed a device's conditions: streams that hear of them are told.
    ///
    /// - `before`: what they were.
    func conditionsMayDiffer(_ device: DeviceIndex, _ before: Conditions) {
        if before != self.engine.conditions(of: device) {
            let identity = self.engine.identity(device)
            self.streams.conditionsChanged(identity.topic, device, identity.token)
        }
        self.flow()
    }

    /// Tells streams of conditions that have changed, as many as may be told now.
    func tellConditions() {
        guard self.streams.shared == nil else { return self.tellConditionsShared() }
        while let (stream, device) = self.streams.nextToHear(&self.looksLeft) {
            let identity = self.engine.identity(device)
            // A device may have been registered anew, for another topic.
            guard identity.topic == stream.topic else { continue }
            self.output.conditionsChanged(identity.token, self.engine.conditions(of: device), on: stream.address)
        }
    }
}

/// What people do to what waits.
extension Dispatcher {
    /// Pauses or resumes a topic: nothing of one that is paused launches by itself. What is in flight goes on.
    ///
    /// - Returns: whether it was the other way before.
    @discardableResult
    package func setPaused(_ topic: TopicIndex, _ isPaused: Bool) -> Bool {
        let isChanged = self.engine.setPaused(topic, isPaused)
        guard isChanged, !isPaused else { return isChanged }
        let free = self.streams.all.filter { $0.topic == topic && $0.isFree }
        for stream in free.sorted(by: { $0.opened < $1.opened }) { self.freed.append(stream) }
        self.flow()
        return true
    }

    /// Discards the push that waits on a device; a wake in flight goes on.
    ///
    /// - Returns: whether one waited.
    package func cancelPending(_ device: DeviceIndex) -> Bool {
        self.catchUp(device)
        defer { self.flow() }
        return self.engine.cancelPending(device)
    }
}

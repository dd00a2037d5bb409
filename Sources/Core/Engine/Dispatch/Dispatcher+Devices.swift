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
        case launched
        /// The lane that it needs is full.
        case laneIsFull
        /// Nothing is pending, or no request of the identifier waits.
        case notWaiting
        /// No stream that takes it is free.
        case noWorker
    }

    /// Launches what is pending, or an empty wake, or else the request of an identifier, whatever holds it.
    ///
    /// - `ofPendingAlone`: whether nothing is launched where nothing is pending.
    package func simulateLaunch(
        _ device: DeviceIndex,
        identifier: String? = nil,
        ofPendingAlone: Bool = false
    ) -> SimulatedLaunch {
        self.catchUp(device)
        defer { self.flow() }
        var target = LaunchTarget.push
        if let identifier {
            // Waiting requests come before running ones.
            let task = self.engine.tasks(of: device).first { $0.name == identifier && $0.task.kind != .urlSession }
            guard let task, case .waiting(_, _, let laneIsFull) = task.state else { return .notWaiting }
            guard !laneIsFull else { return .laneIsFull }
            target = task.target
        } else {
            guard !ofPendingAlone || self.engine.pendingPush(device) != nil else { return .notWaiting }
            guard !self.engine.isShortLaneFull(device) else { return .laneIsFull }
        }
        self.takeExpiredWakes()
        let identity = self.engine.identity(device)
        guard let stream = self.freeStream(identity.topic, identity.token, target, isForced: true) else {
            return .noWorker
        }
        switch self.engine.launchForced(device, identifier: identifier) {
        case .launched(let wake):
            if identifier != nil { self.streams.waitsNoLonger(device, target, identity.topic) }
            return self.launched(wake, for: stream) ? .launched : .noWorker
        case .laneIsFull: return .laneIsFull
        case .notWaiting: return .notWaiting
        }
    }

    /// Ends a wake in flight as expired: that of the short lane, whatever it was launched for, or else that of an
    /// identifier's request, or of a session.
    ///
    /// - Returns: false when none is in flight.
    package func simulateExpiration(_ device: DeviceIndex, identifier: String? = nil) -> Bool {
        self.catchUp(device)
        defer { self.flow() }
        guard let wake = self.engine.expireForced(device, identifier: identifier) else { return false }
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

    /// Cancels the request of an identifier, if there is one, or every request of a device.
    package func cancelTask(_ identifier: String?, _ device: DeviceIndex) {
        self.catchUp(device)
        self.engine.cancelTask(identifier, device: device)
        self.flow()
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

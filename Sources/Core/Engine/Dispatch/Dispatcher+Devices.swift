package import Policy
package import Wire

/// Operations on devices.
extension Dispatcher {
    /// Registers a token, and notifies streams if the device's conditions change.
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

    /// - Returns: all conditions of the device now.
    package func conditions(_ report: ConditionsReport, _ device: DeviceIndex) -> Conditions {
        self.catchUp(device)
        let before = self.engine.conditions(of: device)
        let conditions = self.engine.conditions(report, device)
        self.conditionsMayDiffer(device, before)
        return conditions
    }

    /// The effect of an operator's request to launch.
    package enum SimulatedLaunch: Hashable, Sendable {
        case launched
        /// The lane has its maximum number of wakes in flight.
        case laneIsFull
        /// No push, or no request with the identifier, is pending.
        case notPending
        /// No stream that accepts the launch has a free slot.
        case noWorker
    }

    /// Launches the request with this identifier. Without an identifier, launches the pending push, or a wake without a
    /// push if none is pending. Ignores holds.
    ///
    /// - `ofPendingAlone`: true to launch a push only if one is pending.
    package func simulateLaunch(
        _ device: DeviceIndex,
        identifier: String? = nil,
        ofPendingAlone: Bool = false
    ) -> SimulatedLaunch {
        self.catchUp(device)
        defer { self.flow() }
        var target = LaunchTarget.push
        if let identifier {
            // Pending tasks come before running tasks.
            let task = self.engine.tasks(of: device).first { $0.name == identifier && $0.task.kind != .urlSession }
            guard let task, case .waiting(_, _, let laneIsFull) = task.state else { return .notPending }
            guard !laneIsFull else { return .laneIsFull }
            target = task.target
        } else {
            guard !ofPendingAlone || self.engine.pendingPush(device) != nil else { return .notPending }
            guard !self.engine.isShortLaneFull(device) else { return .laneIsFull }
        }
        self.takeExpiredWakes()
        let identity = self.engine.identity(device)
        guard let stream = self.freeStream(identity.topic, identity.token, target, isForced: true) else {
            return .noWorker
        }
        guard let wake = self.engine.launchForced(device, identifier: identifier) else { return .notPending }
        if identifier != nil { self.streams.waitsNoLonger(device, target, identity.topic) }
        return self.launched(wake, for: stream) ? .launched : .noWorker
    }

    /// Expires a wake in flight. The identifier names a request or a session. Without an identifier, the wake in the
    /// short lane expires.
    ///
    /// - Returns: false if none is in flight.
    package func simulateExpiration(_ device: DeviceIndex, identifier: String? = nil) -> Bool {
        self.catchUp(device)
        defer { self.flow() }
        guard let wake = self.engine.expireForced(device, identifier: identifier) else { return false }
        self.wakeExpired(wake, .operator, at: self.engine.now)
        return true
    }
}

/// Operations on background tasks.
extension Dispatcher {
    /// Accepts a task request for a registered device.
    ///
    /// - Throws: `TaskRejection` if the request is not accepted. A rejection changes only a counter and the log.
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

    /// Records finished transfers of a background session of a registered device.
    ///
    /// - `count`: the number of transfers, at least 1.
    /// - `id`: the id of the event. If the device remembers the id, nothing changes.
    /// - Throws: `TaskRejection` if the transfers are not accepted. A rejection changes only a counter and the log.
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

    /// Cancels the request with this identifier, or every request of the device if `identifier` is nil.
    package func cancelTask(_ identifier: String?, _ device: DeviceIndex) {
        self.catchUp(device)
        self.engine.cancelTask(identifier, device: device)
        self.flow()
    }
}

// MARK: - Conditions

extension Dispatcher {
    /// Notifies streams after an operation that may have changed the conditions of a device.
    ///
    /// - `before`: the conditions before the operation.
    func conditionsMayDiffer(_ device: DeviceIndex, _ before: Conditions) {
        if before != self.engine.conditions(of: device) {
            let identity = self.engine.identity(device)
            self.streams.conditionsChanged(identity.topic, device, identity.token)
        }
        self.flow()
    }

    /// Sends condition changes to streams, as many as this step allows.
    func sendConditions() {
        guard self.streams.shared == nil else { return self.sendSharedConditions() }
        while let (stream, device) = self.streams.nextConditions(&self.checksLeft) {
            let identity = self.engine.identity(device)
            // The device may have been registered again, for another topic.
            guard identity.topic == stream.topic else { continue }
            self.output.conditionsChanged(identity.token, self.engine.conditions(of: device), on: stream.address)
        }
    }
}

/// Operator controls for pending launches.
extension Dispatcher {
    /// Pauses or resumes a topic. A paused topic launches nothing; its wakes in flight continue.
    ///
    /// - Returns: true if that changed the topic.
    @discardableResult
    package func setPaused(_ topic: TopicIndex, _ isPaused: Bool) -> Bool {
        let isChanged = self.engine.setPaused(topic, isPaused)
        guard isChanged, !isPaused else { return isChanged }
        let free = self.streams.all.filter { $0.topic == topic && $0.isFree }
        for stream in free.sorted(by: { $0.opened < $1.opened }) { self.freed.append(stream) }
        self.flow()
        return true
    }

    /// Discards the pending push of a device. A wake in flight continues.
    ///
    /// - Returns: true if a push was pending.
    package func cancelPending(_ device: DeviceIndex) -> Bool {
        self.catchUp(device)
        defer { self.flow() }
        return self.engine.cancelPending(device)
    }
}

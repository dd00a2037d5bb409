import Policy
package import Wire

// MARK: - Launches

extension EmbeddedEngine {
    /// Launches a task that may launch.
    func launchTask(_ arrival: UInt64, _ device: DeviceIndex) -> WakeID {
        let (now, parameters) = (self.now, self.parameters(of: device))
        let wake = self.changeLanes(device) { $0.taskLaunched(arrival, at: now, parameters) }
        return self.noteTaskLaunch(wake, device)
    }

    func noteTaskLaunch(_ wake: TaskWake, _ device: DeviceIndex) -> WakeID {
        let row = self.tasks.row(device)
        let id = WakeID(random: self.random())
        let resumedFrom = row.note(wake.task)?.resumption
        row.takeOff(TaskRow.Flight(arrival: wake.task.arrival, wake: id, resumedFrom: resumedFrom))
        self.tasks.noteChange(device, row)
        self.wakes.launched(id, device)
        self.count(self.devices[device].topic) { $0.noteLaunch(LaunchKind(wake.task.kind)) }
        let event = HistoryEvent.Kind.taskLaunch(wake.task.kind, attempt: UInt16(clamping: wake.task.attempts))
        self.remember(device, event, name: row.text(wake.task.name), wake: id)
        return id
    }

    /// What an operator's wish to launch a request came to.
    package enum ForcedTaskLaunch: Hashable, Sendable {
        case launched(WakeID)
        /// There is no room in its lane.
        case laneIsFull
        /// No request of the identifier waits.
        case notWaiting
    }

    /// Launches the request of an identifier, outside interval, budget and holds.
    package func launchTaskForced(_ identifier: String, _ device: DeviceIndex) -> ForcedTaskLaunch {
        self.settle(device)
        guard let name = self.tasks[device]?.find(identifier) else { return .notWaiting }
        let (now, parameters) = (self.now, self.parameters(of: device))
        switch self.changeLanes(device, { $0.taskLaunchForced(name, at: now, parameters) }) {
        case .laneIsFull: return .laneIsFull
        case .notWaiting: return .notWaiting
        case .launched(let wake):
            let id = self.noteTaskLaunch(wake, device)
            self.reconcile(device)
            return .launched(id)
        }
    }
}

// MARK: - Ends

extension EmbeddedEngine {
    /// A worker said how a task in flight ended.
    func endTask(_ arrival: UInt64, _ device: DeviceIndex, _ result: TaskResult) {
        guard let wake = self.tasks[device]?.wake(arrival) else { return }
        let parameters = self.parameters(of: device)
        let action = self.changeLanes(device) { $0.taskReported(arrival, result, parameters) }
        _ = self.noteTaskEnd(device, wake, result.outcome, action)
        self.settle(device)
    }

    /// The stream that carried a task ended, or the gateway restarted; what is due then is up to the caller.
    func loseTask(_ arrival: UInt64, _ device: DeviceIndex, takingBackAttempt: Bool) {
        guard let wake = self.tasks[device]?.wake(arrival) else { return }
        let parameters = self.parameters(of: device)
        let action = self.changeLanes(device) {
            $0.taskLost(arrival, takingBackAttempt: takingBackAttempt, parameters)
        }
        _ = self.noteTaskEnd(device, wake, .lost, action)
    }

    /// Ends the wake of an identifier's request, or else of a session of that name, as expired now.
    ///
    /// - Returns: the wake that ended; nil when none is in flight.
    package func expireTaskForced(_ identifier: String, _ device: DeviceIndex) -> WakeID? {
        self.settle(device)
        guard let row = self.tasks[device], let name = row.find(identifier) else { return nil }
        let wakes = row.policy.inFlight.filter { $0.task.name == name }
        guard let wake = wakes.first(where: { $0.task.kind != .urlSession }) ?? wakes.first else { return nil }
        return self.expire(wake, device)
    }

    /// Ends the wake of a refresh or a session as expired now.
    ///
    /// - Returns: the wake that ended; nil when none is in flight.
    func expireTaskOfShortLane(_ device: DeviceIndex) -> WakeID? {
        let wake = self.tasks[device]?.policy.inFlight.first { $0.task.kind.lane == .short }
        return wake.map { self.expire($0, device) }
    }

    private func expire(_ wake: TaskWake, _ device: DeviceIndex) -> WakeID {
        let parameters = self.parameters(of: device)
        let action = self.changeLanes(device) { $0.taskExpired(wake.task.arrival, parameters) }
        let id = self.noteTaskEnd(device, wake, .expired, action)
        self.settle(device)
        return id
    }

    /// Notes how a wake of a task ended, which the policy has done.
    ///
    /// - `wake`: as it was in flight.
    /// - Returns: its id.
    func noteTaskEnd(
        _ device: DeviceIndex,
        _ wake: TaskWake,
        _ outcome: TaskOutcome,
        _ action: TaskEndedAction
    ) -> WakeID {
        let row = self.tasks.row(device)
        let flight = row.land(wake.task.arrival)
        self.tasks.noteChange(device, row)
        let launchOutcome = LaunchOutcome.task(wake.task.kind, outcome)
        self.count(self.devices[device].topic) { $0.noteEnd(launchOutcome) }
        let milliseconds = self.now.milliseconds - wake.launchedAt.milliseconds
        self.times.ended(wake.task.kind, after: milliseconds)
        let kind = HistoryEvent.Kind.taskResult(wake.task.kind, outcome)
        self.remember(device, kind, name: row.text(wake.task.name), wake: flight.wake)
        self.wakes.ended(EndedWake(id: flight.wake, outcome: launchOutcome, at: self.now), device, in: &self.devices)
        switch action {
        case .ended(let task):
            guard task.kind == .urlSession else { break }
            self.count(self.devices[device].topic) { $0.sessions.completed += Int64(clamping: task.transfers) }
        case .waits(_, let replaced):
            if wake.task.kind == .continued { row.keepResumption(of: flight) }
            if let replaced { self.noteReplaced(replaced, device) }
        case .replaced(let task): self.noteReplaced(task, device)
        case .takenUp: break
        case .discarded(let task, let reason, let replaced):
            self.noteDiscarded(task, reason, device)
            if let replaced { self.noteReplaced(replaced, device) }
        }
        return flight.wake
    }
}

// MARK: - In between

extension EmbeddedEngine {
    /// A worker said how far its continued task is. A store hears of that a little later: many reports of one task are
    /// kept as the last.
    package func progress(_ progress: TaskProgress, wake id: WakeID) -> ProgressOutcome {
        guard let device = self.wakes.device(of: id) else { return .unknown }
        self.settleBeforeWakeEnds(device, id)
        switch self.inFlight(id, device) {
        case nil: return self.devices[device].endedWake(id).map { .ended($0.outcome) } ?? .unknown
        case .push: return .notContinued
        case .task(let arrival):
            let row = self.tasks.row(device)
            let parameters = self.parameters(of: device)
            var lanes = DeviceLanes(device: self.devices[device].state, tasks: row.takePolicy())
            let before = lanes.deadline(arrival)
            let deadline = lanes.progressReported(arrival, completed: progress.completed, at: self.now, parameters)
            row.policy = lanes.tasks
            guard let deadline else { return .notContinued }
            if row.told(progress, of: arrival) { self.tasks.noteProgress(device, row, at: self.now) }
            if deadline != before { self.deriveDeadline(device, lanes, parameters) }
            return .lasts(deadline)
        }
    }

    /// A deadline of the device's moved, and nothing else did: no more than its next moment follows from that, unless
    /// something is due besides.
    private func deriveDeadline(_ device: DeviceIndex, _ lanes: DeviceLanes, _ parameters: Parameters) {
        guard !self.schedule.isJudging, let moment = self.schedule[device], moment > self.now else {
            return self.derive(device)
        }
        self.schedule.set(device, to: lanes.nextMoment(beside: self.now, parameters))
    }

    /// A worker asked for a task in flight to last until `moment`.
    func extendTask(_ arrival: UInt64, _ device: DeviceIndex, until moment: Instant) -> ExtensionOutcome {
        guard let wake = self.tasks[device]?.wake(arrival) else { return .unknown }
        let parameters = self.parameters(of: device)
        let action = self.changeLanes(device) { $0.taskExtensionRequested(arrival, until: moment, parameters) }
        switch action {
        // A continued task lives by its progress.
        case nil: return .limitReached(wake.deadline)
        case .unchanged(let deadline): return .lasts(deadline)
        case .limitReached(let deadline): return .limitReached(deadline)
        case .extended(let deadline):
            let seconds = (deadline.milliseconds - self.now.milliseconds + 999) / 1000
            let event = HistoryEvent.Kind.taskExtended(wake.task.kind, seconds: UInt16(clamping: seconds))
            self.remember(device, event, name: self.text(wake.task, device))
            self.reconcile(device)
            return .lasts(deadline)
        }
    }
}

// MARK: - Which wake is which

extension EmbeddedEngine {
    /// What a wake in flight was launched for.
    enum InFlight {
        case push
        /// - Parameter arrival: which of the device's tasks.
        case task(arrival: UInt64)
    }

    /// What the wake with this id was launched for; nil when it is not in flight.
    @inline(__always)
    func inFlight(_ id: WakeID, _ device: DeviceIndex) -> InFlight? {
        if self.devices[device].wake == id, self.devices[device].state.inFlight != nil { return .push }
        guard self.devices[device].hasTasks else { return nil }
        return self.tasks[device]?.arrival(of: id).map { .task(arrival: $0) }
    }

    /// The wakes of the device that are in flight.
    package func wakesInFlight(_ device: DeviceIndex) -> [WakeID] {
        let record = self.devices[device]
        let push = record.state.inFlight == nil ? [] : [record.wake]
        guard record.hasTasks, let row = self.tasks[device] else { return push }
        return push + row.policy.inFlight.compactMap { row.flight(of: $0.task.arrival)?.wake }
    }

    /// The task that a wake in flight was launched for, valid until the engine is next called.
    func launchedTask(_ id: WakeID, _ arrival: UInt64, _ device: DeviceIndex) -> LaunchedWake? {
        guard let row = self.tasks[device], let wake = row.wake(arrival), let flight = row.flight(id) else {
            return nil
        }
        let record = self.devices[device]
        let launched = LaunchedTask(
            name: row.text(wake.task.name),
            task: wake.task,
            details: row.details(wake.task),
            resumedFrom: flight.resumedFrom
        )
        return LaunchedWake(
            id: id,
            token: record.token.token,
            topic: self.topics.name(record.topic),
            deadline: wake.deadline,
            timeLeft: wake.deadline.milliseconds - self.now.milliseconds,
            cause: .task(launched)
        )
    }
}

extension TaskResult {
    /// How a wake ends that is reported so.
    var outcome: TaskOutcome {
        switch self {
        case .success: .success
        case .failure: .failure
        }
    }
}

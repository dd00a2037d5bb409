// MARK: - Arrivals

extension DeviceLanes {
    /// Applies a submitted request. A request that can launch is launched and in `tasks.inFlight` afterwards.
    ///
    /// - `earliestBegin`: the earliest start; nil for `now`. Ignored for a continued task.
    /// - `isPermitted`: true if a permitted pattern of the topic matches the identifier.
    /// - `slotIsFree`: true if a stream that accepts the request has a free slot for this device.
    package mutating func submitted(
        _ name: TaskName,
        _ kind: TaskSubmission.Kind,
        earliestBegin: Instant?,
        at now: Instant,
        isPermitted: Bool,
        slotIsFree: Bool,
        _ parameters: Parameters
    ) -> TaskSubmittedAction {
        var task = BackgroundTask(
            name: name,
            kind: kind.taskKind,
            needs: kind.needs,
            arrivedAt: now,
            waitsSince: now,
            arrival: 0
        )
        if let earliestBegin, task.kind != .continued { task.waitsSince = max(now, earliestBegin) }
        let mayLaunch = slotIsFree && self.mayLaunch(task, at: now, parameters)
        guard isPermitted else { return .refused(.notPermitted) }
        if let refusal = self.refusal(task, mayLaunch: mayLaunch) { return .refused(refusal) }
        let replaced = self.tasks.takeNamesake(of: task)
        task.arrival = self.tasks.arrived()
        self.tasks.wait(task)
        guard mayLaunch else { return .waits(task, replaced: replaced) }
        return .launched(self.taskLaunched(task.arrival, at: now, parameters), replaced: replaced)
    }

    /// Returns the reason to refuse a permitted request, or nil.
    private func refusal(_ task: BackgroundTask, mayLaunch: Bool) -> TaskRefusal? {
        let conditions = self.device.conditions
        if task.kind != .continued, conditions.backgroundRefresh != .available { return .unavailable }
        if task.kind == .continued, conditions.appState != .active { return .notForeground }
        let others = self.tasks.waiting.count { $0.kind == task.kind && !$0.isNamesake(of: task) }
        if others >= task.kind.waitingMax { return .tooManyPendingTaskRequests }
        if task.failsRatherThanWaits, !mayLaunch { return .immediateRunIneligible }
        return nil
    }

    /// Applies finished transfers of a background session: they become pending, or join the pending transfers of the
    /// session.
    ///
    /// - `count`: the number of transfers, at least 1.
    package mutating func transfersFinished(
        _ name: TaskName,
        count: UInt64,
        at now: Instant
    ) -> TransfersFinishedAction {
        precondition(count > 0, "no transfer finished")
        let sessions = self.tasks.waiting.indices.filter { self.tasks.waiting[$0].kind == .urlSession }
        if let index = sessions.first(where: { self.tasks.waiting[$0].name == name }) {
            self.tasks.waiting[index].transfers += count
            return .merged
        }
        guard sessions.count < TaskKind.urlSession.waitingMax else { return .refused }
        self.tasks.wait(
            BackgroundTask(
                name: name,
                kind: .urlSession,
                arrivedAt: now,
                waitsSince: now,
                arrival: self.tasks.arrived(),
                transfers: count
            )
        )
        return .waits
    }

    /// Cancels the request with this identifier; if `name` is nil, every request. Pending requests are dropped, running
    /// continued tasks end, and other running tasks continue.
    package mutating func cancelled(_ name: TaskName?) -> Removals {
        func isMeant(_ task: BackgroundTask) -> Bool {
            task.kind != .urlSession && (name == nil || task.name == name)
        }
        var action = Removals()
        action.discarded = self.tasks.waiting.filter(isMeant)
        self.tasks.waiting.removeAll(where: isMeant)
        for index in self.tasks.inFlight.indices where isMeant(self.tasks.inFlight[index].task) {
            self.tasks.inFlight[index].isCancelled = true
        }
        action.ended = self.tasks.inFlight.filter { $0.isCancelled && $0.task.kind == .continued }
        self.tasks.inFlight.removeAll { $0.isCancelled && $0.task.kind == .continued }
        self.tasks.left()
        return action
    }
}

// MARK: - Ends

extension DeviceLanes {
    /// Ends a task in flight. The outcome is reported by its worker before the deadline, or follows from a missed
    /// deadline (real or simulated), a lost stream or a restart. A lost launch is treated as if it had never happened.
    ///
    /// - `arrival`: the arrival number of the task.
    /// - `takingBackAttempt`: true if the attempt of a lost wake does not count: the wake never reached its worker, its
    ///   worker returned it, its gateway died or restarted, or it was a continued task and ended because memory was
    ///   short or more of them were in flight than allowed.
    package mutating func taskEnded(
        _ arrival: UInt64,
        _ outcome: TaskOutcome,
        takingBackAttempt: Bool = false,
        _ parameters: Parameters
    ) -> TaskEndedAction {
        var wake = self.tasks.inFlight.remove(at: self.inFlightIndex(arrival))
        defer { self.tasks.left() }
        switch outcome {
        case .success:
            if wake.task.kind != .continued { self.device.penalty = 0 }
            return .ended(wake.task)
        case .failure: break
        case .interrupted, .cancelled: return .ended(wake.task)
        case .expired:
            // A wake launched before the removal of its device does not raise the penalty of the new registration.
            if wake.task.kind != .continued, !wake.isOfRemovedDevice { self.device.penaltyRaised(parameters) }
        case .lost:
            switch wake.charge {
            case .nothing: break
            case .short(let before): self.device.spacing = before
            case .processing(let lastBefore): self.tasks.lastProcessing = lastBefore
            }
            if takingBackAttempt { wake.task.attempts -= 1 }
            return self.retry(wake, parameters)
        }
        return wake.task.kind == .urlSession ? self.retry(wake, parameters) : .ended(wake.task)
    }

    /// The maximum effective value of `pressureStep`, in milliseconds: 20 days.
    private static let pressureStepMax: Int64 = 20 * 86_400_000

    /// Ends the least advanced continued task, because memory is short or more tasks are in flight than allowed. Of
    /// equally advanced tasks, the task launched last ends. It becomes pending again as if it had not launched, unless
    /// its strategy is `fail`.
    ///
    /// - Returns: the wake that ended, with its outcome; nil if no continued task is in flight.
    mutating func endContinuedTaskByPressure(at now: Instant, _ parameters: Parameters) -> TimePassedAction? {
        let running = self.tasks.continuedInFlight
        guard var least = running.first else { return nil }
        for wake in running.dropFirst() where !wake.isMoreAdvanced(than: least) { least = wake }
        if let moment = self.tasks.pressureAt(now), running.count <= Int(parameters.continuedMax) {
            self.tasks.setPressure(moment + min(parameters.pressureStep, Self.pressureStepMax))
        }
        guard !least.task.failsRatherThanWaits else {
            return .taskEndedByPressure(
                least,
                .interrupted,
                self.taskEnded(least.task.arrival, .interrupted, parameters)
            )
        }
        self.tasks.inFlight[self.inFlightIndex(least.task.arrival)].task.waitsForMemory =
            self.device.conditions.memoryPressure == .critical
        let action = self.taskEnded(least.task.arrival, .lost, takingBackAttempt: true, parameters)
        return .taskEndedByPressure(least, .lost, action)
    }

    private mutating func retry(_ wake: TaskWake, _ parameters: Parameters) -> TaskEndedAction {
        let task = wake.task
        guard !wake.isCancelled else { return .discarded(task, .cancelled, replaced: nil) }
        guard !wake.isOfRemovedDevice else { return .discarded(task, .unregistered, replaced: nil) }
        let other = self.tasks.takeNamesake(of: task)
        if var other, task.kind == .urlSession {
            other.merge(task)
            self.tasks.wait(other)
            return .merged(task)
        }
        if let other, other.arrival > task.arrival {
            self.tasks.wait(other)
            return .replaced(task)
        }
        guard task.attempts < parameters.maxAttempts else { return .discarded(task, .exhausted, replaced: other) }
        self.tasks.wait(task)
        return .waits(task, replaced: other)
    }
}

// MARK: - Progress and extensions

extension DeviceLanes {
    /// Applies a continued task's progress report, received before its deadline. If the progress exceeds all earlier
    /// reports of this launch, the deadline becomes `progressWindow` from `now`.
    ///
    /// - `arrival`: the arrival number of the task.
    /// - Returns: the current deadline; nil for a wake of any other kind.
    package mutating func progressReported(
        _ arrival: UInt64,
        completed: UInt64,
        of total: UInt64 = 0,
        at now: Instant,
        _ parameters: Parameters
    ) -> Instant? {
        let index = self.inFlightIndex(arrival)
        guard self.tasks.inFlight[index].task.kind == .continued else { return nil }
        self.tasks.inFlight[index].total = total
        if completed > self.tasks.inFlight[index].progress {
            self.tasks.inFlight[index].progress = completed
            self.tasks.inFlight[index].deadline = now + parameters.progressWindow
        }
        return self.tasks.inFlight[index].deadline
    }

    /// Extends a task in flight to `moment` at the request of its worker, received before the deadline.
    ///
    /// - `arrival`: the arrival number of the task.
    package mutating func taskExtensionRequested(
        _ arrival: UInt64,
        until moment: Instant,
        _ parameters: Parameters
    ) -> ExtensionRequestedAction {
        let index = self.inFlightIndex(arrival)
        let wake = self.tasks.inFlight[index]
        // Only progress moves the deadline of a continued task.
        guard wake.task.kind != .continued else { return .limitReached(wake.deadline) }
        let maximum = wake.launchedAt + Self.window(LaunchKind(wake.task.kind), parameters) + parameters.maxExtension
        let action = ExtensionRequestedAction(moment, deadline: wake.deadline, maximum: maximum)
        self.tasks.inFlight[index].deadline = action.deadline
        return action
    }

    private func inFlightIndex(_ arrival: UInt64) -> Int {
        guard let index = self.tasks.inFlight.firstIndex(where: { $0.task.arrival == arrival }) else {
            preconditionFailure("no such task is in flight")
        }
        return index
    }

    /// Applies a device's report of its conditions.
    package mutating func conditionsReported(
        _ report: ConditionsReport,
        at now: Instant,
        _ parameters: Parameters
    ) -> Removals {
        let before = self.device.conditions.appState
        let wasCritical = self.device.conditions.memoryPressure == .critical
        var action = Removals()
        action.discardedPush = self.device.conditionsReported(report)
        let after = self.device.conditions.appState
        if after == .active, before != .active { self.tasks.usage.began(at: now) }
        if after != .active, before == .active { self.tasks.usage.ended(at: now) }
        let isForceQuit = after == .forceQuit && before != .forceQuit
        if isForceQuit {
            action.discarded = self.tasks.waiting.filter { $0.kind == .continued }
            self.tasks.waiting.removeAll { $0.kind == .continued }
        }
        action.ended = self.tasks.inFlight.filter { wake in
            switch wake.task.kind {
            case .appRefresh, .urlSession: return false
            case .continued where isForceQuit: return true
            case .continued, .processing:
                let harmless = wake.tolerated.union(Holds(.usage))
                return !Holds(self.allHolds(wake.task, at: now, parameters)).isSubset(of: harmless)
            }
        }
        self.tasks.inFlight.removeAll { action.ended.contains($0) }
        let isCritical = self.device.conditions.memoryPressure == .critical
        if isCritical != wasCritical { self.tasks.setPressure(isCritical ? now : nil) }
        self.tasks.left()
        return action
    }

    /// Removes the device, with all of its state. Wakes in flight continue, and their tasks do not become pending
    /// again.
    package mutating func unregistered(at now: Instant, _ parameters: Parameters) -> Removals {
        var action = Removals(discardedPush: self.device.unregistered())
        action.discarded = self.tasks.waiting
        var fresh = BackgroundTasks(inFlight: self.tasks.inFlight, arrivals: self.tasks.arrivals)
        fresh.left()
        self.tasks = fresh
        for index in self.tasks.inFlight.indices {
            // Conditions that were reset to their defaults must not interrupt running tasks.
            let held = Holds(self.allHolds(self.tasks.inFlight[index].task, at: now, parameters))
            self.tasks.inFlight[index].tolerated.formUnion(held)
            self.tasks.inFlight[index].isOfRemovedDevice = true
            self.tasks.inFlight[index].charge = .nothing
        }
        return action
    }
}

extension TaskWake {
    /// Returns true if a continued task has done a larger fraction of its work than the other task. Without a total,
    /// the fraction is zero.
    fileprivate func isMoreAdvanced(than other: TaskWake) -> Bool { self.fraction > other.fraction }

    private var fraction: Double { self.total == 0 ? 0 : Double(self.progress) / Double(self.total) }
}

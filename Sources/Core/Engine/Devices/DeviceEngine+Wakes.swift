import Policy
package import Wire

extension DeviceEngine {
    /// Launches the push of the device of this topic that is the next to get a slot.
    ///
    /// - Returns: the wake, valid until the next call of the engine; nil if no device waits.
    package func claim(_ topic: TopicIndex) -> LaunchedWake? {
        while let device = self.longestReady(topic) {
            if let wake = self.claim(device) { return wake }
        }
        return nil
    }

    /// Launches the pending push of this device if it waits only for a slot.
    ///
    /// - Returns: the wake, valid until the next call of the engine; nil if the device does not wait for a slot.
    package func claim(_ device: DeviceIndex) -> LaunchedWake? {
        let record = self.devices[device]
        guard record.isReady else { return nil }
        let parameters = self.parameters(record.topic)
        guard record.state.isLaunchable(self.now, parameters), !self.isShortLaneFull(device) else {
            self.settle(device)
            return nil
        }
        return self.launchPush(device)
    }

    /// Launches the pending push of a device whose policy state allows it.
    func launchPush(_ device: DeviceIndex) -> LaunchedWake? {
        let record = self.devices[device]
        let (now, parameters) = (self.now, self.parameters(record.topic))
        if record.isReady { self.times.lateness.record(self.lateness(since: self.readySince(device), record.topic)) }
        self.change(device) { $0.launched(at: now, parameters, with: &$1) }
        let wake = self.noteLaunch(device)
        self.reconcile(device)
        return self.devices[device].state.inFlight.flatMap { self.launchedWake(wake, .push($0), device) }
    }

    /// Returns the number of devices of this topic that wait for a slot.
    package func readyCount(_ topic: TopicIndex) -> Int { self.ready.count(topic) }

    /// Returns the wake in flight with this id, valid until the next call of the engine.
    package func launchedWake(_ id: WakeID) -> LaunchedWake? {
        guard let device = self.wakes.device(of: id) else { return nil }
        return self.inFlight(id, device).flatMap { self.launchedWake(id, $0, device) }
    }

    @inline(__always)
    private func launchedWake(_ id: WakeID, _ inFlight: InFlight, _ device: DeviceIndex) -> LaunchedWake? {
        let record = self.devices[device]
        let deadline = inFlight.deadline
        let cause: LaunchedWake.Cause
        switch inFlight {
        case .push(let wake): cause = .push(wake.push, content: PushContent(wake.push.handle))
        case .task(let wake):
            guard let row = self.tasks[device], let flight = row.flight(of: wake.task.arrival) else { return nil }
            cause = .task(
                LaunchedTask(
                    name: row.text(wake.task.name),
                    task: wake.task,
                    details: row.details(wake.task),
                    resumedFrom: flight.resumedFrom
                )
            )
        }
        return LaunchedWake(
            id: id,
            token: record.token.token,
            topic: self.topics.name(record.topic),
            deadline: deadline,
            timeLeft: deadline.milliseconds - self.now.milliseconds,
            cause: cause
        )
    }

    /// Returns the initial execution time of a push wake of this topic, in milliseconds.
    package func executionWindow(_ topic: TopicIndex) -> Int64 {
        self.parameters(topic).executionWindow
    }

    /// Returns the initial execution time, in milliseconds, of a wake that is in flight or remembered.
    package func executionWindow(ofWake id: WakeID) -> Int64? {
        guard let device = self.wakes.device(of: id) else { return nil }
        let kind = self.inFlight(id, device)?.kind ?? self.devices[device].endedWake(id)?.outcome.kind
        return kind.map { DeviceLanes.window($0, self.parameters(of: device)) }
    }

    /// Returns the last wake of this device, if it expired and is remembered.
    package func expiredWake(_ device: DeviceIndex) -> WakeID? {
        guard let last = self.devices[device].endedWakes?.elements.last else { return nil }
        return switch last.outcome {
        case .push(.expired), .task(_, .expired): last.id
        case .push, .task: nil
        }
    }

    /// Returns the topic of a wake that is in flight, or ended and remembered.
    package func topic(ofWake id: WakeID) -> TopicIndex? {
        self.wakes.device(of: id).map { self.devices[$0].topic }
    }

    /// Applies a worker's result to a wake.
    package func report(_ report: WakeReport, wake id: WakeID) -> ReportOutcome {
        guard let device = self.wakes.device(of: id) else { return .unknown }
        self.settleBeforeWakeEnds(device, id)
        guard let launch = self.inFlight(id, device) else {
            guard let before = self.devices[device].endedWake(id)?.outcome else { return .unknown }
            guard let outcome = report.outcome(of: before.kind) else { return .otherKind }
            return before == outcome ? .repeated : .endedOtherwise(before)
        }
        guard let outcome = report.outcome(of: launch.kind) else { return .otherKind }
        self.end(launch, device, outcome)
        self.settle(device)
        return .ended
    }

    /// Ends a wake in flight. The caller must then settle the device.
    ///
    /// - `outcome`: an outcome of the wake's kind.
    /// - Returns: the id of the wake.
    @discardableResult
    @inline(__always)
    func end(
        _ launch: InFlight,
        _ device: DeviceIndex,
        _ outcome: LaunchOutcome,
        takingBackAttempt: Bool = false
    ) -> WakeID {
        let record = self.devices[device]
        let (now, parameters) = (self.now, self.parameters(record.topic))
        switch (launch, outcome) {
        case (.push, .push(let outcome)):
            let action = self.change(device) {
                $0.wakeEnded(outcome, at: now, takingBackAttempt: takingBackAttempt, parameters, with: &$1)
            }
            let wake = record.wake
            self.noteEnd(device, record, outcome, action)
            return wake
        case (.task(let wake), .task(_, let outcome)):
            let action = self.changeLanes(device) {
                $0.taskEnded(wake.task.arrival, outcome, takingBackAttempt: takingBackAttempt, parameters)
            }
            return self.noteTaskEnd(device, wake, outcome, action)
        case (.push, .task), (.task, .push): preconditionFailure("the outcome is one of another kind")
        }
    }

    /// Extends a wake in flight to `milliseconds` from now, at the request of its worker.
    package func extend(_ id: WakeID, by milliseconds: Int64) -> ExtensionOutcome {
        guard let device = self.wakes.device(of: id) else { return .unknown }
        self.settleBeforeWakeEnds(device, id)
        let (moment, parameters) = (self.now + milliseconds, self.parameters(of: device))
        guard let inFlight = self.inFlight(id, device) else {
            return self.devices[device].endedWake(id).map { .ended($0.outcome) } ?? .unknown
        }
        let action =
            switch inFlight {
            case .push: self.devices[device].state.extensionRequested(until: moment, parameters)
            case .task(let wake):
                self.changeLanes(device) {
                    $0.taskExtensionRequested(wake.task.arrival, until: moment, parameters)
                }
            }
        if case .limitReached(let deadline) = action { return .limitReached(deadline) }
        guard case .extended(let deadline) = action else { return .lasts(action.deadline) }
        let seconds = UInt16(clamping: (deadline.milliseconds - self.now.milliseconds + 999) / 1000)
        switch inFlight {
        case .push:
            let content = self.devices[device].state.inFlight.flatMap { PushContent($0.push.handle) }
            self.remember(device, .extended(.push, seconds: seconds), content?.apnsID)
        case .task(let wake):
            let event = HistoryEvent.Kind.extended(LaunchKind(wake.task.kind), seconds: seconds)
            self.remember(device, event, name: self.text(wake.task, device))
        }
        self.reconcile(device)
        return .lasts(deadline)
    }

    /// Ends a wake as lost because its worker could not start it. The attempt does not count.
    package func release(_ id: WakeID) -> ReleaseOutcome {
        guard let device = self.wakes.device(of: id) else { return .unknown }
        self.settleBeforeWakeEnds(device, id)
        guard self.inFlight(id, device) != nil else {
            return self.devices[device].endedWake(id).map { .ended($0.outcome) } ?? .unknown
        }
        self.lose(id, takingBackAttempt: true)
        return .released
    }

    /// Ends a wake as lost because its stream ended.
    ///
    /// - `takingBackAttempt`: true if the wake never reached its worker. Such an attempt does not count.
    package func lose(_ id: WakeID, takingBackAttempt: Bool = false) {
        guard let device = self.wakes.device(of: id) else { return }
        self.settleBeforeWakeEnds(device, id)
        guard let launch = self.inFlight(id, device) else { return }
        self.end(launch, device, launch.lost, takingBackAttempt: takingBackAttempt)
        self.settle(device)
    }

    /// Applies the due events of a device that come before the outcome of a wake, which arrives now. Deadlines at
    /// exactly `now` come before the outcome, for this wake and for the wakes listed before it. The expiry of a pending
    /// push at `now` comes after it.
    func settleBeforeWakeEnds(_ device: DeviceIndex, _ id: WakeID) {
        self.warnIfDue(device)
        guard let moment = self.schedule[device], moment <= self.now else { return }
        guard moment == self.now else { return self.settle(device) }
        let record = self.devices[device]
        guard record.hasTasks else {
            if let deadline = record.state.inFlight?.deadline, deadline <= self.now { self.settle(device) }
            return
        }
        var wakes: [(id: WakeID?, deadline: Instant)] = []
        if let inFlight = record.state.inFlight { wakes.append((record.wake, inFlight.deadline)) }
        if let row = self.tasks[device] {
            wakes += row.policy.inFlight.map { (row.flight(of: $0.task.arrival)?.wake, $0.deadline) }
        }
        let last = wakes.firstIndex { $0.id == id } ?? wakes.count - 1
        if wakes.prefix(last + 1).contains(where: { $0.deadline <= self.now }) { self.settle(device) }
    }

    /// Launches the request with this identifier. Without an identifier, launches the pending push, or a wake without a
    /// push if none is pending. Ignores interval, budget and holds.
    ///
    /// - Returns: the wake; nil if the lane is full, or if no request with the identifier is pending.
    package func launchForced(_ device: DeviceIndex, identifier: String? = nil) -> WakeID? {
        self.settle(device)
        let (now, parameters) = (self.now, self.parameters(of: device))
        let id: WakeID
        if let identifier {
            guard let name = self.tasks[device]?.find(identifier),
                case .launched(let wake) = self.changeLanes(device, { $0.taskLaunchForced(name, at: now, parameters) })
            else { return nil }
            id = self.noteTaskLaunch(wake, device)
        } else {
            guard !self.isShortLaneFull(device) else { return nil }
            self.change(device) { $0.launchForced(at: now, parameters, with: &$1) }
            id = self.noteLaunch(device)
        }
        self.reconcile(device)
        return id
    }

    /// Expires a wake in flight immediately. The identifier names a request or a session. Without an identifier, the
    /// wake in the short lane expires.
    ///
    /// - Returns: the wake; nil if none is in flight.
    package func expireForced(_ device: DeviceIndex, identifier: String? = nil) -> WakeID? {
        self.settle(device)
        if identifier == nil, let push = self.devices[device].state.inFlight {
            defer { self.settle(device) }
            return self.end(.push(push), device, .push(.expired))
        }
        guard let row = self.tasks[device] else { return nil }
        let wakes = row.policy.inFlight.filter { wake in
            identifier.map { row.text(wake.task.name) == $0 } ?? (wake.task.kind.lane == .short)
        }
        guard let wake = wakes.first(where: { $0.task.kind != .urlSession }) ?? wakes.first else { return nil }
        defer { self.settle(device) }
        return self.end(.task(wake), device, .task(wake.task.kind, .expired))
    }

    func noteLaunch(_ device: DeviceIndex) -> WakeID {
        let id = WakeID(random: self.random())
        self.devices[device].launched(id)
        self.wakes.launched(id, device)
        let record = self.devices[device]
        self.count(record.topic) { $0.noteLaunch(.push) }
        guard let push = record.state.inFlight?.push else { preconditionFailure("a launch is in flight") }
        let hasWaited = push.firstReceivedAt < self.now || record.wait != nil
        self.remember(
            device,
            .launch(.push, attempt: UInt16(clamping: push.attempts), coalesced: UInt16(clamping: push.coalesced)),
            PushContent(push.handle)?.apnsID,
            related: hasWaited ? self.waited(device, push, isLaunched: true).stored : nil,
            wake: id
        )
        return id
    }

    /// Counts and times an ended wake, and remembers it for workers that answer late or repeatedly.
    private func noteEnd(_ wake: WakeID, _ outcome: LaunchOutcome, launchedAt: Instant, _ device: DeviceIndex) {
        self.count(self.devices[device].topic) { $0.noteEnd(outcome) }
        self.times.ended(outcome, after: self.now.milliseconds - launchedAt.milliseconds)
        self.wakes.ended(EndedWake(id: wake, outcome: outcome, at: self.now), device, in: &self.devices)
    }

    /// - `before`: the device's record in its state before the wake ended.
    func noteEnd(
        _ device: DeviceIndex,
        _ before: DeviceRecord,
        _ outcome: WakeOutcome,
        _ action: WakeEndedAction
    ) {
        let launchedAt = before.state.inFlight?.launchedAt ?? self.now
        self.noteEnd(before.wake, .push(outcome), launchedAt: launchedAt, device)
        let content = before.state.inFlight.flatMap { PushContent($0.push.handle) }
        let heir = self.heir(device, action)
        self.remember(device, .result(.push(outcome)), content?.apnsID, related: heir, wake: before.wake)
        switch action {
        case .completed(let push):
            self.count(before.topic) { $0.completed += 1 }
            if let content = PushContent(push) { self.memory.letGo(content, before.topic) }
        case .absorbed(let push):
            self.linkTraces(of: push, device)
            self.absorb(push, before.topic)
            // The wait of the pending push starts at its own arrival.
            if before.wait == nil, let newer = before.state.pending {
                let hold = before.held == .worker ? nil : before.held
                self.devices[device].wait = WaitLog(start: newer.firstReceivedAt, hold)
            }
        case .discarded(let push, let reason): self.discard(push, reason, device)
        case .retries: self.devices[device].wait = WaitLog(start: self.now)
        case .nothing: break
        }
    }

    /// Adds the traces of a push to the pending push that it was coalesced into when its wake ended.
    private func linkTraces(of older: PushHandle, _ device: DeviceIndex) {
        guard let older = PushContent(older), let pending = self.devices[device].state.pending,
            let newer = PushContent(pending.handle), let joined = self.traces.content(of: newer, inPlaceOf: older)
        else { return }
        let topic = self.devices[device].topic
        self.memory.hold(joined, topic)
        self.devices[device].state.pendingCarries(joined.handle)
        self.memory.letGo(newer, topic)
    }

    /// Returns the apns-id of the pending push that absorbed the push of an ended wake.
    private func heir(_ device: DeviceIndex, _ action: WakeEndedAction) -> APNsID? {
        guard case .absorbed = action else { return nil }
        return self.devices[device].state.pending.flatMap { PushContent($0.handle)?.apnsID }
    }
}

extension WakeReport {
    /// Returns the outcome of a wake of this kind with this report; nil if the report is for another kind.
    func outcome(of kind: LaunchKind) -> LaunchOutcome? {
        switch (self, kind.task) {
        case (.push(let result), nil): .push(result.outcome)
        case (.task(let result), let task?): .task(task, result.outcome)
        case (.push, _?), (.task, nil): nil
        }
    }
}

extension FetchResult {
    /// The outcome of a wake with this result.
    var outcome: WakeOutcome {
        switch self {
        case .newData: .newData
        case .noData: .noData
        case .failed: .failed
        }
    }
}

// MARK: - Launches

extension DeviceEngine {
    /// Launches a task whose policy state allows it.
    func launchTask(_ arrival: UInt64, _ device: DeviceIndex) -> WakeID {
        let (now, parameters) = (self.now, self.parameters(of: device))
        let wake = self.changeLanes(device) { $0.taskLaunched(arrival, at: now, parameters) }
        return self.noteTaskLaunch(wake, device)
    }

    func noteTaskLaunch(_ wake: TaskWake, _ device: DeviceIndex) -> WakeID {
        let row = self.tasks.row(device)
        let id = WakeID(random: self.random())
        let resumedFrom = row.note(wake.task)?.resumption
        let waited = self.waited(device, wake.task, isLaunched: true)
        row.keepWait(nil, of: wake.task.arrival)
        row.takeOff(TaskRow.Flight(arrival: wake.task.arrival, wake: id, resumedFrom: resumedFrom))
        self.tasks.noteChange(device, row)
        self.wakes.launched(id, device)
        self.count(self.devices[device].topic) { $0.noteLaunch(LaunchKind(wake.task.kind)) }
        let event = HistoryEvent.Kind.launch(LaunchKind(wake.task.kind), attempt: UInt16(clamping: wake.task.attempts))
        self.remember(device, event, name: row.text(wake.task.name), related: waited.stored, wake: id)
        return id
    }
}

// MARK: - Ends

extension DeviceEngine {
    /// Records the end of a task's wake after the policy has applied it.
    ///
    /// - `wake`: the wake in its state before the end.
    /// - Returns: the id of the wake.
    func noteTaskEnd(
        _ device: DeviceIndex,
        _ wake: TaskWake,
        _ outcome: TaskOutcome,
        _ action: TaskEndedAction
    ) -> WakeID {
        let row = self.tasks.row(device)
        let flight = row.land(wake.task.arrival)
        self.tasks.noteChange(device, row)
        self.noteEnd(flight.wake, .task(wake.task.kind, outcome), launchedAt: wake.launchedAt, device)
        let kind = HistoryEvent.Kind.result(.task(wake.task.kind, outcome))
        self.remember(device, kind, name: row.text(wake.task.name), wake: flight.wake)
        switch action {
        case .ended(let task):
            guard task.kind == .urlSession else { break }
            self.count(self.devices[device].topic) { $0.sessions.completed += Int64(clamping: task.transfers) }
        case .waits(_, let replaced):
            if wake.task.kind == .continued { row.keepResumption(of: flight) }
            row.keepWait(WaitLog(start: self.now), of: wake.task.arrival)
            if let replaced { self.noteDropped(replaced, .replaced, device) }
        case .replaced(let task): self.noteDropped(task, .replaced, device, waits: false)
        case .merged: break
        case .discarded(let task, let reason, let replaced):
            self.noteDropped(task, reason, device, waits: false)
            if let replaced { self.noteDropped(replaced, .replaced, device) }
        }
        return flight.wake
    }
}

// MARK: - Progress

extension DeviceEngine {
    /// Applies a worker's progress report for a continued task. Reports are stored with a delay, so that only the last
    /// of many is written.
    package func progress(_ progress: TaskProgress, wake id: WakeID) -> ProgressOutcome {
        guard let device = self.wakes.device(of: id) else { return .unknown }
        self.settleBeforeWakeEnds(device, id)
        switch self.inFlight(id, device) {
        case nil: return self.devices[device].endedWake(id).map { .ended($0.outcome) } ?? .unknown
        case .push: return .notContinued
        case .task(let wake):
            let arrival = wake.task.arrival
            let row = self.tasks.row(device)
            let parameters = self.parameters(of: device)
            var lanes = DeviceLanes(device: self.devices[device].state, tasks: row.takePolicy())
            let deadline = lanes.progressReported(
                arrival,
                completed: progress.completed,
                of: progress.total,
                at: self.now,
                parameters
            )
            row.policy = lanes.tasks
            guard let deadline else { return .notContinued }
            if row.progressReported(progress, of: arrival) { self.tasks.noteProgress(device, row, at: self.now) }
            if deadline != wake.deadline { self.deriveDeadline(device, row, lanes, parameters) }
            return .lasts(deadline)
        }
    }

    /// Updates the device's next due time after a deadline moved, and all derived state if something is due.
    private func deriveDeadline(
        _ device: DeviceIndex,
        _ row: TaskRow,
        _ lanes: DeviceLanes,
        _ parameters: Parameters
    ) {
        guard !self.schedule.isJudging, let moment = self.schedule[device], moment > self.now else {
            return self.derive(device)
        }
        let next = lanes.nextMoment(beside: self.now, parameters)
        self.schedule.set(device, to: self.warning(device, row, parameters, before: next))
    }
}

// MARK: - Identity of wakes

extension DeviceEngine {
    /// The launch of a wake in flight.
    enum InFlight {
        case push(WakeInFlight)
        case task(TaskWake)

        @inline(__always)
        var kind: LaunchKind {
            switch self {
            case .push: .push
            case .task(let wake): LaunchKind(wake.task.kind)
            }
        }

        @inline(__always)
        var deadline: Instant {
            switch self {
            case .push(let wake): wake.deadline
            case .task(let wake): wake.deadline
            }
        }

        /// The outcome of this launch if its wake is lost.
        var lost: LaunchOutcome { self.kind.task.map { .task($0, .lost) } ?? .push(.lost) }
    }

    /// Returns the launch of the wake with this id; nil if it is not in flight.
    @inline(__always)
    func inFlight(_ id: WakeID, _ device: DeviceIndex) -> InFlight? {
        if self.devices[device].wake == id, let wake = self.devices[device].state.inFlight { return .push(wake) }
        guard self.devices[device].hasTasks else { return nil }
        return self.tasks[device]?.wake(id).map { .task($0) }
    }

    /// Returns the wakes of the device that are in flight.
    package func wakesInFlight(_ device: DeviceIndex) -> [WakeID] {
        let record = self.devices[device]
        return record.wakesInFlight(record.hasTasks ? self.tasks[device] : nil)
    }
}

extension DeviceRecord {
    /// Returns the wakes in flight of the device with these tasks.
    func wakesInFlight(_ tasks: TaskRow?) -> [WakeID] {
        let push = self.state.inFlight == nil ? [] : [self.wake]
        guard let tasks else { return push }
        return push + tasks.policy.inFlight.compactMap { tasks.flight(of: $0.task.arrival)?.wake }
    }
}

extension TaskResult {
    /// The outcome of a wake with this result.
    var outcome: TaskOutcome {
        switch self {
        case .success: .success
        case .failure: .failure
        }
    }
}

package import Bytes
package import LaunchPolicy

extension EmbeddedEngine {
    /// Launches the device that has waited longest for a slot of this topic.
    ///
    /// - Returns: the wake, valid until the engine is next called; nil when none waits.
    package func claim(_ topic: TopicIndex) -> LaunchedWake? {
        while let device = self.ready.first(topic) {
            if let wake = self.claim(device) { return wake }
        }
        return nil
    }

    /// Launches this device, if it waits for nothing but a slot.
    ///
    /// - Returns: the wake, valid until the engine is next called; nil when it does not wait.
    package func claim(_ device: DeviceIndex) -> LaunchedWake? {
        let record = self.devices[device]
        guard record.isReady else { return nil }
        let parameters = self.parameters(record.topic)
        guard record.state.isLaunchable(self.now, parameters) else {
            self.settle(device)
            return nil
        }
        self.times.lateness.record(record.readyMilliseconds(at: self.now))
        self.devices[device].state.launched(at: self.now, parameters)
        _ = self.noteLaunch(device)
        self.reconcile(device)
        return self.launchedWake(device)
    }

    /// How many devices wait for a slot of this topic.
    package func readyCount(_ topic: TopicIndex) -> Int { self.ready.count(topic) }

    /// The wake in flight with this id, valid until the engine is next called.
    package func wake(_ id: WakeID) -> LaunchedWake? {
        guard let device = self.wakes.device(of: id), self.devices[device].wake == id else { return nil }
        return self.launchedWake(device)
    }

    /// The device's wake in flight, valid until the engine is next called.
    package func launchedWake(_ device: DeviceIndex) -> LaunchedWake? {
        let record = self.devices[device]
        guard let inFlight = record.state.inFlight else { return nil }
        return LaunchedWake(
            id: record.wake,
            kind: .push,
            token: record.token.token,
            topic: self.topics.name(record.topic),
            push: inFlight.push,
            deadline: inFlight.deadline,
            timeLeft: inFlight.deadline.milliseconds - self.now.milliseconds,
            content: PushContent(inFlight.push.handle)
        )
    }

    /// The id of the device's wake in flight.
    package func wakeInFlight(_ device: DeviceIndex) -> WakeID? {
        let record = self.devices[device]
        return record.state.inFlight == nil ? nil : record.wake
    }

    /// How long a wake of this topic may take at first, in milliseconds.
    package func executionWindow(_ topic: TopicIndex) -> Int64 {
        self.parameters(topic).executionWindow
    }

    /// The topic of a wake in flight, or of one that has ended and is remembered.
    package func topic(ofWake id: WakeID) -> TopicIndex? {
        self.wakes.device(of: id).map { self.devices[$0].topic }
    }

    /// A worker reported the result of a wake.
    package func report(_ result: FetchResult, wake id: WakeID) -> ReportOutcome {
        let outcome = result.outcome
        guard let device = self.wakes.device(of: id) else { return .unknown }
        self.settleBeforeWakeEnds(device)
        let record = self.devices[device]
        guard record.wake == id, record.state.inFlight != nil else {
            guard let before = record.endedWake(id) else { return .unknown }
            return before.outcome == .push(outcome) ? .repeated : .endedOtherwise(before.outcome)
        }
        let parameters = self.parameters(record.topic)
        let action = self.devices[device].state.resultReported(result, at: self.now, parameters)
        self.noteEnd(device, record, outcome, action)
        self.settle(device)
        return .ended
    }

    /// A worker asked for a wake in flight to last for `milliseconds` from now.
    package func extend(_ id: WakeID, by milliseconds: Int64) -> ExtensionOutcome {
        guard let device = self.wakes.device(of: id) else { return .unknown }
        self.settleBeforeWakeEnds(device)
        let record = self.devices[device]
        guard record.wake == id, record.state.inFlight != nil else {
            return record.endedWake(id).map { .ended($0.outcome) } ?? .unknown
        }
        let parameters = self.parameters(record.topic)
        let moment = self.now + milliseconds
        switch self.devices[device].state.extensionRequested(until: moment, parameters) {
        case .unchanged(let deadline): return .lasts(deadline)
        case .limitReached(let deadline): return .limitReached(deadline)
        case .extended(let deadline):
            let seconds = (deadline.milliseconds - self.now.milliseconds + 999) / 1000
            let content = record.state.inFlight.flatMap { PushContent($0.push.handle) }
            self.remember(device, .extended(seconds: UInt16(clamping: seconds)), content?.apnsID)
            self.reconcile(device)
            return .lasts(deadline)
        }
    }

    /// The stream that carried a wake in flight ended.
    ///
    /// - `takingBackAttempt`: the wake never reached its worker, so that its attempt does not count.
    package func lose(_ id: WakeID, takingBackAttempt: Bool = false) {
        guard let device = self.wakes.device(of: id) else { return }
        self.settleBeforeWakeEnds(device)
        let record = self.devices[device]
        guard record.wake == id, record.state.inFlight != nil else { return }
        let parameters = self.parameters(record.topic)
        let action = self.devices[device].state.wakeLost(at: self.now, takingBackAttempt: takingBackAttempt, parameters)
        self.noteEnd(device, record, .lost, action)
        self.settle(device)
    }

    /// Does what was due before an outcome that arrives now: at one moment a deadline goes before an outcome, but an
    /// outcome before the expiry of a pending push.
    private func settleBeforeWakeEnds(_ device: DeviceIndex) {
        guard let moment = self.schedule[device], moment <= self.now else { return }
        let deadline = self.devices[device].state.inFlight?.deadline ?? .distantFuture
        if moment < self.now || deadline <= self.now { self.settle(device) }
    }

    /// Launches what is pending, or an empty wake, outside interval, budget and holds.
    package func launchForced(_ device: DeviceIndex) -> ForcedLaunch {
        self.settle(device)
        let record = self.devices[device]
        guard record.state.inFlight == nil else { return .wakeInFlight }
        self.devices[device].state.launchForced(at: self.now, self.parameters(record.topic))
        let wake = self.noteLaunch(device)
        self.reconcile(device)
        return .launched(wake)
    }

    /// Ends the wake in flight as expired now.
    ///
    /// - Returns: the wake that ended; nil when none is in flight.
    package func expireForced(_ device: DeviceIndex) -> WakeID? {
        self.settle(device)
        let record = self.devices[device]
        guard record.state.inFlight != nil else { return nil }
        let action = self.devices[device].state.wakeExpired(at: self.now, self.parameters(record.topic))
        self.noteEnd(device, record, .expired, action)
        self.settle(device)
        return record.wake
    }

    func noteLaunch(_ device: DeviceIndex) -> WakeID {
        let id = WakeID(random: self.random())
        self.devices[device].wake = id
        self.wakes.launched(id, device)
        let record = self.devices[device]
        self.count(record.topic) { $0.noteLaunch(.push) }
        guard let push = record.state.inFlight?.push else { preconditionFailure("a launch is in flight") }
        self.remember(
            device,
            .launch(attempt: UInt16(clamping: push.attempts), coalesced: UInt16(clamping: push.coalesced)),
            PushContent(push.handle)?.apnsID
        )
        return id
    }

    /// - Parameter before: the record as it was while the wake was in flight.
    func noteEnd(
        _ device: DeviceIndex,
        _ before: DeviceRecord,
        _ outcome: WakeOutcome,
        _ action: WakeEndedAction
    ) {
        self.count(before.topic) { $0.noteEnd(.push(outcome)) }
        if let launchedAt = before.state.inFlight?.launchedAt {
            self.times.ended(outcome, after: self.now.milliseconds - launchedAt.milliseconds)
        }
        let content = before.state.inFlight.flatMap { PushContent($0.push.handle) }
        self.remember(device, .result(outcome), content?.apnsID, related: self.heir(device, action))
        let ended = EndedWake(id: before.wake, outcome: .push(outcome), at: self.now)
        self.wakes.ended(ended, device, in: &self.devices)
        switch action {
        case .completed(let push):
            self.count(before.topic) { $0.completed += 1 }
            if let content = PushContent(push) { self.memory.letGo(content, before.topic) }
        case .absorbed(let push):
            self.linkTraces(of: push, device)
            self.absorb(push, before.topic)
        case .discarded(let push, let reason): self.discard(push, reason, device)
        case .retries, .nothing: break
        }
    }

    /// Notes with the pending push the traces of an older one, whose wake has ended and which is coalesced into it.
    private func linkTraces(of older: PushHandle, _ device: DeviceIndex) {
        let state = self.devices[device].state
        guard let older = PushContent(older), var pending = state.pending, let newer = PushContent(pending.handle),
            let joined = self.traces.content(of: newer, inPlaceOf: older)
        else { return }
        let topic = self.devices[device].topic
        self.memory.hold(joined, topic)
        pending.handle = joined.handle
        self.devices[device].state = DeviceState(
            pending: pending,
            inFlight: state.inFlight,
            spacing: state.spacing,
            conditions: state.conditions,
            penalty: state.penalty
        )
        self.memory.letGo(newer, topic)
    }

    /// The push that another one was coalesced into when its wake ended.
    private func heir(_ device: DeviceIndex, _ action: WakeEndedAction) -> APNsID? {
        guard case .absorbed = action else { return nil }
        return self.devices[device].state.pending.flatMap { PushContent($0.handle)?.apnsID }
    }
}

extension FetchResult {
    /// How a wake ends that is reported so.
    var outcome: WakeOutcome {
        switch self {
        case .newData: .newData
        case .noData: .noData
        case .failed: .failed
        }
    }
}

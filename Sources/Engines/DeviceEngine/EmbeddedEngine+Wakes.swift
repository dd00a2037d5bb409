package import Bytes
package import LaunchPolicy

extension EmbeddedEngine {
    /// Launches the device that has waited longest for a slot of this topic.
    package func claim(_ topic: TopicIndex) -> WakeID? {
        while self.topics[Int(topic.rawValue)].firstReady != .none {
            if let wake = self.claim(self.topics[Int(topic.rawValue)].firstReady) { return wake }
        }
        return nil
    }

    /// Launches this device, if it waits for nothing but a slot.
    package func claim(_ device: DeviceIndex) -> WakeID? {
        let record = self.devices[device]
        guard record.isReady else { return nil }
        let parameters = self.parameters(record.topic)
        guard record.state.isLaunchable(self.now, parameters) else {
            self.settle(device)
            return nil
        }
        self.times.lateness.record(record.readyMilliseconds(at: self.now))
        self.devices[device].state.launched(at: self.now, parameters)
        let wake = self.noteLaunch(device)
        self.reconcile(device)
        return wake
    }

    /// How many devices wait for a slot of this topic.
    package func readyCount(_ topic: TopicIndex) -> Int {
        self.topics[Int(topic.rawValue)].readyCount
    }

    /// The wake in flight with this id, valid until the engine is next called.
    package func wake(_ id: WakeID) -> LaunchedWake? {
        guard let device = self.wakes[id] else { return nil }
        let record = self.devices[device]
        guard record.wake == id, let inFlight = record.state.inFlight else { return nil }
        return LaunchedWake(
            id: id,
            kind: .push,
            token: record.token.token,
            topic: self.topics[Int(record.topic.rawValue)].name,
            push: inFlight.push,
            deadline: inFlight.deadline,
            timeLeft: inFlight.deadline.milliseconds - self.now.milliseconds,
            content: PushContent(inFlight.push.handle)
        )
    }

    /// The device's wake in flight.
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
        self.wakes[id].map { self.devices[$0].topic }
    }

    /// A worker reported the result of a wake.
    package func report(_ result: FetchResult, wake id: WakeID) -> ReportOutcome {
        let outcome = result.outcome
        guard let device = self.wakes[id] else { return .unknown }
        self.settleBeforeWakeEnds(device)
        let record = self.devices[device]
        guard record.wake == id, record.state.inFlight != nil else {
            let before = record.endedWakes.value?.elements.first { $0.id == id }
            guard let before else { return .unknown }
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
        guard let device = self.wakes[id] else { return .unknown }
        self.settleBeforeWakeEnds(device)
        let record = self.devices[device]
        guard record.wake == id, record.state.inFlight != nil else {
            let before = record.endedWakes.value?.elements.first { $0.id == id }
            return before.map { .ended($0.outcome) } ?? .unknown
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
        guard let device = self.wakes[id] else { return }
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
        guard let moment = self.due[device], moment <= self.now else { return }
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
        self.wakes[id] = device
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
        self.rememberEnded(ended, device)
        switch action {
        case .completed(let push):
            self.count(before.topic) { $0.completed += 1 }
            if let content = PushContent(push) { self.letGo(content, before.topic) }
        case .absorbed(let push):
            self.linkTraces(of: push, device)
            self.absorb(push, before.topic)
        case .discarded(let push, let reason): self.discard(push, reason, device)
        case .retries, .nothing: break
        }
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

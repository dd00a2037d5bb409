// MARK: - What happens to a push

extension Simulator {
    mutating func pushReceived(
        _ push: TracePush,
        _ device: Int,
        _ now: Instant,
        _ output: (Line) -> Void
    ) {
        self.lastHandle += 1
        let handle = PushHandle(rawValue: self.lastHandle)
        self.identifiers[handle] = push.apnsID
        let arriving = ArrivingPush(handle: handle, priority: push.priority, expiration: push.expiration)
        let action = self.devices[device].lanes.pushReceived(
            arriving,
            at: now,
            workerIsFree: true,
            self.parameters
        )
        switch action {
        case .launched(let absorbed):
            self.emit(.push(.launched), handle, device, now, output)
            self.coalesce(absorbed)
            self.launched(device, now, output)
        case .waits(let absorbed):
            self.emit(.push(absorbed == nil ? .scheduled : .coalesced), handle, device, now, output)
            self.coalesce(absorbed)
        case .discarded:
            self.emit(.push(.discarded), handle, device, now, output)
            self.discard(handle, .expired, device, now, output)
        }
    }

    mutating func launched(_ device: Int, _ now: Instant, _ output: (Line) -> Void) {
        guard let wake = self.devices[device].lanes.device.inFlight else { preconditionFailure("nothing was launched") }
        self.devices[device].launched(wake, self.script)
        let event = OutcomeLine.Event.launch(coalesced: wake.push.coalesced, attempt: wake.push.attempts)
        self.emit(event, wake.push.handle, device, now, output)
    }

    mutating func answered(
        _ answer: WorkerScript.Answer,
        _ device: Int,
        _ now: Instant,
        _ output: (Line) -> Void
    ) {
        guard let wake = self.devices[device].lanes.device.inFlight else { preconditionFailure("no wake is in flight") }
        func ended(_ outcome: WakeOutcome) {
            let action = self.devices[device].lanes.pushEnded(outcome, at: now, self.parameters)
            self.wakeEnded(wake, outcome, action, device, now, output)
        }
        switch answer {
        case .newData: ended(.newData)
        case .noData: ended(.noData)
        case .failed: ended(.failed)
        case .lost: ended(.lost)
        case .none: preconditionFailure("an answer that never comes has no moment")
        }
    }

    mutating func wakeEnded(
        _ wake: WakeInFlight,
        _ outcome: WakeOutcome,
        _ action: WakeEndedAction,
        _ device: Int,
        _ now: Instant,
        _ output: (Line) -> Void
    ) {
        self.devices[device].answer = nil
        self.emit(.result(outcome), wake.push.handle, device, now, output)
        switch action {
        case .completed(let handle):
            self.summary.completed += 1
            self.identifiers[handle] = nil
        case .retries: break
        case .absorbed(let handle): self.coalesce(handle)
        case .discarded(let handle, let reason): self.discard(handle, reason, device, now, output)
        case .nothing: preconditionFailure("the simulator launches no empty wakes")
        }
    }

    private mutating func coalesce(_ absorbed: PushHandle?) {
        guard let absorbed else { return }
        self.summary.coalesced += 1
        self.identifiers[absorbed] = nil
    }

    mutating func discard(
        _ handle: PushHandle,
        _ reason: DiscardReason,
        _ device: Int,
        _ now: Instant,
        _ output: (Line) -> Void
    ) {
        self.emit(.discard(reason), handle, device, now, output)
        self.identifiers[handle] = nil
    }

    private mutating func emit(
        _ event: OutcomeLine.Event,
        _ handle: PushHandle,
        _ device: Int,
        _ now: Instant,
        _ output: (Line) -> Void
    ) {
        guard let apnsID = self.identifiers[handle] else { preconditionFailure("the push has ended already") }
        self.summary.count(event)
        output(.push(OutcomeLine(moment: now, device: self.devices[device].name, apnsID: apnsID, event: event)))
    }
}

import Policy
import Wire

extension EmbeddedEngine {
    /// Ends and expires what is due of one device, then brings everything that is derived from its state up to date.
    func settle(_ device: DeviceIndex) {
        guard !self.devices[device].hasTasks else { return self.settleLanes(device) }
        while true {
            let record = self.devices[device]
            switch self.devices[device].state.timePassed(self.now, self.parameters(record.topic)) {
            case .nothing:
                self.reconcile(device)
                return
            case .wakeExpired(let action):
                let wake = record.wake
                self.noteEnd(device, record, .expired, action)
                self.wakes.expired(wake, .deadline)
            case .pendingExpired(let push): self.discard(push, .expired, device)
            }
        }
    }

    /// Does what is due of one device by now, though a bounded step may not have come to it yet: a launch, if it waits
    /// for one, is up to whoever drives the engine.
    ///
    /// - Returns: whether there was anything.
    package func catchUp(_ device: DeviceIndex) -> Bool {
        if let moment = self.schedule[device], moment <= self.now {
            self.schedule.begin(moment)
            self.settle(device)
            self.schedule.end()
            return true
        }
        // What follows from its state may still be that of another policy.
        let record = self.devices[device]
        guard self.schedule.isJudging, record.state.pending != nil || record.hasTasks else { return false }
        self.derive(device)
        return true
    }

    /// Brings everything that is derived from a device's state up to date, and notes the change.
    func reconcile(_ device: DeviceIndex) {
        self.derive(device)
        self.devices.noteChange(device)
    }

    /// Brings gauges, queues and due index up to date with what the policy keeps of the device.
    func derive(_ device: DeviceIndex) {
        guard !self.devices[device].hasTasks else { return self.deriveLanes(device) }
        let state = self.devices[device].state
        let parameters = self.parameters(self.devices[device].topic)
        let isReady = state.isLaunchable(self.now, parameters)
        self.derivePush(device, state, parameters, isReady: isReady)
        // A device that waits for a slot is launched by a claim; only the expiry of its push is left to time.
        self.schedule.set(device, to: isReady ? state.pending?.expiry : state.nextMoment(parameters))
    }

    /// Brings gauges and queue up to date with the device's push.
    ///
    /// - `isReady`: the pending push waits for nothing but a slot.
    @inline(__always)
    func derivePush(_ device: DeviceIndex, _ state: DeviceState, _ parameters: Parameters, isReady: Bool) {
        if isReady != self.devices[device].isReady {
            if isReady {
                let moment = self.schedule.momentBeingDone ?? self.now
                self.ready.append(device, since: moment, in: &self.devices)
            } else {
                self.ready.remove(device, in: &self.devices)
            }
        }
        var held: HoldCode?
        if let pending = state.pending {
            held = state.hold(pending.priority, parameters).map { HoldCode($0) } ?? (isReady ? .worker : nil)
        }
        let isPending = state.pending != nil
        let isInFlight = state.inFlight.map { $0.push.handle != .none } ?? false
        let before = (
            held: self.devices[device].held, isPending: self.devices[device].isPending,
            isInFlight: self.devices[device].isInFlight
        )
        if held != before.held || isPending != before.isPending || isInFlight != before.isInFlight {
            self.count(self.devices[device].topic) { books in
                if let before = before.held { books.held[before] -= 1 }
                if let held { books.held[held] += 1 }
                books.pending += (isPending ? 1 : 0) - (before.isPending ? 1 : 0)
                books.inFlight += (isInFlight ? 1 : 0) - (before.isInFlight ? 1 : 0)
            }
            self.devices[device].held = held
            self.devices[device].isPending = isPending
            self.devices[device].isInFlight = isInFlight
        }
    }

    func discard(_ push: PushHandle, _ reason: DiscardReason, _ device: DeviceIndex) {
        self.count(self.devices[device].topic) { $0.discarded[reason] += 1 }
        let content = PushContent(push)
        self.remember(device, .discard(reason), content?.apnsID)
        if let content { self.memory.letGo(content, self.devices[device].topic) }
    }

    func remember(
        _ device: DeviceIndex,
        _ kind: HistoryEvent.Kind,
        _ apnsID: APNsID?,
        related: APNsID? = nil,
        terms: PushTerms? = nil,
        wake: WakeID? = nil
    ) {
        self.events.append(device, kind, apnsID, related: related, terms: terms, at: self.now, in: self.devices)
        if let offset = self.watchOffset { self.watch(device, kind, apnsID, related: related, wake: wake, offset) }
    }

    func remember(_ device: DeviceIndex, _ kind: HistoryEvent.Kind, name: String, wake: WakeID? = nil) {
        self.events.append(device, kind, name: name, at: self.now, in: self.devices)
        if let offset = self.watchOffset { self.watch(device, kind, nil, wake: wake, name: name, offset) }
    }

    func parameters(_ topic: TopicIndex) -> Parameters { self.topics.parameters(topic) }

    func count(_ topic: TopicIndex, _ change: (inout Books) -> Void) { self.topics.count(topic, change) }
}

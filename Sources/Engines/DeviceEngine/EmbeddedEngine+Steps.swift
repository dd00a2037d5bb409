import Bytes
import LaunchPolicy

extension EmbeddedEngine {
    /// Ends and expires what is due of one device, then brings everything that is derived from its state up to date.
    func settle(_ device: DeviceIndex) {
        while true {
            let record = self.devices[device]
            switch self.devices[device].state.timePassed(self.now, self.parameters(record.topic)) {
            case .nothing:
                self.reconcile(device)
                return
            case .wakeExpired(let action):
                self.noteEnd(device, record, .expired, action)
                self.expiredWakes.append(record.wake)
            case .pendingExpired(let push): self.discard(push, .expired, device)
            }
        }
    }

    /// Does what is due of one device by now, though a bounded step may not have come to it yet: a launch, if it waits
    /// for one, is up to whoever drives the engine.
    ///
    /// - Returns: whether there was anything.
    package func catchUp(_ device: DeviceIndex) -> Bool {
        if let moment = self.due[device], moment <= self.now {
            self.dueMoment = moment
            self.settle(device)
            self.dueMoment = nil
            return true
        }
        // What follows from its state may still be that of another policy.
        guard self.firstUnjudged != nil, self.devices[device].state.pending != nil else { return false }
        self.derive(device)
        return true
    }

    /// Brings everything that is derived from a device's state up to date, and notes the change.
    func reconcile(_ device: DeviceIndex) {
        self.derive(device)
        self.noteChange(device)
    }

    /// Brings gauges, queue and due index up to date with the device's state.
    func derive(_ device: DeviceIndex) {
        let record = self.devices[device]
        let state = record.state
        let parameters = self.parameters(record.topic)
        let isReady = state.isLaunchable(self.now, parameters)
        if isReady != record.isReady { isReady ? self.enqueue(device) : self.dequeue(device) }
        var held: HoldCode?
        if let pending = state.pending {
            held = state.hold(pending.priority, parameters).map { HoldCode($0) } ?? (isReady ? .worker : nil)
        }
        let isPending = state.pending != nil
        let isInFlight = state.inFlight.map { $0.push.handle != .none } ?? false
        if held != record.held || isPending != record.isPending || isInFlight != record.isInFlight {
            self.count(record.topic) { books in
                if let before = record.held { books.held[before] -= 1 }
                if let held { books.held[held] += 1 }
                books.pending += (isPending ? 1 : 0) - (record.isPending ? 1 : 0)
                books.inFlight += (isInFlight ? 1 : 0) - (record.isInFlight ? 1 : 0)
            }
            self.devices[device].held = held
            self.devices[device].isPending = isPending
            self.devices[device].isInFlight = isInFlight
        }
        // A device that waits for a slot is launched by a claim; only the expiry of its push is left to time.
        self.due.set(device, to: isReady ? state.pending?.expiry : state.nextMoment(parameters))
    }

    func discard(_ push: PushHandle, _ reason: DiscardReason, _ device: DeviceIndex) {
        self.count(self.devices[device].topic) { $0.discarded[reason] += 1 }
        let content = PushContent(push)
        self.remember(device, .discard(reason), content?.apnsID)
        if let content { self.letGo(content, self.devices[device].topic) }
    }

    func enqueue(_ device: DeviceIndex) {
        let topic = Int(self.devices[device].topic.rawValue)
        let last = self.topics[topic].lastReady
        self.devices[device].becameReady(at: self.dueMoment ?? self.now)
        self.devices[device].previousReady = last
        self.devices[device].nextReady = .none
        if last == .none { self.topics[topic].firstReady = device } else { self.devices[last].nextReady = device }
        self.topics[topic].lastReady = device
        self.topics[topic].readyCount += 1
        self.newlyReady.append(device)
    }

    func dequeue(_ device: DeviceIndex) {
        let record = self.devices[device]
        let topic = Int(record.topic.rawValue)
        let (previous, next) = (record.previousReady, record.nextReady)
        if previous == .none {
            self.topics[topic].firstReady = next
        } else {
            self.devices[previous].nextReady = next
        }
        if next == .none {
            self.topics[topic].lastReady = previous
        } else {
            self.devices[next].previousReady = previous
        }
        self.topics[topic].readyCount -= 1
        self.devices[device].isReady = false
    }

    func noteChange(_ device: DeviceIndex) {
        guard !self.devices[device].isChanged else { return }
        self.devices[device].isChanged = true
        self.changed.append(device)
    }

    func remember(
        _ device: DeviceIndex,
        _ kind: HistoryEvent.Kind,
        _ apnsID: APNsID?,
        related: APNsID? = nil,
        terms: PushTerms? = nil
    ) {
        let number = self.historyNumber(device)
        self.events.append(
            HistoryEvent(device: number, at: self.now, kind: kind, apnsID: apnsID, related: related, terms: terms)
        )
    }

    private func historyNumber(_ device: DeviceIndex) -> UInt64 {
        if self.lastNumbered.device != device {
            let number = HistoryEvent.device(of: self.devices[device].token.token, self.historyKey)
            self.lastNumbered = (device, number)
        }
        return self.lastNumbered.number
    }

    func parameters(_ topic: TopicIndex) -> Parameters {
        self.topics[Int(topic.rawValue)].parameters
    }

    func count(_ topic: TopicIndex, _ change: (inout Books) -> Void) {
        let place = Int(topic.rawValue)
        change(&self.topics[place].books)
        change(&self.totals)
        guard !self.topics[place].isChanged else { return }
        self.topics[place].isChanged = true
        self.changedTopics.append(topic)
    }
}

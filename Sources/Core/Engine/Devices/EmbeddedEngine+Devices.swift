package import Policy
package import Wire

extension EmbeddedEngine {
    /// The device with this token, removed ones included.
    package func find(_ token: borrowing DeviceToken) -> DeviceIndex? {
        let number = HistoryEvent.device(of: token, self.events.key)
        guard let device = self.devices.find(token, hash: number) else { return nil }
        self.events.found(device, number: number)
        return device
    }

    /// The device that events know by this number, removed ones included.
    package func find(number: UInt64) -> DeviceIndex? { self.devices.find(hash: number) }

    /// The device's token, its topic, and whether it is registered.
    package func identity(_ device: DeviceIndex) -> (token: DeviceToken, topic: TopicIndex, isRegistered: Bool) {
        let record = self.devices[device]
        return (record.token.token, record.topic, record.isRegistered)
    }

    /// The device's topic.
    package func topic(of device: DeviceIndex) -> TopicIndex { self.devices[device].topic }

    /// Registers a token, or leaves a registered one as it is.
    package func register(_ token: borrowing DeviceToken, topic name: ByteView) -> Admission {
        guard let device = self.find(token) else {
            if let refusal = self.refusalOfNewcomer(topic: name) { return .refused(refusal) }
            let device = self.insert(copy token, topic: self.topic(name))
            return .device(device)
        }
        let record = self.devices[device]
        let isSame = self.topics.isName(name, of: record.topic)
        guard !record.isRegistered else { return isSame ? .device(device) : .refused(.otherTopic) }
        // A wake of the former registration is still counted under its topic.
        guard isSame || self.wakesInFlight(device).isEmpty else { return .refused(.otherTopic) }
        if !isSame {
            if let refusal = self.refusalOfMove(topic: name) { return .refused(refusal) }
            let topic = self.topic(name)
            self.topics.countDevices(record.topic, -1)
            self.topics.countDevices(topic, 1)
            self.devices[device].topic = topic
        }
        self.devices[device].isRegistered = true
        // The removal discarded the pushes that these answers are about.
        self.devices[device].forgetAnswers()
        // The device starts afresh, whatever was reported of it while it was removed; nothing is pending.
        _ = self.startAfresh(device)
        self.noteRegistration(device)
        return .device(device)
    }

    /// Removes a token: what is pending or waits is discarded, wakes in flight go on without a retry.
    package func unregister(_ device: DeviceIndex) {
        self.settle(device)
        guard self.devices[device].isRegistered else { return }
        let action = self.startAfresh(device)
        if let row = self.tasks[device], !row.eventIDs.isEmpty {
            row.forgetEvents()
            self.tasks.noteChange(device, row)
        }
        self.devices[device].isRegistered = false
        self.devices[device].registrationChangedAt = self.now
        self.count(self.devices[device].topic) { $0.registered -= 1 }
        self.remember(device, .removed, nil)
        self.noteDropped(action, .unregistered, device)
        self.reconcile(device)
    }

    private func startAfresh(_ device: DeviceIndex) -> DroppedAction {
        let (now, parameters) = (self.now, self.parameters(of: device))
        return self.change(device) { state, tasks in
            state.change(with: &tasks) { $0.unregistered(at: now, parameters) }
        }
    }

    /// Notes what waited and was dropped for a reason.
    private func noteDropped(_ action: DroppedAction, _ reason: DiscardReason, _ device: DeviceIndex) {
        if let push = action.discardedPush { self.discard(push, reason, device) }
        for task in action.discarded { self.noteDropped(task, reason, device) }
    }

    /// The device reported conditions.
    ///
    /// - Returns: all its conditions now.
    package func conditions(_ report: ConditionsReport, _ device: DeviceIndex) -> Conditions {
        self.settle(device)
        let action = self.reported(report, device)
        self.remember(device, .conditions, nil)
        self.noteDropped(action, .forceQuit, device)
        for wake in action.ended {
            self.wakes.expired(self.noteTaskEnd(device, wake, .interrupted, .ended(wake.task)), .conditions)
        }
        self.settle(device)
        return self.devices[device].state.conditions
    }

    private func reported(_ report: ConditionsReport, _ device: DeviceIndex) -> DroppedAction {
        let isUsed = self.devices[device].state.conditions.appState == .active
        // A use is kept beside the device's state.
        guard self.devices[device].hasTasks || isUsed || report.appState == .active else {
            return DroppedAction(discardedPush: self.devices[device].state.conditionsReported(report))
        }
        let (now, parameters) = (self.now, self.parameters(of: device))
        return self.changeLanes(device) { $0.conditionsReported(report, at: now, parameters) }
    }

    func insert(_ token: DeviceToken, topic: TopicIndex) -> DeviceIndex {
        let device = self.devices.insert(DeviceRecord(token: token, topic: topic, registeredAt: self.now))
        self.topics.countDevices(topic, 1)
        self.count(topic) { $0.registered += 1 }
        self.remember(device, .registered, nil)
        self.devices.noteChange(device)
        return device
    }

    private func noteRegistration(_ device: DeviceIndex) {
        self.devices[device].registrationChangedAt = self.now
        self.count(self.devices[device].topic) { $0.registered += 1 }
        self.remember(device, .registered, nil)
        self.reconcile(device)
    }

    /// Why no device may be added to the topic of this name; nil while there is room.
    func refusalOfNewcomer(topic name: ByteView) -> Refusal? {
        self.devices.count < self.configuration.devicesMax ? self.refusalOfMove(topic: name) : .tooManyDevices
    }

    /// Why no device that is there may be moved to the topic of this name; nil while there is room.
    private func refusalOfMove(topic name: ByteView) -> Refusal? {
        guard let topic = self.topics.find(name) else {
            return self.topics.count < self.configuration.topicsMax ? nil : .tooManyTopics
        }
        return self.topics.deviceCount(topic) < self.configuration.devicesPerTopicMax ? nil : .tooManyDevicesOfTopic
    }
}

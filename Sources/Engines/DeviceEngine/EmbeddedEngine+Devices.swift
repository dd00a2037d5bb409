package import Bytes
package import LaunchPolicy

extension EmbeddedEngine {
    /// The device with this token, removed ones included.
    package func find(_ token: borrowing DeviceToken) -> DeviceIndex? {
        let number = HistoryEvent.device(of: token, self.historyKey)
        guard let device = self.devices.find(token, hash: number) else { return nil }
        self.lastNumbered = (device, number)
        return device
    }

    /// The device's token, its topic, and whether it is registered.
    package func identity(_ device: DeviceIndex) -> (token: DeviceToken, topic: TopicIndex, isRegistered: Bool) {
        let record = self.devices[device]
        return (record.token.token, record.topic, record.isRegistered)
    }

    /// Registers a token, or leaves a registered one as it is.
    package func register(_ token: borrowing DeviceToken, topic name: ByteView) -> Admission {
        guard let device = self.find(token) else {
            if let refusal = self.refusalOfNewcomer(topic: name) { return .refused(refusal) }
            let device = self.insert(copy token, topic: self.topic(name))
            return .device(device)
        }
        let record = self.devices[device]
        let isSame = self.topicNames.isName(name, of: record.topic)
        guard !record.isRegistered else { return isSame ? .device(device) : .refused(.otherTopic) }
        // A wake of the former registration is still counted under its topic.
        guard isSame || record.state.inFlight == nil else { return .refused(.otherTopic) }
        if !isSame {
            if let refusal = self.refusalOfMove(topic: name) { return .refused(refusal) }
            let topic = self.topic(name)
            self.topics[Int(record.topic.rawValue)].deviceCount -= 1
            self.topics[Int(topic.rawValue)].deviceCount += 1
            self.devices[device].topic = topic
        }
        self.devices[device].isRegistered = true
        // It starts afresh, whatever was reported of it while it was removed; nothing is pending.
        _ = self.devices[device].state.unregistered()
        self.noteRegistration(device)
        return .device(device)
    }

    /// Removes a token: what is pending is discarded, a wake in flight goes on without a retry.
    package func unregister(_ device: DeviceIndex) {
        self.settle(device)
        guard self.devices[device].isRegistered else { return }
        let discarded = self.devices[device].state.unregistered()
        self.devices[device].isRegistered = false
        self.devices[device].registrationChangedAt = self.now
        self.count(self.devices[device].topic) { $0.registered -= 1 }
        self.remember(device, .removed, nil)
        if let discarded { self.discard(discarded, .unregistered, device) }
        self.reconcile(device)
    }

    /// The device reported conditions.
    ///
    /// - Returns: all its conditions now.
    package func conditions(_ report: ConditionsReport, _ device: DeviceIndex) -> Conditions {
        self.settle(device)
        let discarded = self.devices[device].state.conditionsReported(report)
        self.remember(device, .conditions, nil)
        if let discarded { self.discard(discarded, .forceQuit, device) }
        self.settle(device)
        return self.devices[device].state.conditions
    }

    func insert(_ token: DeviceToken, topic: TopicIndex) -> DeviceIndex {
        let device = self.devices.insert(DeviceRecord(token: token, topic: topic, registeredAt: self.now))
        self.topics[Int(topic.rawValue)].deviceCount += 1
        self.count(topic) { $0.registered += 1 }
        self.remember(device, .registered, nil)
        self.noteChange(device)
        return device
    }

    func noteRegistration(_ device: DeviceIndex) {
        self.devices[device].registrationChangedAt = self.now
        self.count(self.devices[device].topic) { $0.registered += 1 }
        self.remember(device, .registered, nil)
        self.reconcile(device)
    }
}

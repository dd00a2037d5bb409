import Policy
package import Wire

extension EmbeddedEngine {
    /// Looks the token up; an unknown one is registered where registration is open.
    package func admit(_ token: borrowing DeviceToken, topic name: ByteView, isDryRun: Bool) -> Admission {
        guard let device = self.find(token) else {
            guard self.configuration.openRegistration else { return .refused(.unknown) }
            if let refusal = self.refusalOfNewcomer(topic: name) { return .refused(refusal) }
            guard !isDryRun else { return .newcomer(self.topics.find(name)) }
            return .device(self.insert(copy token, topic: self.topic(name)))
        }
        let record = self.devices[device]
        guard record.isRegistered else { return .refused(.unregistered(record.registrationChangedAt)) }
        let isSame = self.topics.isName(name, of: record.topic)
        return isSame ? .device(device) : .refused(.otherTopic)
    }

    /// Accepts a push for a device that `admit` named; one that was accepted before, under an apns-id of its sender's,
    /// is answered as it was then, in every part, and changes nothing. What is due of the device is done: `catchUp`.
    ///
    /// - `workerIsFree`: a worker has a free slot for this device.
    /// - Throws: `tooMany` when the device has had as many pushes as it takes for now, `noMemory` and
    ///   `noMemoryForTopic` when there is no memory for one more to wait in.
    package func accept(
        _ push: IncomingPush,
        device: DeviceIndex,
        workerIsFree: Bool
    ) throws(Refusal) -> PushAnswer {
        if let before = self.devices[device].answerBefore(push, at: self.now) { return before }
        let topic = self.devices[device].topic
        if let refusal = self.memoryRefusal(push, device, topic) { throw refusal }
        try self.devices[device].countRate(self.configuration.pushRate, at: self.now)
        guard push.wakes else {
            self.count(topic) { $0.noWake += 1 }
            self.remember(device, .push(.noWake), push.apnsID)
            let answer = PushAnswer(disposition: .noWake, eligibleAt: nil, held: nil, wake: nil)
            self.noteAnswer(answer, push, device)
            return answer
        }
        let older = self.devices[device].state.pending.flatMap { PushContent($0.handle) }
        let content = self.traces.content(of: push, inPlaceOf: older)
        self.memory.hold(content, topic)
        let parameters = self.parameters(topic)
        let arriving = ArrivingPush(handle: content.handle, priority: push.priority, expiration: push.expiration)
        let now = self.now
        let action = self.change(device) {
            $0.pushReceived(arriving, at: now, workerIsFree: workerIsFree, parameters)
        } lanes: {
            $0.pushReceived(arriving, at: now, workerIsFree: workerIsFree, parameters)
        }
        self.count(topic) { $0.accepted += 1 }
        var wake: WakeID?
        let isLaneFree = !self.isShortLaneFull(device)
        let answer = PushAnswer(
            action,
            self.devices[device].state,
            isLaneFree: isLaneFree,
            isPaused: self.isPaused(topic),
            now,
            parameters
        )
        let absorbedID = action.absorbed.flatMap { PushContent($0)?.apnsID }
        let terms = PushTerms(push.priority, push.expiration, at: self.now)
        self.remember(device, .push(answer.disposition), push.apnsID, related: absorbedID, terms: terms)
        switch action {
        case .launched(let absorbed):
            self.absorb(absorbed, topic)
            self.times.lateness.record(0)
            wake = self.noteLaunch(device)
        case .waits(let absorbed): self.absorb(absorbed, topic)
        case .discarded: self.discard(content.handle, .expired, device)
        }
        self.noteAnswer(answer, push, device)
        self.reconcile(device)
        return PushAnswer(
            disposition: answer.disposition,
            eligibleAt: answer.eligibleAt,
            held: answer.held,
            wake: wake
        )
    }

    /// What `accept` would answer, changing nothing.
    ///
    /// - `device`: nil for a token that the push would register.
    package func acceptDryRun(
        _ push: IncomingPush,
        device: DeviceIndex?,
        topic: TopicIndex?,
        workerIsFree: Bool
    ) -> PushAnswer {
        guard push.wakes else { return PushAnswer(disposition: .noWake, eligibleAt: nil, held: nil, wake: nil) }
        let parameters = topic.map { self.parameters($0) } ?? self.configuration.policy
        var lanes = device.map { self.lanes($0) } ?? DeviceLanes()
        while lanes.timePassed(self.now, parameters) != .nothing {}
        let action = lanes.pushReceived(
            ArrivingPush(handle: .none, priority: push.priority, expiration: push.expiration),
            at: self.now,
            workerIsFree: workerIsFree,
            parameters
        )
        let isLaneFree = !lanes.isFull(.short, parameters)
        let isPaused = topic.map { self.isPaused($0) } ?? false
        return PushAnswer(
            action,
            lanes.device,
            isLaneFree: isLaneFree,
            isPaused: isPaused,
            self.now,
            parameters
        )
    }

    /// Why there is no memory for this push to wait in; nil while there is. Changes nothing.
    ///
    /// One that takes the place of a push at least as large needs none.
    ///
    /// - `device`: nil for a token that is not registered yet.
    /// - `topic`: the device's; nil for one that is not known yet.
    package func memoryRefusal(_ push: IncomingPush, _ device: DeviceIndex?, _ topic: TopicIndex?) -> Refusal? {
        guard push.wakes else { return nil }
        let byteCount = PushContent.byteCount(push)
        let refusal = self.memory.refusal(
            byteCount,
            topic,
            bytesMax: self.configuration.pendingBytesMax,
            bytesPerTopicMax: self.configuration.pendingBytesPerTopicMax
        )
        guard let refusal else { return nil }
        let older = device.flatMap { self.devices[$0].state.pending }.flatMap { PushContent($0.handle) }
        return older.map { $0.byteCount >= byteCount } ?? false ? nil : refusal
    }

    /// Why this device takes no push now; nil while there is room in its window. Changes nothing.
    package func rateRefusal(_ device: DeviceIndex) -> Refusal? {
        self.devices[device].rateRefusal(self.configuration.pushRate, at: self.now)
    }

    /// Remembers the answer in the device's record, and so in the push's own commit.
    private func noteAnswer(_ answer: PushAnswer, _ push: IncomingPush, _ device: DeviceIndex) {
        guard push.isNamedByClient else { return }
        self.devices[device].noteAnswer(answer, push, at: self.now)
        self.devices.noteChange(device)
    }

    func absorb(_ older: PushHandle?, _ topic: TopicIndex) {
        guard let older else { return }
        self.count(topic) { $0.coalesced += 1 }
        if let content = PushContent(older) { self.memory.letGo(content, topic) }
    }
}

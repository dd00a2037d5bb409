package import Bytes
import LaunchPolicy

extension EmbeddedEngine {
    /// Looks the token up; an unknown one is registered where registration is open.
    package func admit(_ token: borrowing DeviceToken, topic name: ByteView, isDryRun: Bool) -> Admission {
        guard let device = self.find(token) else {
            guard self.configuration.openRegistration else { return .refused(.unknown) }
            if let refusal = self.refusalOfNewcomer(topic: name) { return .refused(refusal) }
            guard !isDryRun else { return .newcomer(self.topicNames.find(name)) }
            return .device(self.insert(copy token, topic: self.topic(name)))
        }
        let record = self.devices[device]
        guard record.isRegistered else { return .refused(.unregistered(record.registrationChangedAt)) }
        let isSame = self.topicNames.isName(name, of: record.topic)
        return isSame ? .device(device) : .refused(.otherTopic)
    }

    /// Accepts a push for a device that `admit` named; one that was accepted before, under an apns-id of its sender's,
    /// is answered as it was then, in every part, and changes nothing.
    ///
    /// - `workerIsFree`: a worker has a free slot for this device.
    /// - Throws: `tooMany` when the device has had as many pushes as it takes for now, `noMemory` and
    ///   `noMemoryForTopic` when there is no memory for one more to wait in.
    package func accept(
        _ push: IncomingPush,
        device: DeviceIndex,
        workerIsFree: Bool
    ) throws(Refusal) -> PushAnswer {
        if let before = self.answerBefore(push, device) { return before }
        let topic = self.devices[device].topic
        if let refusal = self.memoryRefusal(push, device, topic) { throw refusal }
        try self.countRate(device)
        // A step may have left something undone that was due before this push came.
        _ = self.catchUp(device)
        guard push.wakes else {
            self.count(topic) { $0.noWake += 1 }
            self.remember(device, .push(.noWake), push.apnsID)
            let answer = PushAnswer(disposition: .noWake, eligibleAt: nil, held: nil, wake: nil)
            self.noteAnswer(answer, push, device)
            return answer
        }
        let content = self.content(of: push, device)
        self.hold(content, topic)
        let parameters = self.parameters(topic)
        let action = self.devices[device].state.pushReceived(
            ArrivingPush(handle: content.handle, priority: push.priority, expiration: push.expiration),
            at: self.now,
            workerIsFree: workerIsFree,
            parameters
        )
        self.count(topic) { $0.accepted += 1 }
        var wake: WakeID?
        let answer = Self.answer(action, self.devices[device].state, self.now, parameters)
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
        var state = device.map { self.devices[$0].state } ?? DeviceState()
        while state.timePassed(self.now, parameters) != .nothing {}
        let action = state.pushReceived(
            ArrivingPush(handle: .none, priority: push.priority, expiration: push.expiration),
            at: self.now,
            workerIsFree: workerIsFree,
            parameters
        )
        return Self.answer(action, state, self.now, parameters)
    }

    static func answer(
        _ action: PushReceivedAction,
        _ state: DeviceState,
        _ now: Instant,
        _ parameters: Parameters
    ) -> PushAnswer {
        switch action {
        case .launched: return PushAnswer(disposition: .launched, eligibleAt: nil, held: nil, wake: nil)
        case .discarded: return PushAnswer(disposition: .discarded, eligibleAt: nil, held: nil, wake: nil)
        case .waits(let absorbed):
            guard let pending = state.pending else { preconditionFailure("a push that waits is pending") }
            let eligibleAt = state.eligibleAt(pending.priority, parameters)
            var held = state.hold(pending.priority, parameters).map { HoldCode($0) }
            if held == nil, state.inFlight == nil, eligibleAt <= now { held = .worker }
            return PushAnswer(
                disposition: absorbed == nil ? .scheduled : .coalesced,
                eligibleAt: held == nil ? max(eligibleAt, now) : nil,
                held: held,
                wake: nil
            )
        }
    }

    func absorb(_ older: PushHandle?, _ topic: TopicIndex) {
        guard let older else { return }
        self.count(topic) { $0.coalesced += 1 }
        if let content = PushContent(older) { self.letGo(content, topic) }
    }
}

package import Policy
package import Wire

/// What a dispatcher of a shared engine does besides: streams stay, devices are there for a step.
///
/// What a step does to streams is noted, and taken with `takeStreamChanges`; when it is known whether the step
/// happened, `committed` or `undo` is called with it, in any order of the steps.
extension Dispatcher {
    /// The dispatcher's engine shares its store; called once, before the first stream.
    ///
    /// - Parameter mayLaunchElsewhere: returns true if another gateway may have a free slot for a push of this topic,
    ///   by its last report.
    package func share(mayLaunchElsewhere: @escaping (TopicIndex) -> Bool) {
        precondition(self.streams.count == 0, "streams are noted from the first one on")
        self.streams.shared = SharedStreams(mayLaunchElsewhere: mayLaunchElsewhere)
    }

    /// Takes what was done to streams since the last call.
    package func takeStreamChanges() -> StreamChanges {
        guard let changes = self.streams.shared?.changes else { return StreamChanges() }
        self.streams.shared?.changes = StreamChanges()
        self.streams.stepTaken(changes)
        return changes
    }

    /// A step is durable: streams that were asked to end and hold no wake any more are ended.
    package func committed(_ changes: StreamChanges) {
        for case .released(_, _, let stream) in changes.changes {
            self.streams.releaseCommitted(stream)
            self.endIfDrained(stream)
            if !stream.hasEnded { self.freed.append(stream) }
        }
        self.flow()
    }

    /// A step did not happen: wakes that it gave are taken from their streams without a word, those that it released
    /// are held again, and slots, stalls and turns are as if nothing had been.
    ///
    /// - Returns: wakes that are held again, though their streams have ended meanwhile: each is to be lost.
    package func undo(_ changes: StreamChanges) -> [WakeID] {
        var lost: [WakeID] = []
        self.progressReports -= changes.progressReports
        for change in changes.changes.reversed() {
            if let wake = self.streams.undo(change) { lost.append(wake) }
            switch change {
            case .given(_, let stream, _), .released(_, _, let stream), .expired(_, let stream),
                .answered(_, _, let stream), .gaveBack(let stream):
                if !stream.hasEnded { self.slotFreed(stream) }
            case .toldConditions, .progressed: break
            }
        }
        self.flow()
        return lost
    }

    /// The topic's free slots by what the streams take, in an order that does not hang on which came first.
    package func freeSlots(_ topic: TopicIndex) -> [FreeSlots] {
        self.launches(topic) ? self.streams.shared?.offered.slots(of: topic) ?? [] : []
    }

    /// The kinds of streams of a topic by what they take, for the report to other gateways.
    ///
    /// - Parameter hasFreeSlots: false if none of their slots is to count as free.
    package func offers(_ topic: TopicIndex, countMax: Int, hasFreeSlots: Bool) -> [StreamOffer] {
        self.streams.shared?.offered.offers(of: topic, countMax: countMax, hasFreeSlots: hasFreeSlots) ?? []
    }

    /// The devices of which the streams with these free slots take wakes, in the order of tokens; empty for every
    /// device.
    package func devices(_ slots: FreeSlots) -> [DeviceToken] {
        slots.namesDevices ? self.streams.shared?.offered.devices(slots) ?? [] : []
    }

    /// The engine's devices are evicted.
    package func forgetDevices() { self.streams.forgetDevices() }
}

// MARK: - Wakes

extension Dispatcher {
    /// A worker's stream ended, in place of `streamEnded`: nothing is lost here.
    ///
    /// - Returns: the wakes it held: each is to be lost, in a step that has its device.
    package func removeStream(_ address: StreamAddress) -> [WakeID] {
        guard let subscription = self.streams[address] else { return [] }
        self.streams.remove(subscription)
        self.streams.forgetWakes(subscription)
        return subscription.wakes.sortedWakes
    }

    /// The stream that held these wakes has ended, and they are lost, in a step that has their devices: all of them
    /// before any of their devices launches anything.
    package func lose(_ wakes: [WakeID]) {
        for wake in wakes { self.engine.lose(wake) }
        self.flow()
    }

    /// Wakes of a dead gateway are lost, in a step that has their devices: before `advance`.
    package func loseForGood(_ wakes: [WakeID]) { self.engine.loseForGood(wakes) }

    /// A wake that a stream here may hold has ended at another gateway.
    ///
    /// - `reason`: the reason of its expiration, which is sent to its worker; `lost` if its worker gave it back; nil if
    ///   it ended otherwise.
    package func wakeEndedElsewhere(_ wake: WakeID, _ reason: ExpirationReason?) {
        guard let subscription = self.streams.holder(of: wake) else { return }
        self.streams.shared?.isSilent = true
        if reason == .lost {
            if self.release(wake, subscription), subscription.request.stallsWhenSilent {
                self.streams.gaveBack(subscription, "")
            }
            self.slotFreed(subscription)
        } else if let reason {
            // One that has expired already is held no longer, though its late answer is still awaited.
            if subscription.holds(wake) { self.wakeExpired(wake, reason) }
        } else {
            _ = self.release(wake, subscription)
            self.streams.answered(subscription)
            self.slotFreed(subscription)
        }
        self.streams.shared?.isSilent = false
        self.flow()
    }

    /// This gateway was taken for dead: every wake that a stream holds is lost, of which its worker is told.
    package func expireEveryWake() {
        self.streams.shared?.isSilent = true
        let held = self.streams.all.flatMap { stream in stream.wakes.all.map { (wake: $0.wake, stream: stream) } }
        for (wake, stream) in held.sorted(by: { ($0.wake.first, $0.wake.second) < ($1.wake.first, $1.wake.second) }) {
            self.output.expire(wake, on: stream.address, reason: .lost)
            _ = self.release(wake, stream)
            self.slotFreed(stream)
        }
        self.streams.shared?.isSilent = false
        self.flow()
    }
}

// MARK: - Other gateways

extension Dispatcher {
    /// How long a push that is now or never waits for a slot of another gateway, in milliseconds.
    private static var nowElsewhere: Int64 { 2000 }

    /// A push that is now or never, and finds no free slot here though another gateway has one, waits for two seconds;
    /// every other push expires as it would. What is due of its device is done.
    package func reachingElsewhere(_ push: Push, _ expiration: Expiration) -> Expiration {
        guard expiration == .nowOrNever, push.wakes, !self.isDraining,
            let topic = self.engine.findTopic(push.topic), self.launches(topic), let shared = self.streams.shared
        else { return expiration }
        let device = self.engine.find(push.token)
        if let device {
            let identity = self.engine.identity(device)
            guard identity.isRegistered, identity.topic == topic else { return expiration }
            self.catchUp(device)
        }
        guard self.freeStream(topic, push.token) == nil, shared.mayLaunchElsewhere(topic) else { return expiration }
        let answer = self.engine.acceptDryRun(push, expiration, device: device, topic: topic, workerIsFree: true)
        return answer.disposition == .launched ? .at(self.engine.now + Self.nowElsewhere) : expiration
    }

    /// Whether a stream of this topic hears of conditions.
    package func hearsConditions(_ topic: TopicIndex) -> Bool { self.streams.isHeard(topic) }

    /// Another gateway has changed conditions of this device: streams that hear of them are told. Launches nothing, so
    /// that the step may be a read-only one.
    package func conditionsChangedElsewhere(_ device: DeviceIndex) {
        let identity = self.engine.identity(device)
        self.streams.conditionsChanged(identity.topic, device, identity.token)
        self.looksLeft = self.workPerStepMax
        self.tellConditions()
    }

    /// The most devices that are owed at a time.
    private static var owedMax: Int { 256 }

    /// Devices of whose conditions streams here are to hear, though they were not there to be told of: each is to be
    /// loaded, which may be read-only, for `tellConditionsOwed`. No more than 256 at a time.
    package var conditionsOwed: [DeviceToken] {
        var tokens: [DeviceToken] = []
        var known: Set<DeviceToken> = []
        for (token, _) in self.streams.shared?.owed ?? [] where tokens.count < Self.owedMax {
            if known.insert(token).inserted { tokens.append(token) }
        }
        return tokens
    }

    /// Tells streams of conditions that are owed, of the devices of this step. Launches nothing.
    package func tellConditionsOwed() {
        guard let owed = self.streams.shared?.owed, !owed.isEmpty else { return }
        self.streams.shared?.owed = []
        for (token, stream) in owed where !stream.hasEnded {
            if !self.tellConditions(token, stream) { self.streams.shared?.owed.append((token, stream)) }
        }
        self.looksLeft = self.workPerStepMax
        self.tellConditions()
    }

    /// Tells streams of conditions that have changed, as many as may be told now; devices that are not there are owed.
    func tellConditionsShared() {
        while self.streams.shared?.owed.count ?? 0 < Self.owedMax,
            let (stream, index) = self.streams.nextToHear(&self.looksLeft)
        {
            guard let token = self.streams.shared?.heard.token(index) else { return }
            if !self.tellConditions(token, stream) { self.streams.shared?.owed.append((token, stream)) }
        }
    }

    /// - Returns: whether the device is there.
    private func tellConditions(_ token: DeviceToken, _ stream: Subscription) -> Bool {
        // A stream that was asked to end, and holds no wake, ends once the step is durable.
        guard !stream.isDraining || !stream.wakes.isEmpty else { return true }
        guard let device = self.engine.find(token) else { return false }
        let topic = self.engine.topic(of: device)
        // A device may have been registered anew, for another topic.
        guard topic == stream.topic else { return true }
        self.streams.shared?.note(.toldConditions(token, stream))
        self.output.conditionsChanged(token, self.engine.conditions(of: device), on: stream.address)
        return true
    }
}

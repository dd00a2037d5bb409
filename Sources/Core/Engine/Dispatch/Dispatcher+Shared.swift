package import Policy
package import Wire

/// Support for a shared store, where devices are in memory only during a step.
///
/// `takeStreamChanges` returns the changes of a step to streams. When the step is durable, the owner passes them to
/// `committed`. If the step fails, it passes them to `undo`. Steps may end in any order.
extension Dispatcher {
    /// Switches the dispatcher to a shared store. Call this once, before the first stream.
    ///
    /// - Parameter mayLaunchElsewhere: returns true if another gateway may have a free slot for a push of this topic,
    ///   according to its last report.
    package func useSharedStore(mayLaunchElsewhere: @escaping (TopicIndex) -> Bool) {
        precondition(self.streams.count == 0, "streams are noted from the first one on")
        self.streams.shared = SharedStreams(mayLaunchElsewhere: mayLaunchElsewhere)
    }

    /// Returns the changes to streams since the last call.
    package func takeStreamChanges() -> StreamChanges {
        guard let changes = self.streams.shared?.takeChanges() else { return StreamChanges() }
        self.streams.stepTaken(changes)
        return changes
    }

    /// Completes a durable step: frees the slots of released wakes, and ends draining streams without wakes.
    package func committed(_ changes: StreamChanges) {
        for case .released(_, _, _, let stream) in changes.changes {
            self.streams.releaseCommitted(stream)
            self.endIfDrained(stream)
            if !stream.hasEnded { self.freed.append(stream) }
        }
        self.flow()
    }

    /// Undoes a step that failed. Silently takes back the wakes that streams got in the step, and returns released
    /// wakes to their streams. Restores slots, stalls and turns.
    ///
    /// - Returns: wakes whose end was undone although their streams have ended. The caller must end each as lost.
    package func undo(_ changes: StreamChanges) -> [WakeID] {
        var lost: [WakeID] = []
        self.progressReports -= changes.progressReports
        for change in changes.changes.reversed() {
            if let wake = self.streams.undo(change) { lost.append(wake) }
            switch change {
            case .given(_, let stream, _), .released(_, _, _, let stream), .expired(_, let stream),
                .answered(_, _, let stream), .gaveBack(let stream):
                if !stream.hasEnded { self.slotFreed(stream) }
            case .sentConditions, .progressed: break
            }
        }
        self.flow()
        return lost
    }

    /// Returns the topic's free slots, grouped by the launches that the streams accept. The order does not depend on
    /// the arrival of streams.
    package func freeSlots(_ topic: TopicIndex) -> [FreeSlots] {
        self.launches(topic) ? self.streams.shared?.offered.slots(of: topic) ?? [] : []
    }

    /// Returns the topic's streams, grouped by the launches that they accept, for the report to other gateways.
    ///
    /// - `hasFreeSlots`: false to report no free slots.
    package func offers(_ topic: TopicIndex, countMax: Int, hasFreeSlots: Bool) -> [StreamOffer] {
        self.streams.shared?.offered.offers(of: topic, countMax: countMax, hasFreeSlots: hasFreeSlots) ?? []
    }

    /// Returns the devices that the streams with these free slots name, in token order; empty if the streams accept
    /// every device.
    package func devices(_ slots: FreeSlots) -> [DeviceToken] {
        slots.namesDevices ? self.streams.shared?.offered.devices(slots) ?? [] : []
    }

    /// Removes references to the engine's devices, which are being evicted.
    package func forgetDevices() { self.streams.forgetDevices() }
}

// MARK: - Wakes

extension Dispatcher {
    /// Removes a stream that has ended. Used instead of `streamEnded`, which also ends the wakes.
    ///
    /// - Returns: the unanswered wakes of the stream. The caller must end each as lost in a step that has loaded its
    ///   device.
    package func removeStream(_ address: StreamAddress) -> [WakeID] {
        guard let subscription = self.streams[address] else { return [] }
        self.streams.remove(subscription)
        self.streams.forgetWakes(subscription)
        return subscription.wakes.sortedWakes
    }

    /// Ends wakes as lost because their stream has ended, in a step that has loaded their devices. All of the wakes are
    /// lost before any of the devices launches again.
    package func lose(_ wakes: [WakeID]) {
        for wake in wakes { self.engine.lose(wake) }
        self.flow()
    }

    /// Ends wakes of a dead gateway as lost, in a step that has loaded their devices. Call this before `advance`.
    package func endAsLost(_ wakes: [WakeID]) { self.engine.endAsLost(wakes) }

    /// Releases a wake that has ended at another gateway from its stream, if the stream is at this gateway.
    ///
    /// - `reason`: the reason of the wake's expiration, which is sent to the worker; `lost` if the worker gave the wake
    ///   back; nil for another outcome.
    /// - `now`: policy time; ignored if it is before the last step.
    package func wakeEndedElsewhere(_ wake: WakeID, _ reason: ExpirationReason?, at now: Instant = .distantPast) {
        let endedAt = max(now, self.engine.now)
        guard let subscription = self.streams.holder(of: wake) else { return }
        self.streams.shared?.isSilent = true
        if reason == .lost {
            if self.release(wake, subscription), subscription.request.stallsWhenSilent {
                self.streams.gaveBack(subscription, "")
            }
            self.slotFreed(subscription)
        } else if let reason {
            // `holder` also returns the stream of a wake that has expired and been released.
            if subscription.holds(wake) { self.wakeExpired(wake, reason, at: endedAt) }
        } else {
            _ = self.release(wake, subscription, endedAt: endedAt)
            self.streams.answered(subscription)
            self.slotFreed(subscription)
        }
        self.streams.shared?.isSilent = false
        self.flow()
    }

    /// Expires every unanswered wake as lost, and notifies the workers, because other gateways considered this gateway
    /// dead.
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
    /// The time for which a now-or-never push waits for a slot of another gateway, in milliseconds.
    private static var nowElsewhere: Int64 { 2000 }

    /// Returns the effective expiration of a push. A now-or-never push waits for two seconds if only another gateway
    /// has a free slot; all other pushes keep their expiration. First applies the due events of the device.
    package func reachingElsewhere(_ push: Push, _ expiration: Expiration) -> Expiration {
        guard expiration == .nowOrNever, push.wakes, !self.isDraining,
            let topic = self.engine.findTopic(push.topic), self.launches(topic), let shared = self.streams.shared
        else { return expiration }
        let device = self.engine.find(push.token)
        if let device {
            let identity = self.engine.identity(device)
            guard identity.isRegistered, identity.topic == topic else { return expiration }
            self.catchUp(device)
            // A pending push would lend its longer life to this one, which is then neither now nor never.
            if self.engine.pendingPush(device) != nil { return expiration }
        }
        guard self.freeStream(topic, push.token) == nil, shared.mayLaunchElsewhere(topic) else { return expiration }
        let answer = self.engine.acceptDryRun(push, expiration, device: device, topic: topic, workerIsFree: true)
        return answer.disposition == .launched ? .at(self.engine.now + Self.nowElsewhere) : expiration
    }

    /// Returns true if a stream of this topic receives condition changes.
    package func receivesConditions(_ topic: TopicIndex) -> Bool { self.streams.hasConditionsReader(topic) }

    /// Notifies streams that another gateway changed the conditions of this device. Launches nothing, so that a
    /// read-only step suffices.
    package func conditionsChangedElsewhere(_ device: DeviceIndex) {
        let identity = self.engine.identity(device)
        self.streams.conditionsChanged(identity.topic, device, identity.token)
        self.checksLeft = self.workPerStepMax
        self.sendConditions()
    }

    /// The maximum number of devices in `pendingConditions`.
    private static var pendingConditionsMax: Int { 256 }

    /// Devices whose conditions must be sent to streams of this gateway but were not in memory, at most 256. The owner
    /// loads the devices, for which a read-only step suffices, and calls `sendPendingConditions`.
    package var pendingConditions: [DeviceToken] {
        var tokens: [DeviceToken] = []
        var known: Set<DeviceToken> = []
        for (token, _) in self.streams.shared?.pendingConditions ?? [] where tokens.count < Self.pendingConditionsMax {
            if known.insert(token).inserted { tokens.append(token) }
        }
        return tokens
    }

    /// Sends the conditions owed for the devices of this step. Launches nothing.
    ///
    /// - Returns: false if conditions are owed, but none for a device that is in memory.
    @discardableResult
    package func sendPendingConditions() -> Bool {
        guard let pendingConditions = self.streams.shared?.takePendingConditions(), !pendingConditions.isEmpty else {
            return true
        }
        var missingCount = 0
        for (token, stream) in pendingConditions where !stream.hasEnded {
            guard !self.sendConditions(token, stream) else { continue }
            missingCount += 1
            self.streams.shared?.pendingConditions.append((token, stream))
        }
        self.checksLeft = self.workPerStepMax
        self.sendConditions()
        return missingCount < pendingConditions.count
    }

    /// Sends condition changes to streams, as many as this step allows. Notes devices that are not in memory as owed.
    func sendSharedConditions() {
        while self.streams.shared?.pendingConditions.count ?? 0 < Self.pendingConditionsMax,
            let (stream, index) = self.streams.nextConditions(&self.checksLeft)
        {
            guard let token = self.streams.shared?.remembered.token(index) else { return }
            if !self.sendConditions(token, stream) { self.streams.shared?.pendingConditions.append((token, stream)) }
        }
    }

    /// - Returns: true if the device is in memory, or nothing needs to be sent.
    private func sendConditions(_ token: DeviceToken, _ stream: Subscription) -> Bool {
        // A draining stream without wakes ends when the step is durable, and gets no more messages.
        guard !stream.isDraining || !stream.wakes.isEmpty else { return true }
        guard let device = self.engine.find(token) else { return false }
        let topic = self.engine.topic(of: device)
        // The device may have been registered again, for another topic.
        guard topic == stream.topic else { return true }
        self.streams.shared?.note(.sentConditions(token, stream))
        self.output.conditionsChanged(token, self.engine.conditions(of: device), on: stream.address)
        return true
    }
}

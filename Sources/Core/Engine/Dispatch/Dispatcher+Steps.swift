import Policy
import Wire

/// What every verb begins and ends with.
extension Dispatcher {
    /// Does what is due of a device before something happens to it, its launches too, though a bounded step may not
    /// have come to it yet: at one moment a launch goes before what comes from outside.
    func catchUp(_ device: DeviceIndex) {
        if !self.ended.isEmpty {
            for wake in self.engine.wakesInFlight(device) where self.streams.isHolderGone(wake) {
                self.streams.forget(wake)
                self.engine.lose(wake)
            }
        }
        if self.engine.catchUp(device) { self.flow() }
        // A step that has done all it may leaves the device in its queue, and what is about to happen would go first.
        guard self.workLeft <= 0, !self.isReading else { return }
        if self.engine.hasTasks(device) {
            while self.launchNext(device) {}
            return
        }
        let identity = self.engine.identity(device)
        guard let stream = self.freeStream(identity.topic, identity.token), let wake = self.engine.claim(device) else {
            return
        }
        self.hand(wake, to: stream)
    }

    /// Takes back slots and gives them out until nothing more happens, and tells streams of conditions.
    func flow() {
        guard !self.isReading else { return }
        if !self.ended.isEmpty { self.loseWakes() }
        if self.engine.hasNews || !self.freed.isEmpty { while self.launchOrFill() {} }
        if self.streams.hasConditionsToTell { self.tellConditions() }
    }

    /// Offers one device or task that came to wait, or fills one stream that came free.
    ///
    /// - Returns: false when nothing more is to be done, or no more may be.
    private func launchOrFill() -> Bool {
        self.takeExpiredWakes()
        guard self.workLeft > 0 else { return false }
        if let device = self.engine.popNewlyReady() {
            self.offer(device)
        } else if let task = self.engine.popReadyTask() {
            self.offer(task)
        } else if let subscription = self.freed.first {
            guard self.fill(subscription) else { return false }
            _ = self.freed.popFirst()
        } else {
            return false
        }
        return true
    }

    /// Loses the wakes of streams that have ended.
    private func loseWakes() {
        while self.workLeft > 0, let wake = self.ended.popWake() {
            self.workLeft -= 1
            self.streams.forget(wake)
            self.engine.lose(wake)
        }
    }

    func takeExpiredWakes() {
        while let wake = self.engine.popExpiredWake() { self.wakeExpired(wake.id, wake.reason) }
    }

    /// A wake ended without its worker's doing: the stream that holds it is told.
    func wakeExpired(_ wake: WakeID, _ reason: ExpirationReason) {
        guard let subscription = self.streams.holder(of: wake) else {
            self.streams.shared?.noteEndedElsewhere(wake, reason)
            return
        }
        let kind = self.streams.kind(of: wake, subscription)
        self.output.expire(wake, on: subscription.address, reason: reason)
        _ = self.release(wake, subscription)
        // Tasks of minutes say little of a worker that is silent, the less so as what interrupts them is not its fault.
        if subscription.request.stallsWhenSilent, kind?.lane == .short { self.streams.expired(wake, subscription) }
        self.slotFreed(subscription)
    }

    /// A stream no longer holds a wake, and is told so.
    ///
    /// - Returns: false when it did not hold it.
    func release(_ wake: WakeID, _ subscription: Subscription) -> Bool {
        guard self.streams.release(wake, subscription) else { return false }
        self.output.released(wake, on: subscription.address)
        return true
    }

    /// A stream may take another wake, or has none left and may end.
    func slotFreed(_ subscription: Subscription) {
        self.freed.append(subscription)
        self.endIfDrained(subscription)
    }

    func endIfDrained(_ subscription: Subscription) {
        guard subscription.isDraining, subscription.wakes.isEmpty, !subscription.hasEnded,
            subscription.releasesInDoubt == 0
        else { return }
        self.streams.remove(subscription)
        self.output.drained(subscription.address)
    }
}

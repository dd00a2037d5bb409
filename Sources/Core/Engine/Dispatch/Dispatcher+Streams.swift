import Policy
package import Wire

/// Workers' streams come and go.
extension Dispatcher {
    /// A worker subscribed.
    ///
    /// - Returns: the bound that was met, and the stream is then none; nil when it is one.
    package func subscribed(
        _ address: StreamAddress,
        topic name: ByteView,
        _ request: SubscriptionRequest
    ) -> EngineLimit? {
        if let limit = self.limitMet(topic: name, request) { return limit }
        self.streamEnded(address)
        let topic = self.engine.topic(name)
        self.freed.append(self.streams.insert(address, topic, request))
        self.flow()
        return nil
    }

    /// The bound that a subscription would go beyond; nil when there is room for it.
    package func limitMet(topic name: ByteView, _ request: SubscriptionRequest) -> EngineLimit? {
        guard self.engine.mayAddTopic(name) else { return .topicsMax }
        let streamsMax = self.engine.streamsPerDeviceMax
        guard streamsMax > 0, let topic = self.engine.findTopic(name) else { return nil }
        let isFull = request.devices.contains { self.streams.countNaming($0, topic) >= streamsMax }
        return isFull ? .streamsPerDeviceMax : nil
    }

    /// A worker's stream ended: the wakes it holds are lost.
    package func streamEnded(_ address: StreamAddress) {
        guard let subscription = self.streams[address] else { return }
        self.streams.remove(subscription)
        self.ended.append(subscription)
        self.flow()
    }

    /// The worker on a stream stops: the stream gets no new wake, and ends once it holds none.
    ///
    /// - `isAdmitted`: whether the caller reaches the stream's topic.
    /// - Returns: false when there is no such stream.
    package func streamDraining(_ address: StreamAddress, isAdmitted: (TopicIndex) -> Bool) -> Bool {
        guard let subscription = self.streams[address], isAdmitted(subscription.topic) else { return false }
        self.streams.drain(subscription)
        self.endIfDrained(subscription)
        return true
    }

    /// The worker's peer reads too slowly, or reads again.
    package func streamPaused(_ address: StreamAddress, _ isPaused: Bool) {
        guard let subscription = self.streams[address] else { return }
        self.streams.pause(subscription, isPaused)
        if !isPaused { self.freed.append(subscription) }
        self.flow()
    }

    /// A stream may hold more or fewer wakes from now on; it keeps those it has.
    package func slotsChanged(_ address: StreamAddress, to slots: Int) {
        guard let subscription = self.streams[address] else { return }
        self.streams.resize(subscription, to: slots)
        self.freed.append(subscription)
        self.flow()
    }

    /// Every stream may hold so many bytes of payloads from now on; it keeps those it has.
    package func wakeBytesPerStreamChanged(to bytesMax: Int) {
        self.streams.resizeAll(wakeBytesMax: bytesMax)
    }
}

// MARK: - Shutting down

extension Dispatcher {
    /// Nothing new is launched from now on; results are still taken.
    package func drain() {
        self.isDraining = true
    }
}

/// What becomes of the wakes that streams hold.
extension Dispatcher {
    /// A wake that a stream holds was lost, while the stream goes on.
    ///
    /// - `takingBackAttempt`: its worker never got it, so that its attempt does not count.
    package func lose(_ wake: WakeID, on address: StreamAddress, takingBackAttempt: Bool) {
        guard let subscription = self.streams[address], subscription.holds(wake) else { return }
        let isTask = self.streams.kind(of: wake, subscription) != .push
        self.engine.lose(wake, takingBackAttempt: takingBackAttempt)
        // The wake's deadline may have passed unseen until now: then it expired first, and was not lost.
        self.takeExpiredWakes()
        if isTask, !takingBackAttempt, subscription.holds(wake) {
            self.output.expire(wake, on: subscription.address, reason: .lost)
        }
        if self.release(wake, subscription) { self.slotFreed(subscription) }
        self.flow()
    }

    /// A worker gives back a wake that it could not begin: it is lost, costs no attempt, and goes to another stream
    /// first if one is free.
    ///
    /// - `reason`: what the worker says about it.
    package func release(_ wake: WakeID, reason: String) -> ReleaseOutcome {
        let outcome = self.engine.release(wake)
        // The wake's deadline may have passed unseen until now: then it expired first, and was not given back.
        self.takeExpiredWakes()
        guard outcome == .released else {
            if let stream = self.streams.holder(of: wake) { stream.hasBeenHeard = true }
            self.flow()
            self.endedElsewhere(wake)
            return outcome
        }
        guard let stream = self.streams.holder(of: wake) else {
            self.streams.shared?.noteEndedElsewhere(wake, .lost)
            self.flow()
            return outcome
        }
        _ = self.release(wake, stream)
        if stream.request.stallsWhenSilent { self.streams.gaveBack(stream, reason) }
        let wasPaused = stream.isPaused
        self.streams.pause(stream, true)
        self.flow()
        self.streams.pause(stream, wasPaused)
        self.slotFreed(stream)
        self.flow()
        return outcome
    }

    /// A worker reported how a wake ended.
    package func report(_ report: WakeReport, wake: WakeID) -> ReportOutcome {
        let outcome = self.engine.report(report, wake: wake)
        // The wake's deadline may have passed unseen until now: then it expired first, and this is a late answer.
        self.takeExpiredWakes()
        // What is said of a wake of another kind ends nothing, and answers nothing.
        if outcome != .otherKind, let subscription = self.streams.holder(of: wake) {
            // Whatever the report came to, the wake has ended: here, or elsewhere before.
            _ = self.release(wake, subscription)
            self.streams.answered(subscription)
            self.slotFreed(subscription)
        } else if outcome != .otherKind, outcome != .unknown {
            self.streams.shared?.noteEndedElsewhere(wake, nil)
        }
        self.flow()
        return outcome
    }

    /// A worker asked for more time, in milliseconds from now.
    package func extend(_ wake: WakeID, by milliseconds: Int64) -> ExtensionOutcome {
        let outcome = self.engine.extend(wake, by: milliseconds)
        self.streams.holder(of: wake)?.hasBeenHeard = true
        self.flow()
        switch outcome {
        case .lasts: self.streams.shared?.changes.moved.append(wake)
        case .limitReached: break
        case .ended, .unknown: self.endedElsewhere(wake)
        }
        return outcome
    }

    /// A worker said how far the continued task of a wake is.
    package func progress(_ progress: TaskProgress, wake: WakeID) -> ProgressOutcome {
        let outcome = self.engine.progress(progress, wake: wake)
        self.flow()
        switch outcome {
        case .lasts(let deadline):
            self.progressReports += 1
            self.streams.shared?.changes.progressReports += 1
            self.streams.shared?.changes.moved.append(wake)
            if let stream = self.streams.holder(of: wake) {
                stream.hasBeenHeard = true
                self.streams.progressed(wake, stream, deadline: deadline, at: self.engine.now)
            }
        case .notContinued: break
        case .ended, .unknown: self.endedElsewhere(wake)
        }
        return outcome
    }

    /// How many continued tasks that streams of this gateway hold have not advanced for `stallSpan`.
    package var stalledTaskCount: Int { self.streams.stalledCount(at: self.engine.now, after: Self.stallSpan) }

    /// A continued task that has not advanced for so many milliseconds has stalled: who looks at it may want to do
    /// something before its deadline does.
    package static let stallSpan: Int64 = 15_000

    /// A wake is no longer in flight: a stream that holds it still was not told, as it has ended elsewhere.
    private func endedElsewhere(_ wake: WakeID) {
        guard let subscription = self.streams.holder(of: wake), self.release(wake, subscription) else { return }
        self.slotFreed(subscription)
        self.flow()
    }
}

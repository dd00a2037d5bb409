import Policy
package import Wire

/// The streams of workers, and the reports that arrive for their wakes.
extension Dispatcher {
    /// Adds the stream of a worker that subscribed.
    ///
    /// - Returns: the limit that prevents the stream; nil if it was added.
    package func subscribed(
        _ address: StreamAddress,
        topic name: ByteView,
        _ request: SubscriptionRequest
    ) -> EngineLimit? {
        if let limit = self.limitMet(topic: name, request) { return limit }
        self.streamEnded(address)
        let topic = self.engine.topic(name)
        self.freed.append(self.streams.insert(address, topic, request))
        self.engine.noteSubscribed(topic, request)
        self.flow()
        return nil
    }

    /// Returns the limit that a subscription would exceed; nil if there is none.
    package func limitMet(topic name: ByteView, _ request: SubscriptionRequest) -> EngineLimit? {
        guard self.engine.mayAddTopic(name) else { return .topicsMax }
        let streamsMax = self.engine.configuration.streamsPerDeviceMax
        guard streamsMax > 0, let topic = self.engine.findTopic(name) else { return nil }
        let naming = self.streams.workers(of: topic)?.naming
        let isFull = request.devices.contains { naming?.count($0) ?? 0 >= streamsMax }
        return isFull ? .streamsPerDeviceMax : nil
    }

    /// Ends a worker's stream. Its unanswered wakes are lost.
    package func streamEnded(_ address: StreamAddress) {
        guard let subscription = self.streams[address] else { return }
        self.streams.remove(subscription)
        self.ended.append(subscription)
        self.flow()
    }

    /// Drains a stream whose worker stops: the stream gets no new wakes, and ends when it has no unanswered wakes.
    ///
    /// - `isAdmitted`: returns true if the caller may access the stream's topic.
    /// - Returns: false if there is no such stream.
    package func streamDraining(_ address: StreamAddress, isAdmitted: (TopicIndex) -> Bool) -> Bool {
        guard let subscription = self.streams[address], isAdmitted(subscription.topic) else { return false }
        self.streams.drain(subscription)
        self.endIfDrained(subscription)
        return true
    }

    /// Pauses a stream whose peer reads too slowly, or resumes it.
    package func streamPaused(_ address: StreamAddress, _ isPaused: Bool) {
        guard let subscription = self.streams[address] else { return }
        self.streams.pause(subscription, isPaused)
        if !isPaused { self.freed.append(subscription) }
        self.flow()
    }

    /// Changes the number of slots of a stream. The stream keeps all of its wakes.
    package func slotsChanged(_ address: StreamAddress, to slots: Int) {
        guard let subscription = self.streams[address] else { return }
        self.streams.resize(subscription, to: slots)
        self.freed.append(subscription)
        self.flow()
    }

    /// Changes the limit of unanswered payload bytes per stream. Streams keep all of their wakes.
    package func wakeBytesPerStreamChanged(to bytesMax: Int) {
        self.streams.resizeAll(wakeBytesMax: bytesMax)
    }
}

// MARK: - Shutting down

extension Dispatcher {
    /// Stops all launches. Results are still accepted.
    package func drain() {
        self.isDraining = true
    }
}

/// The ends of wakes on streams, and reports about wakes.
extension Dispatcher {
    /// Ends a wake of an open stream as lost.
    ///
    /// - `takingBackAttempt`: true if the worker never received the wake. Such an attempt does not count.
    package func lose(_ wake: WakeID, on address: StreamAddress, takingBackAttempt: Bool) {
        guard let subscription = self.streams[address], subscription.holds(wake) else { return }
        let isTask = self.streams.kind(of: wake, subscription) != .push
        self.engine.lose(wake, takingBackAttempt: takingBackAttempt)
        // The wake's deadline may have passed unnoticed. Then it has expired instead of being lost.
        self.takeExpiredWakes()
        if isTask, !takingBackAttempt, subscription.holds(wake) {
            self.output.expire(wake, on: subscription.address, reason: .lost)
        }
        if self.release(wake, subscription) { self.slotFreed(subscription) }
        self.flow()
    }

    /// Takes back a wake that its worker could not start. The wake is lost, and its attempt does not count. Another
    /// free stream gets the launch.
    ///
    /// - `reason`: the worker's explanation.
    package func release(_ wake: WakeID, reason: String) -> ReleaseOutcome {
        let outcome = self.engine.release(wake)
        // The wake's deadline may have passed unnoticed. Then it has expired instead of being given back.
        self.takeExpiredWakes()
        guard outcome == .released else {
            if let stream = self.streams.holder(of: wake) { stream.hasResponded = true }
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

    /// Applies a worker's result to a wake.
    package func report(_ report: WakeReport, wake: WakeID) -> ReportOutcome {
        let outcome = self.engine.report(report, wake: wake)
        // The wake's deadline may have passed unnoticed. Then it has expired, and this is a late answer.
        self.takeExpiredWakes()
        // A report of the wrong kind ends nothing and does not count as an answer.
        if outcome != .otherKind, let subscription = self.streams.holder(of: wake) {
            // With every outcome of the report, the wake has ended, here or at another gateway.
            _ = self.release(wake, subscription, endedAt: self.engine.now)
            self.streams.answered(subscription)
            self.slotFreed(subscription)
        } else if outcome != .otherKind, outcome != .unknown {
            self.streams.shared?.noteEndedElsewhere(wake, nil)
        }
        self.flow()
        return outcome
    }

    /// Extends a wake at the request of its worker, to `milliseconds` from now.
    package func extend(_ wake: WakeID, by milliseconds: Int64) -> ExtensionOutcome {
        let outcome = self.engine.extend(wake, by: milliseconds)
        self.streams.holder(of: wake)?.hasResponded = true
        self.flow()
        switch outcome {
        case .lasts: self.streams.shared?.changes.moved.append(wake)
        case .limitReached: break
        case .ended, .unknown: self.endedElsewhere(wake)
        }
        return outcome
    }

    /// Applies a worker's progress report for a continued task.
    package func progress(_ progress: TaskProgress, wake: WakeID) -> ProgressOutcome {
        let outcome = self.engine.progress(progress, wake: wake)
        self.flow()
        switch outcome {
        case .lasts(let deadline):
            self.progressReports += 1
            self.streams.shared?.changes.progressReports += 1
            self.streams.shared?.changes.moved.append(wake)
            if let stream = self.streams.holder(of: wake) {
                stream.hasResponded = true
                self.streams.progressed(wake, stream, deadline: deadline, at: self.engine.now)
            }
        case .notContinued: break
        case .ended, .unknown: self.endedElsewhere(wake)
        }
        return outcome
    }

    /// The number of continued tasks on streams of this gateway that have made no progress for `stallSpan`.
    package var stalledTaskCount: Int { self.streams.stalledCount(at: self.engine.now, after: Self.stallSpan) }

    /// The time in milliseconds without progress after which a continued task counts as stalled. An operator can then
    /// act before the task's deadline.
    package static let stallSpan: Int64 = 15_000

    /// Releases a wake that ended at another gateway from its stream, if the stream is at this gateway.
    private func endedElsewhere(_ wake: WakeID) {
        guard let subscription = self.streams.holder(of: wake), self.release(wake, subscription) else { return }
        self.slotFreed(subscription)
        self.flow()
    }
}

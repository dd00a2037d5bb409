// MARK: - Pushes, which share the short lane

extension DeviceLanes {
    /// A push arrived. When it can launch it has launched: `device.inFlight` holds it.
    ///
    /// - `workerIsFree`: a worker subscribed to the topic has a free slot for this device.
    package mutating func pushReceived(
        _ push: ArrivingPush,
        at now: Instant,
        workerIsFree: Bool,
        _ parameters: Parameters
    ) -> PushReceivedAction {
        let isFirst = self.device.pending == nil
        let mayLaunch = workerIsFree && !self.isFull(.short, parameters)
        let action = self.device.pushReceived(push, at: now, workerIsFree: mayLaunch, parameters)
        switch action {
        case .launched:
            if isFirst { self.tasks.pushArrived() }
            self.tasks.arrivals.pushInFlight = self.tasks.arrivals.pendingPush
        case .waits:
            if isFirst { self.tasks.pushArrived() }
        case .discarded: break
        }
        return action
    }

    /// The pending push was launched: `device.inFlight` holds it.
    package mutating func pushLaunched(at now: Instant, _ parameters: Parameters) {
        precondition(!self.isFull(.short, parameters), "there is no room in the lane")
        self.device.launched(at: now, parameters)
        self.tasks.arrivals.pushInFlight = self.tasks.arrivals.pendingPush
    }

    /// An operator launched what is pending, or an empty wake when nothing is: free of charge, whatever holds.
    ///
    /// - Returns: whether there was room in the lane.
    package mutating func pushLaunchForced(at now: Instant, _ parameters: Parameters) -> Bool {
        guard !self.isFull(.short, parameters) else { return false }
        self.device.launchForced(at: now, parameters)
        self.tasks.arrivals.pushInFlight = self.tasks.arrivals.pendingPush
        return true
    }

    /// A person dropped the push that waits; a wake in flight goes on.
    ///
    /// - Returns: the pending push that was discarded; nil when none was pending.
    package mutating func pendingCancelled() -> PushHandle? { self.device.pendingCancelled() }

    /// The worker asked that the push in flight may last until `moment`, before its deadline.
    package mutating func pushExtensionRequested(
        until moment: Instant,
        _ parameters: Parameters
    ) -> ExtensionRequestedAction {
        self.device.extensionRequested(until: moment, parameters)
    }

    /// The worker said how the push in flight ended, before its deadline.
    package mutating func pushResultReported(
        _ result: FetchResult,
        at now: Instant,
        _ parameters: Parameters
    ) -> WakeEndedAction {
        self.pushEnded(self.device.resultReported(result, at: now, parameters))
    }

    /// The push in flight was not completed in time; also an operator's simulated expiration.
    package mutating func pushExpired(at now: Instant, _ parameters: Parameters) -> WakeEndedAction {
        self.pushEnded(self.device.wakeExpired(at: now, parameters))
    }

    /// The worker's stream ended, or the gateway restarted, before an outcome of the push in flight.
    ///
    /// - `takingBackAttempt`: the gateway restarted: the attempt does not count.
    package mutating func pushLost(
        at now: Instant,
        takingBackAttempt: Bool,
        _ parameters: Parameters
    ) -> WakeEndedAction {
        self.pushEnded(self.device.wakeLost(at: now, takingBackAttempt: takingBackAttempt, parameters))
    }

    /// A push that waits again has the place that it had.
    private mutating func pushEnded(_ action: WakeEndedAction) -> WakeEndedAction {
        let ended = self.tasks.arrivals.pushInFlight
        switch action {
        case .retries: self.tasks.arrivals.pendingPush = ended
        case .absorbed: self.tasks.arrivals.pendingPush = min(self.tasks.arrivals.pendingPush, ended)
        case .completed, .discarded, .nothing: break
        }
        return action
    }
}

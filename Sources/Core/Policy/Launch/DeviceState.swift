package import Wire

/// The policy state of one device, and all operations on it.
///
/// This is a pure value: times are arguments, and effects are returned as actions. At each instant, the caller first
/// calls `timePassed` until it returns `nothing`, launches if `isLaunchable`, and repeats both while they have an
/// effect. Then it applies outside events, one at a time (the article "The rules").
///
/// Properties are ordered to minimize padding, because there is a value in memory for each device.
package struct DeviceState: Hashable, Sendable {
    package internal(set) var spacing = Spacing()
    /// The number of doublings of the interval.
    package internal(set) var penalty: UInt8 = 0
    /// The wake whose outcome is pending; nil if there is none.
    package private(set) var inFlight: WakeInFlight?
    package private(set) var conditions = Conditions()
    /// The pending push; nil if there is none.
    package private(set) var pending: PendingPush?

    /// Creates a newly registered device.
    package init() {}

    /// Creates a device from stored state.
    package init(
        pending: PendingPush?,
        inFlight: WakeInFlight?,
        spacing: Spacing,
        conditions: Conditions,
        penalty: UInt8
    ) {
        self.pending = pending
        self.inFlight = inFlight
        self.spacing = spacing
        self.conditions = conditions
        self.penalty = penalty
    }
}

// MARK: - Allowed launches and due times

extension DeviceState {
    /// Returns the minimum time between launches of priority `priority`, in milliseconds.
    package func interval(_ priority: Priority, _ parameters: Parameters) -> Int64 {
        var interval = parameters.launchInterval.multipliedSaturating(by: 1 << Int64(self.penalty))
        if self.conditions.lowPowerMode && priority < .immediate {
            interval = interval.multipliedSaturating(by: 2)
        }
        return min(interval, max(parameters.launchInterval, parameters.maxInterval))
    }

    /// Returns the first time at which interval, `immediateBurst` and budget allow a launch of `priority`.
    package func eligibleAt(_ priority: Priority, _ parameters: Parameters) -> Instant {
        guard self.conditions.appState != .active else { return .distantPast }
        let spaced = self.spacedFrom(priority, parameters)
        guard self.spacing.windowCount >= parameters.dailyLaunches else { return spaced }
        return max(spaced, self.spacing.windowStart + parameters.budgetWindow)
    }

    /// Returns the first time at which interval and `immediateBurst` allow a launch of `priority` in the background.
    @inline(__always)
    package func spacedFrom(_ priority: Priority, _ parameters: Parameters) -> Instant {
        let spaced = self.spacing.lastLaunch + self.interval(priority, parameters)
        guard priority == .immediate else { return spaced }
        let burst = (parameters.immediateBurst - 1).multipliedSaturating(by: parameters.immediateRefill)
        return min(spaced, self.spacing.immediateTAT - burst)
    }

    /// Returns the first hold that applies to a push of `priority`; nil if there is none.
    package func hold(_ priority: Priority, _ parameters: Parameters) -> Hold? {
        self.conditions.firstHold(priority, criticalBattery: parameters.criticalBattery)
    }

    /// Returns true if a pending push may launch at `now`, given a free worker slot.
    package func isLaunchable(_ now: Instant, _ parameters: Parameters) -> Bool {
        guard let pending = self.pending, pending.expiry > now else { return false }
        return self.mayLaunch(pending.priority, now, parameters)
    }

    /// Returns the next due time: a deadline, an expiry, or the time from which the pending push may launch; nil for
    /// never. It may be in the past.
    package func nextMoment(_ parameters: Parameters) -> Instant? {
        if let inFlight = self.inFlight {
            return min(inFlight.deadline, self.pending?.expiry ?? .distantFuture)
        }
        guard let pending = self.pending else { return nil }
        guard self.hold(pending.priority, parameters) == nil else { return pending.expiry }
        return min(pending.expiry, self.eligibleAt(pending.priority, parameters))
    }

    private func mayLaunch(_ priority: Priority, _ now: Instant, _ parameters: Parameters) -> Bool {
        self.inFlight == nil && self.hold(priority, parameters) == nil
            && self.eligibleAt(priority, parameters) <= now
    }
}

// MARK: - Events

extension DeviceState {
    /// Applies an arriving push. A push that can launch is launched and in `inFlight` afterwards.
    ///
    /// - `workerIsFree`: true if a worker subscribed to the topic has a free slot for this device.
    /// - `tasks`: the tasks of the device, which share the short lane with its pushes.
    package mutating func pushReceived(
        _ handle: PushHandle,
        _ priority: Priority,
        _ expiration: Expiration,
        at now: Instant,
        workerIsFree: Bool,
        _ parameters: Parameters,
        with tasks: inout BackgroundTasks
    ) -> PushReceivedAction {
        let older = self.pending
        let highest = max(priority, older?.priority ?? .passive)
        let launches = workerIsFree && !tasks.fillShortLane && self.mayLaunch(highest, now, parameters)
        let expiry: Instant
        switch expiration {
        case .absent: expiry = now + parameters.defaultTTL
        case .nowOrNever:
            guard launches else { return .discarded }
            expiry = now
        case .at(let moment):
            guard moment > now else { return .discarded }
            expiry = moment
        }
        var newer = PendingPush(
            handle: handle,
            expiry: expiry,
            receivedAt: now,
            firstReceivedAt: now,
            coalesced: 0,
            attempts: 0,
            priority: priority
        )
        if let older { newer.absorb(older) } else { tasks.pushArrived() }
        self.pending = newer
        guard launches else { return .waits(absorbed: older?.handle) }
        self.launched(at: now, parameters, with: &tasks)
        return .launched(absorbed: older?.handle)
    }

    /// Launches the pending push, which is in `inFlight` afterwards.
    package mutating func launched(at now: Instant, _ parameters: Parameters, with tasks: inout BackgroundTasks) {
        guard let pending = self.pending else { preconditionFailure("nothing is pending") }
        let before = self.spacing
        if self.conditions.appState != .active { self.launchCharged(pending.priority, at: now, parameters) }
        self.wake(pending, at: now, spacingBefore: before, parameters, with: &tasks)
    }

    /// Launches the pending push, or a wake without a push, for an operator. The launch is not charged and ignores
    /// holds.
    package mutating func launchForced(at now: Instant, _ parameters: Parameters, with tasks: inout BackgroundTasks) {
        let empty = PendingPush(
            handle: .none,
            expiry: now,
            receivedAt: now,
            firstReceivedAt: now,
            coalesced: 0,
            attempts: 0,
            priority: .considerate
        )
        self.wake(self.pending ?? empty, at: now, spacingBefore: self.spacing, parameters, with: &tasks)
    }

    /// Advances time to `now`. Call this again until it returns `nothing`.
    package mutating func timePassed(
        _ now: Instant,
        _ parameters: Parameters,
        with tasks: inout BackgroundTasks
    ) -> TimePassedAction {
        // After a late step, a push may have expired before the deadline. It must not absorb the push in flight.
        if let inFlight = self.inFlight, inFlight.deadline <= now,
            self.pending.map({ $0.expiry >= inFlight.deadline }) ?? true
        {
            return .pushExpired(self.wakeEnded(.expired, at: now, parameters, with: &tasks))
        }
        if !tasks.inFlight.isEmpty {
            if let wake = tasks.inFlight.first(where: { $0.deadline <= now }) {
                return self.change(with: &tasks) {
                    .taskExpired(wake, $0.taskEnded(wake.task.arrival, .expired, parameters))
                }
            }
            let isPressed = tasks.pressureAt(now).map { $0 <= now } ?? false
            if isPressed || tasks.hasExcess(parameters),
                let action = self.change(with: &tasks, { $0.endContinuedTaskByPressure(at: now, parameters) })
            {
                return action
            }
        }
        if let pending = self.pending, pending.expiry <= now {
            self.pending = nil
            return .pendingExpired(pending.handle)
        }
        return .nothing
    }

    /// Extends the wake in flight to `moment` at the request of its worker, received before the deadline.
    package mutating func extensionRequested(
        until moment: Instant,
        _ parameters: Parameters
    ) -> ExtensionRequestedAction {
        guard let wake = self.inFlight else { preconditionFailure("no wake is in flight") }
        let maximum = wake.launchedAt + parameters.executionWindow + parameters.maxExtension
        let action = ExtensionRequestedAction(moment, deadline: wake.deadline, maximum: maximum)
        self.inFlight?.deadline = action.deadline
        return action
    }

    /// Ends the wake in flight. The outcome is reported by its worker before the deadline, or follows from a missed
    /// deadline (real or simulated), a lost stream or a restart. A lost launch is treated as if it had never happened.
    ///
    /// - `takingBackAttempt`: true if the attempt of a lost wake does not count: the wake never reached its worker, its
    ///   worker returned it, or its gateway died or restarted.
    package mutating func wakeEnded(
        _ outcome: WakeOutcome,
        at now: Instant,
        takingBackAttempt: Bool = false,
        _ parameters: Parameters,
        with tasks: inout BackgroundTasks
    ) -> WakeEndedAction {
        guard var wake = self.inFlight else { preconditionFailure("no wake is in flight") }
        self.inFlight = nil
        switch outcome {
        case .newData, .noData:
            if outcome == .newData { self.penalty = 0 }
            return wake.push.handle == .none ? .nothing : .completed(wake.push.handle)
        case .failed: break
        case .expired:
            // A wake launched before the removal of its device does not raise the penalty of the new registration.
            if !wake.discardsRetry { self.penaltyRaised(parameters) }
        case .lost:
            if let before = wake.spacingBefore { self.spacing = before }
            if takingBackAttempt { wake.push.attempts -= 1 }
        }
        wake.push.priority = min(wake.push.priority, outcome == .lost ? .immediate : .considerate)
        return self.retry(wake, at: now, parameters, with: &tasks)
    }

    /// Applies a device's report of its conditions.
    ///
    /// - Returns: the pending push that was discarded because the device became `forceQuit`; nil if there is none.
    package mutating func conditionsReported(_ report: ConditionsReport) -> PushHandle? {
        let before = self.conditions.appState
        self.conditions.apply(report)
        guard self.conditions.appState == .forceQuit, before != .forceQuit else { return nil }
        defer { self.pending = nil }
        return self.pending?.handle
    }

    /// The device was removed. Discards all of its state. A wake in flight continues, without a retry.
    ///
    /// - Returns: the pending push that was discarded; nil if there is none.
    package mutating func unregistered() -> PushHandle? {
        let discarded = self.pending?.handle
        var inFlight = self.inFlight
        inFlight?.discardsRetry = true
        inFlight?.spacingBefore = nil
        self = DeviceState()
        self.inFlight = inFlight
        return discarded
    }

    /// Replaces the handle of the pending push's content.
    package mutating func pendingCarries(_ handle: PushHandle) { self.pending?.handle = handle }

    /// Changes the device and its tasks as one value.
    package mutating func change<Result>(
        with tasks: inout BackgroundTasks,
        _ body: (inout DeviceLanes) -> Result
    ) -> Result {
        var lanes = DeviceLanes(device: self, tasks: tasks)
        defer { (self, tasks) = (lanes.device, lanes.tasks) }
        return body(&lanes)
    }

    /// Discards the pending push, at the request of an operator or client. A wake in flight continues.
    ///
    /// - Returns: the pending push; nil if there is none.
    package mutating func pendingCancelled() -> PushHandle? {
        defer { self.pending = nil }
        return self.pending?.handle
    }
}

// MARK: - Effects shared with other lanes

extension DeviceState {
    /// Raises the penalty after a wake that was not completed in time.
    mutating func penaltyRaised(_ parameters: Parameters) {
        self.penalty = max(self.penalty, min(self.penalty + 1, parameters.maxPenalty))
    }

    /// Charges a launch of `priority` in the background.
    mutating func launchCharged(_ priority: Priority, at now: Instant, _ parameters: Parameters) {
        if priority == .immediate, self.spacing.lastLaunch != .distantPast,
            now < self.spacing.lastLaunch + self.interval(.immediate, parameters)
        {
            self.spacing.immediateTAT = max(self.spacing.immediateTAT, now) + parameters.immediateRefill
        }
        self.spacing.lastLaunch = now
        if now >= self.spacing.windowStart + parameters.budgetWindow {
            self.spacing.windowStart = now
            self.spacing.windowCount = 1
        } else {
            self.spacing.windowCount += 1
        }
    }
}

// MARK: - Steps

extension DeviceState {
    private mutating func wake(
        _ push: PendingPush,
        at now: Instant,
        spacingBefore: Spacing,
        _ parameters: Parameters,
        with tasks: inout BackgroundTasks
    ) {
        precondition(self.inFlight == nil && !tasks.fillShortLane, "a lane has at most one wake in flight")
        var push = push
        push.attempts += 1
        self.pending = nil
        self.inFlight = WakeInFlight(
            push: push,
            launchedAt: now,
            deadline: now + parameters.executionWindow,
            spacingBefore: spacingBefore
        )
        tasks.arrivals.pushInFlight = tasks.arrivals.pendingPush
    }

    /// Makes the push of an ended wake pending again, at its earlier position in the order of arrival.
    private mutating func retry(
        _ wake: WakeInFlight,
        at now: Instant,
        _ parameters: Parameters,
        with tasks: inout BackgroundTasks
    ) -> WakeEndedAction {
        let push = wake.push
        guard push.handle != .none else { return .nothing }
        guard !wake.discardsRetry else { return .discarded(push.handle, .unregistered) }
        if self.pending != nil {
            self.pending?.absorb(push)
            tasks.arrivals.pendingPush = min(tasks.arrivals.pendingPush, tasks.arrivals.pushInFlight)
            return .absorbed(push.handle)
        }
        guard push.attempts < parameters.maxAttempts else { return .discarded(push.handle, .exhausted) }
        guard push.expiry > now else { return .discarded(push.handle, .expired) }
        self.pending = push
        tasks.arrivals.pendingPush = tasks.arrivals.pushInFlight
        return .retries
    }
}

extension Int64 {
    /// Returns the product of two positive factors; the maximum value on overflow.
    func multipliedSaturating(by other: Int64) -> Int64 {
        let (product, overflow) = self.multipliedReportingOverflow(by: other)
        return overflow ? .max : product
    }
}

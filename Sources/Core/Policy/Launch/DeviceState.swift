package import Wire

/// What the policy knows of one device, and every way in which it changes.
///
/// A pure value: moments come in as arguments, what happened goes out as an action. At any one moment its user
/// first calls `timePassed` until it answers `nothing`, launches if `isLaunchable`, repeats that until nothing more
/// happens, and only then hands over what came from outside, one by one (the article "The rules", "At one moment").
///
/// Its parts lie in the order in which alignment wastes the fewest bytes: a gateway has one of each device in memory.
package struct DeviceState: Hashable, Sendable {
    package internal(set) var spacing = Spacing()
    /// How often the interval is doubled.
    package internal(set) var penalty: UInt8 = 0
    /// The wake whose outcome is awaited, if any.
    package private(set) var inFlight: WakeInFlight?
    package private(set) var conditions = Conditions()
    /// The push that waits, if any.
    package private(set) var pending: PendingPush?

    /// A device that was just registered.
    package init() {}

    /// A device as it was left: what a store kept of it.
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

// MARK: - What may happen, and when

extension DeviceState {
    /// The least time between launches of priority `priority`, in milliseconds.
    package func interval(_ priority: Priority, _ parameters: Parameters) -> Int64 {
        var interval = parameters.launchInterval.multipliedSaturating(by: 1 << Int64(self.penalty))
        if self.conditions.lowPowerMode && priority < .immediate {
            interval = interval.multipliedSaturating(by: 2)
        }
        return min(interval, max(parameters.launchInterval, parameters.maxInterval))
    }

    /// The first moment at which interval, allowance and budget allow a launch of `priority`.
    package func eligibleAt(_ priority: Priority, _ parameters: Parameters) -> Instant {
        guard self.conditions.appState != .active else { return .distantPast }
        let spaced = self.spacedFrom(priority, parameters)
        guard self.spacing.windowCount >= parameters.dailyLaunches else { return spaced }
        return max(spaced, self.spacing.windowStart + parameters.budgetWindow)
    }

    /// The first moment at which interval and allowance allow a launch of `priority` in the background.
    @inline(__always)
    package func spacedFrom(_ priority: Priority, _ parameters: Parameters) -> Instant {
        let spaced = self.spacing.lastLaunch + self.interval(priority, parameters)
        guard priority == .immediate else { return spaced }
        let burst = (parameters.immediateBurst - 1).multipliedSaturating(by: parameters.immediateRefill)
        return min(spaced, self.spacing.immediateTAT - burst)
    }

    /// The first hold that keeps a push of `priority` back, or nil.
    package func hold(_ priority: Priority, _ parameters: Parameters) -> Hold? {
        self.conditions.firstHold(priority, criticalBattery: parameters.criticalBattery)
    }

    /// Whether a pending push may launch at `now`, a free worker slot provided.
    package func isLaunchable(_ now: Instant, _ parameters: Parameters) -> Bool {
        guard let pending = self.pending, pending.expiry > now else { return false }
        return self.mayLaunch(pending.priority, now, parameters)
    }

    /// The next moment at which something happens by itself: a deadline, an expiry, or the moment from which the
    /// pending push is launchable; nil when nothing will. May lie in the past.
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

// MARK: - What happens

extension DeviceState {
    /// A push arrived. When it can launch it has launched: `inFlight` holds it.
    ///
    /// - `workerIsFree`: a worker subscribed to the topic has a free slot for this device.
    /// - `tasks`: the tasks of the device, here and below: its pushes share the short lane with them.
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

    /// The pending push was launched: `inFlight` holds it.
    package mutating func launched(at now: Instant, _ parameters: Parameters, with tasks: inout BackgroundTasks) {
        guard let pending = self.pending else { preconditionFailure("nothing is pending") }
        let before = self.spacing
        if self.conditions.appState != .active { self.launchCharged(pending.priority, at: now, parameters) }
        self.wake(pending, at: now, spacingBefore: before, parameters, with: &tasks)
    }

    /// An operator launched what is pending, or an empty wake when nothing is: free of charge, whatever holds.
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

    /// Time went on to `now`. Call again until the answer is `nothing`.
    package mutating func timePassed(
        _ now: Instant,
        _ parameters: Parameters,
        with tasks: inout BackgroundTasks
    ) -> TimePassedAction {
        if let inFlight = self.inFlight, inFlight.deadline <= now {
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
                let action = self.change(with: &tasks, { $0.continuedPressed(at: now, parameters) })
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

    /// The worker asked that the wake in flight may last until `moment`, before its deadline.
    package mutating func extensionRequested(
        until moment: Instant,
        _ parameters: Parameters
    ) -> ExtensionRequestedAction {
        guard let wake = self.inFlight else { preconditionFailure("no wake is in flight") }
        let most = wake.launchedAt + parameters.executionWindow + parameters.maxExtension
        let action = ExtensionRequestedAction(moment, deadline: wake.deadline, most: most)
        self.inFlight?.deadline = action.deadline
        return action
    }

    /// The wake in flight ended: its worker said so, before its deadline; it was not completed in time, or an operator
    /// simulates that; or it was lost, as its stream ended or the gateway restarted: then the launch never happened.
    ///
    /// - `takingBackAttempt`: the lost wake never reached its worker, or the gateway restarted: the attempt does not
    ///   count.
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
            // The actions of a device before its removal do not count against its new registration.
            if !wake.discardsRetry { self.penaltyRaised(parameters) }
        case .lost:
            if let before = wake.spacingBefore { self.spacing = before }
            if takingBackAttempt { wake.push.attempts -= 1 }
        }
        wake.push.priority = min(wake.push.priority, outcome == .lost ? .immediate : .considerate)
        return self.retry(wake, at: now, parameters, with: &tasks)
    }

    /// The device reported conditions.
    ///
    /// - Returns: the pending push that was discarded because the device became `forceQuit`.
    package mutating func conditionsReported(_ report: ConditionsReport) -> PushHandle? {
        let before = self.conditions.appState
        self.conditions.apply(report)
        guard self.conditions.appState == .forceQuit, before != .forceQuit else { return nil }
        defer { self.pending = nil }
        return self.pending?.handle
    }

    /// The device was removed: it starts afresh when it registers again; a wake in flight goes on, without a retry.
    ///
    /// - Returns: the pending push that was discarded.
    package mutating func unregistered() -> PushHandle? {
        let discarded = self.pending?.handle
        var inFlight = self.inFlight
        inFlight?.discardsRetry = true
        inFlight?.spacingBefore = nil
        self = DeviceState()
        self.inFlight = inFlight
        return discarded
    }

    /// The content of the pending push is elsewhere from here on.
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

    /// A person dropped what waits; a wake in flight goes on.
    ///
    /// - Returns: the pending push that was discarded; nil when none was pending.
    package mutating func pendingCancelled() -> PushHandle? {
        defer { self.pending = nil }
        return self.pending?.handle
    }
}

// MARK: - What other lanes' launches and ends do

extension DeviceState {
    /// A wake was not completed in time.
    mutating func penaltyRaised(_ parameters: Parameters) {
        self.penalty = max(self.penalty, min(self.penalty + 1, parameters.maxPenalty))
    }

    /// A launch of `priority` costs what it costs in the background.
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

    /// A push that waits again has the place that it had.
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
    /// The product, or the largest value when it does not fit; both factors are positive.
    func multipliedSaturating(by other: Int64) -> Int64 {
        let (product, overflow) = self.multipliedReportingOverflow(by: other)
        return overflow ? .max : product
    }
}

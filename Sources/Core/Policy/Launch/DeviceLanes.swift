package import Wire

/// The policy state of one device with its background tasks, and all operations on it.
///
/// This is a pure value, like its two parts. At each instant, the caller first applies results from workers and calls
/// `timePassed` until it returns `nothing`, lane by lane. It then launches `nextLaunch`, and repeats both while they
/// have an effect. Then it applies outside events, one at a time (the article "The rules of background tasks").
package struct DeviceLanes: Hashable, Sendable {
    /// Pushes, conditions, and the charges of launches in the short lane.
    package internal(set) var device: DeviceState
    package internal(set) var tasks: BackgroundTasks

    /// Creates a device from stored state; without arguments, a newly registered device.
    package init(device: DeviceState = DeviceState(), tasks: BackgroundTasks = BackgroundTasks()) {
        self.device = device
        self.tasks = tasks
    }
}

// MARK: - Allowed launches and due times

extension DeviceLanes {
    /// Returns the minimum time between launches of processing tasks, in milliseconds.
    package func processingInterval(_ parameters: Parameters) -> Int64 {
        let shortest = parameters.processingInterval
        let interval = shortest.multipliedSaturating(by: 1 << Int64(self.device.penalty))
        return min(interval, max(shortest, parameters.maxInterval))
    }

    /// Returns the first time at which interval, budget, earliest start and habits allow a launch of `task`.
    package func eligibleAt(_ task: BackgroundTask, _ parameters: Parameters) -> Instant {
        switch task.kind {
        case .continued: return .distantPast
        case .urlSession: return self.device.eligibleAt(.considerate, parameters)
        case .appRefresh:
            return self.tasks.usage.refreshMoment(
                max(task.waitsSince, self.device.eligibleAt(.considerate, parameters)),
                flex: parameters.refreshFlex,
                lead: parameters.refreshLead
            )
        case .processing:
            return max(task.waitsSince, self.tasks.lastProcessing + self.processingInterval(parameters))
        }
    }

    /// Returns true if `lane` has its maximum number of wakes in flight.
    package func isFull(_ lane: Lane, _ parameters: Parameters) -> Bool {
        let count = self.tasks.inFlight.count { $0.task.kind.lane == lane }
        return switch lane {
        case .short: count > 0 || self.device.inFlight != nil
        case .processing: count > 0
        case .continued: count >= Int(parameters.continuedMax)
        }
    }

    /// Returns the launch to make at `now`: the longest waiting launch of the first lane in which one is possible; nil
    /// if there is none.
    ///
    /// - `hasSlot`: returns true if a stream that accepts the launch has a free slot.
    package func nextLaunch(
        at now: Instant,
        _ parameters: Parameters,
        hasSlot: (LaunchCandidate) -> Bool
    ) -> LaunchCandidate? {
        for lane in Lane.allCases where !self.isFull(lane, parameters) {
            var best: (candidate: LaunchCandidate, since: Instant, arrival: UInt64)?
            if lane == .short, let pending = self.device.pending, self.device.isLaunchable(now, parameters),
                hasSlot(.push)
            {
                best = (.push, pending.firstReceivedAt, self.tasks.arrivals.pendingPush)
            }
            for task in self.tasks.waiting where task.kind.lane == lane {
                let place = (task.waitsSince, task.arrival)
                if let best, (best.since, best.arrival) < place { continue }
                guard self.isAllowed(task, at: now, parameters), hasSlot(.task(task)) else { continue }
                best = (.task(task), task.waitsSince, task.arrival)
            }
            if let best { return best.candidate }
        }
        return nil
    }

    /// Returns the next due time: a deadline, an expiry, or the time from which a launch is allowed (`now` if it is
    /// allowed already); nil for never.
    package func nextMoment(from now: Instant, _ parameters: Parameters) -> Instant? {
        var next: Instant?
        func take(_ moment: Instant) { next = min(next ?? moment, moment) }
        self.forEachEnd(from: now, take)
        self.forEachLaunch(from: now, parameters, take)
        return next
    }

    /// Returns the next due time, ignoring launches that wait only for a slot: a deadline, an expiry, or the time at
    /// which a launch becomes allowed or forbidden; nil for never. It may be in the past.
    package func nextMoment(beside now: Instant, _ parameters: Parameters) -> Instant? {
        var next: Instant?
        func take(_ moment: Instant) { next = min(next ?? moment, moment) }
        // Skip launches that are allowed now, because they wait only for a slot. Include wakes that end now.
        self.forEachLaunch(from: now, parameters) { if $0 != now { take($0) } }
        self.forEachEnd(from: now, take)
        if let end = self.tasks.usage.end(parameters.usageWindow), end > now, !self.tasks.waiting.isEmpty {
            take(end)
        }
        return next
    }

    /// Returns true if the pending push may launch at `now`, given a free slot.
    package func isPushLaunchable(at now: Instant, _ parameters: Parameters) -> Bool {
        !self.isFull(.short, parameters) && self.device.isLaunchable(now, parameters)
    }

    /// Returns the tasks that may launch at `now`, given a free slot, by arrival.
    package func launchableTasks(at now: Instant, _ parameters: Parameters) -> [BackgroundTask] {
        let full = Lane.allCases.filter { self.isFull($0, parameters) }
        return self.tasks.waiting.filter {
            !full.contains($0.kind.lane) && self.isAllowed($0, at: now, parameters)
        }
    }

    /// Calls `body` with every deadline, every expiry, and the time at which pressure ends a task. It builds no array,
    /// because each progress report calls it.
    private func forEachEnd(from now: Instant, _ body: (Instant) -> Void) {
        for wake in self.tasks.inFlight { body(wake.deadline) }
        if let inFlight = self.device.inFlight { body(inFlight.deadline) }
        if let pending = self.device.pending { body(pending.expiry) }
        if let moment = self.tasks.pressureAt(now) { body(moment) }
    }

    /// Calls `body` with the times from which launches are allowed.
    private func forEachLaunch(from now: Instant, _ parameters: Parameters, _ body: (Instant) -> Void) {
        if let pending = self.device.pending, !self.isFull(.short, parameters),
            self.device.hold(pending.priority, parameters) == nil
        {
            body(max(now, self.device.eligibleAt(pending.priority, parameters)))
        }
        guard !self.tasks.waiting.isEmpty else { return }
        for lane in Lane.allCases where !self.isFull(lane, parameters) {
            for task in self.tasks.waiting where task.kind.lane == lane {
                let moment = max(now, self.eligibleAt(task, parameters))
                if self.hold(task, at: moment, parameters) == nil { body(moment) }
            }
        }
    }

    /// Returns true if `task` may launch at `now`, given a free slot and a lane that is not full.
    private func isAllowed(_ task: BackgroundTask, at now: Instant, _ parameters: Parameters) -> Bool {
        self.eligibleAt(task, parameters) <= now && self.hold(task, at: now, parameters) == nil
    }

    /// Returns true if `task` may launch at `now`, given a free slot.
    func mayLaunch(_ task: BackgroundTask, at now: Instant, _ parameters: Parameters) -> Bool {
        !self.isFull(task.kind.lane, parameters) && self.isAllowed(task, at: now, parameters)
    }
}

// MARK: - Time and launches

extension DeviceLanes {
    /// Advances time to `now`. Call this again until it returns `nothing`.
    package mutating func timePassed(_ now: Instant, _ parameters: Parameters) -> TimePassedAction {
        self.device.timePassed(now, parameters, with: &self.tasks)
    }

    /// Launches a pending task.
    ///
    /// - `arrival`: the arrival number of the task.
    @discardableResult
    package mutating func taskLaunched(_ arrival: UInt64, at now: Instant, _ parameters: Parameters) -> TaskWake {
        let before = self.device.spacing
        let lastBefore = self.tasks.lastProcessing
        let task = self.takeWaiting(arrival)
        let charge: TaskWake.Charge
        switch task.kind.lane {
        case .short:
            if self.device.conditions.appState != .active {
                self.device.launchCharged(.considerate, at: now, parameters)
            }
            charge = .short(before: before)
        case .processing:
            self.tasks.lastProcessing = now
            charge = .processing(lastBefore: lastBefore)
        case .continued: charge = .nothing
        }
        return self.wake(task, at: now, charge: charge, tolerated: [], parameters)
    }

    /// Launches the request with this identifier for an operator, without charge and regardless of holds.
    package mutating func taskLaunchForced(
        _ name: TaskName,
        at now: Instant,
        _ parameters: Parameters
    ) -> TaskLaunchForcedAction {
        guard let task = self.tasks.waiting.first(where: { $0.name == name && $0.kind != .urlSession }) else {
            return .notPending
        }
        guard !self.isFull(task.kind.lane, parameters) else { return .laneIsFull }
        let tolerated = Holds(self.allHolds(task, at: now, parameters))
        let taken = self.takeWaiting(task.arrival)
        return .launched(self.wake(taken, at: now, charge: .nothing, tolerated: tolerated, parameters))
    }

    private mutating func takeWaiting(_ arrival: UInt64) -> BackgroundTask {
        guard let index = self.tasks.waiting.firstIndex(where: { $0.arrival == arrival }) else {
            preconditionFailure("no such task waits")
        }
        return self.tasks.waiting.remove(at: index)
    }

    private mutating func wake(
        _ task: BackgroundTask,
        at now: Instant,
        charge: TaskWake.Charge,
        tolerated: Holds,
        _ parameters: Parameters
    ) -> TaskWake {
        precondition(!self.isFull(task.kind.lane, parameters), "the lane is full")
        var task = task
        task.attempts += 1
        task.waitsForMemory = false
        let deadline = now + Self.window(LaunchKind(task.kind), parameters)
        let wake = TaskWake(task: task, launchedAt: now, deadline: deadline, charge: charge, tolerated: tolerated)
        self.tasks.fly(wake)
        return wake
    }

    /// Returns the initial duration of a wake, in milliseconds; for a continued task, the maximum time without
    /// progress.
    package static func window(_ kind: LaunchKind, _ parameters: Parameters) -> Int64 {
        switch kind {
        case .push, .appRefresh, .urlSession: parameters.executionWindow
        case .processing: parameters.processingWindow
        case .continued: parameters.progressWindow
        }
    }

    /// Returns the time before the deadline of a wake at which its worker is warned, in milliseconds; 0 for no warning.
    package static func expirationLead(_ kind: LaunchKind, _ parameters: Parameters) -> Int64 {
        min(parameters.expirationLead, self.window(kind, parameters) / 2)
    }
}

// MARK: - Pushes in the short lane

extension DeviceLanes {
    /// Applies an arriving push: see `DeviceState.pushReceived`.
    package mutating func pushReceived(
        _ handle: PushHandle,
        _ priority: Priority,
        _ expiration: Expiration,
        at now: Instant,
        workerIsFree: Bool,
        _ parameters: Parameters
    ) -> PushReceivedAction {
        self.device.pushReceived(
            handle,
            priority,
            expiration,
            at: now,
            workerIsFree: workerIsFree,
            parameters,
            with: &self.tasks
        )
    }

    /// Launches the pending push, which is in `device.inFlight` afterwards.
    package mutating func pushLaunched(at now: Instant, _ parameters: Parameters) {
        self.device.launched(at: now, parameters, with: &self.tasks)
    }

    /// Ends the push in flight: see `DeviceState.wakeEnded`.
    package mutating func pushEnded(
        _ outcome: WakeOutcome,
        at now: Instant,
        _ parameters: Parameters
    ) -> WakeEndedAction {
        self.device.wakeEnded(outcome, at: now, parameters, with: &self.tasks)
    }
}

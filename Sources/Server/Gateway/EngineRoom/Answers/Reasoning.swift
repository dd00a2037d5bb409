package import Engine
import Platform
package import Policy
import Wire

/// Explains in one sentence why a device's push or task launches or not, and what would change that.
package struct Reasoning {
    let device: DeviceSnapshot
    let offset: WallOffset

    package init(device: DeviceSnapshot, offset: WallOffset) {
        self.device = device
        self.offset = offset
    }

    /// The text of a time at which something may happen, rounded up.
    func time(_ instant: Instant) -> String { WallTime.textRoundedUp(self.offset.wall(instant)) }

    /// The text of a time at which something happened.
    func pastTime(_ instant: Instant) -> String { WallTime.text(self.offset.wall(instant)) }
}

// MARK: - Pushes

extension Reasoning {
    /// Explains the state of the device's push.
    ///
    /// - `webhook`: the state of the topic's webhook; nil if there is none.
    /// - `workers`: the workers of the topic.
    package func push(
        _ webhook: WebhookStatus?,
        _ workers: Dispatcher.WorkerCounts,
        at now: Instant
    ) -> String {
        let state = self.pushState(webhook, workers, now)
        guard let worker = self.device.silentWorker else { return state }
        return "\(state) Its last wake expired unanswered on the stream of \(worker), from which nothing was ever "
            + "received: the worker may not have received it: a buffering proxy?"
    }

    private func pushState(_ webhook: WebhookStatus?, _ workers: Dispatcher.WorkerCounts, _ now: Instant) -> String {
        let state = self.device.state
        if let inFlight = state.inFlight {
            let behind = state.pending == nil ? "" : "; a newer push waits for it to end"
            return "A wake has been in flight since \(self.pastTime(inFlight.launchedAt)), "
                + "and its worker has until \(self.time(inFlight.deadline)) to report a result\(behind)."
        }
        guard self.device.isRegistered else {
            return "The device was removed at \(self.pastTime(self.device.registrationChangedAt)), "
                + "and pushes to it are refused until it registers again."
        }
        let noSlot = self.noSlot(webhook, workers)
        guard let pending = state.pending else { return self.nothingPending(noSlot, at: now) }
        let held = self.device.held.filter { $0 != .worker }
        let eligibleAt = state.eligibleAt(pending.priority, self.device.parameters)
        let spacing = self.spacing(eligibleAt, pending.priority)
        let wait = eligibleAt > now ? "waits until \(self.time(eligibleAt))\(spacing)" : nil
        let untaken = self.device.pushTakers == .none ? noSlot : nil
        guard held.isEmpty else { return self.pushHeld(held) + self.besides(wait.map { "it \($0)" }, untaken) }
        if let wait { return "The push \(wait)." + self.besides(untaken) }
        if let lane = self.shortLaneWait { return "The push waits \(lane)." }
        guard let noSlot else { return "The push is due, and a worker has a free slot for it: it launches at once." }
        return "The push is due, but \(noSlot)."
    }

    /// Explains the delay of a push of priority 5 that arrives now. Used if no push is pending.
    ///
    /// - `noSlot`: the reason why no worker would accept the push.
    private func nothingPending(_ noSlot: String?, at now: Instant) -> String {
        let outlook = self.device.outlook(at: now)
        let would = "Nothing is pending, and a push of priority 5 that comes now would"
        let until = outlook.eligibleAt
        let wait = until > now ? "wait until \(self.time(until))\(self.spacing(until, .considerate))" : nil
        let untaken = outlook.takers == .none ? noSlot : nil
        switch outlook.verdict {
        case .ready: return "Nothing is pending, and the next push may launch at once."
        case .waiting: return "\(would) \(wait ?? "wait")." + self.besides(untaken)
        case .inFlight: return "\(would) wait \(self.shortLaneWait ?? "for the wake in flight to end")."
        case .held:
            guard !outlook.holds.isEmpty else { return "\(would) wait: \(noSlot ?? "no worker has a free slot")." }
            let held = self.causes(of: outlook.holds, .push, ending: "until")
            return "\(would) be held \(held)." + self.besides(wait.map { "it would \($0)" }, untaken)
        }
    }

    /// Returns each clause that is not nil as a separate sentence.
    private func besides(_ clauses: String?...) -> String {
        clauses.compactMap { $0 }.map { " Besides, \($0)." }.joined()
    }

    private func pushHeld(_ held: [Hold]) -> String {
        switch held {
        case [.paused]:
            "The topic \(self.device.topic) is paused, and nothing of it launches on its own: the push waits "
                + "until it is resumed (wakegate topic resume \(self.device.topic))."
        case [.priority]:
            "The push has priority 1, which never wakes a device: it launches once the device is active, or "
                + "rides along with a more urgent push."
        default: "The push is held \(self.causes(of: held, .push, ending: "and launches once"))."
        }
    }

    /// The task that a push must wait for in its lane, as a clause; nil if none is running.
    private var shortLaneWait: String? {
        self.running(in: .short).first.map { name, deadline in
            "for \(name) to end, which runs in the same lane and has until \(self.time(deadline))"
        }
    }

    /// Returns the reason why no worker accepts a push now, as a main clause; nil if a worker has a free slot.
    private func noSlot(_ webhook: WebhookStatus?, _ workers: Dispatcher.WorkerCounts) -> String? {
        guard self.device.pushTakers != .free else { return nil }
        let topic = self.device.topic
        if let webhook { return webhook.reason(topic: topic) }
        guard workers.connected > 0 else {
            return "no worker is subscribed to \(topic): start one (wakegate worker --topic \(topic) -- COMMAND)"
        }
        if self.device.pushTakers == .unknown {
            return "no free stream of \(topic) is known here that takes pushes of this device: it launches at once if "
                + "one of another gateway does"
        }
        guard self.device.pushTakers == .busy else {
            let subject =
                workers.connected == 1
                ? "the one stream of \(topic) takes no pushes"
                : "none of the \(workers.connected) streams of \(topic) takes pushes"
            return "\(subject) of this device: start a worker that does (wakegate worker --topic \(topic) -- COMMAND)"
        }
        let busy = "no worker subscribed to \(topic) has a free slot for this device"
        guard let reason = workers.stallReason else {
            return "\(busy): start another (wakegate worker --topic \(topic) -- COMMAND), or give one more slots"
        }
        return "\(busy). Stalled streams, which get no wakes until they answer one or subscribe again: "
            + "\(workers.stalled) of \(workers.connected), such as that of \(reason)"
    }
}

// MARK: - Intervals and budgets

extension Reasoning {
    /// Returns why an interval or the budget delays a launch. The text follows "waits until" and the time.
    private func spacing(_ eligibleAt: Instant, _ priority: Priority) -> String {
        let (state, parameters) = (self.device.state, self.device.parameters)
        if state.spacing.windowCount >= parameters.dailyLaunches,
            state.spacing.windowStart + parameters.budgetWindow == eligibleAt
        {
            return ", because all \(parameters.dailyLaunches) launches of the budget window are used up"
        }
        if eligibleAt < state.spacing.lastLaunch + state.interval(priority, parameters) {
            return ", when the allowance of priority 10 has \(Self.allowance(parameters))"
        }
        let isSaving = state.conditions.lowPowerMode && priority < .immediate
        let causes = self.doubled + (isSaving ? ["doubled in low power mode"] : [])
        return ": the last launch was at \(self.pastTime(state.spacing.lastLaunch)), and launches of priority "
            + "\(priority.rawValue) are \(Self.seconds(state.interval(priority, parameters))) s apart"
            + Self.inParentheses(causes)
    }

    /// Returns the growth of the allowance of priority 10, which permits launches before the interval has passed.
    static func allowance(_ parameters: Parameters) -> String {
        "one more launch (every \(self.seconds(parameters.immediateRefill)) s)"
    }

    /// The reasons why intervals are longer than usual; empty if they are not.
    private var doubled: [String] {
        let penalty = self.device.state.penalty
        return penalty == 0 ? [] : [Self.doublings(penalty)]
    }

    /// Describes a penalty above 0. The text follows the intervals that it lengthens.
    package static func doublings(_ penalty: UInt8) -> String {
        let count = penalty == 1 ? "once" : "\(penalty) times"
        return "doubled \(count) because of expired wakes, until a wake ends with newData or success"
    }

    private static func inParentheses(_ causes: [String]) -> String {
        causes.isEmpty ? "" : " (\(causes.joined(separator: "; ")))"
    }

    static func seconds(_ milliseconds: Int64) -> String { JSONNumber.text(of: Double(milliseconds) / 1000) }
}

// MARK: - Requests and sessions

extension Reasoning {
    /// Explains the state of a task's request or of a session's transfers.
    func task(_ task: TaskSnapshot) -> String {
        let kind = task.task.kind
        let subject =
            switch kind {
            case .appRefresh: "The refresh"
            case .processing: "The processing task"
            case .continued: "The continued task"
            case .urlSession: "The session's wake"
            }
        switch task.state {
        case .running(_, let launchedAt, let deadline, let progress):
            let begin = "\(subject) has been running since \(self.pastTime(launchedAt))"
            guard kind == .continued else {
                return "\(begin), and its worker has until \(self.time(deadline)) to report success or failure."
            }
            return "\(begin), \(self.advance(progress, launchedAt, deadline)), and has until \(self.time(deadline)) to "
                + "advance or end."
        case .waiting(let eligibleAt, let held, let laneIsFull):
            let wait = eligibleAt.map { self.waiting(task.task, until: $0) }
            let untaken = task.isTaken ? nil : self.noSlot(task)
            let holds = held.filter { $0 != .worker }
            if !holds.isEmpty {
                let causes = self.causes(of: holds, LaunchKind(kind), ending: "and launches once")
                return "\(subject) is held \(causes)." + self.besides(wait.map { "it \($0)" }, untaken)
            }
            if let wait { return "\(subject) \(wait)." + self.besides(untaken) }
            return laneIsFull
                ? "\(subject) waits \(self.laneWait(kind.lane))." : "\(subject) is due, but \(self.noSlot(task))."
        }
    }

    /// Returns the progress of a continued task and the time of its last advance.
    private func advance(_ progress: TaskProgress?, _ launchedAt: Instant, _ deadline: Instant) -> String {
        guard let progress else { return "has told of no progress" }
        let done = progress.total > 0 ? "\(progress.completed) of \(progress.total)" : "\(progress.completed)"
        // Each advance moves the deadline to the progress window from then, so this is the time of the last advance.
        let moved = deadline - self.device.parameters.progressWindow
        return moved > launchedAt ? "advanced to \(done) at \(self.pastTime(moved))" : "has told of \(done)"
    }

    func waiting(_ task: BackgroundTask, until eligibleAt: Instant) -> String {
        let parameters = self.device.parameters
        let moment = self.time(eligibleAt)
        let beginning = "waits for its earliest beginning at \(moment)"
        switch task.kind {
        case .appRefresh:
            let spaced = self.device.state.eligibleAt(.considerate, parameters)
            guard eligibleAt <= max(task.waitsSince, spaced) else {
                return "is put off until \(moment), to come right before the habitual use of the device at "
                    + self.time(eligibleAt + parameters.refreshLead)
            }
            if eligibleAt == task.waitsSince { return beginning }
        case .processing:
            if eligibleAt == task.waitsSince { return beginning }
            return "waits until \(moment): processing tasks of a device are launched at least "
                + "\(Self.seconds(parameters.processingInterval)) s apart\(Self.inParentheses(self.doubled))"
        case .urlSession, .continued: break
        }
        return "waits until \(moment)\(self.spacing(eligibleAt, .considerate))"
    }

    func laneWait(_ lane: Lane) -> String {
        let running = self.running(in: lane)
        guard lane != .continued else {
            return "until fewer than \(self.device.parameters.continuedMax) continued tasks of the device are "
                + "running; now those are \(running.map(\.name).joined(separator: ", "))"
        }
        if let (name, deadline) = running.first { return "for \(name) to end, which has until \(self.time(deadline))" }
        guard let push = self.device.state.inFlight else { return "for the wake in flight to end" }
        return "for the wake in flight of a push to end, which has until \(self.time(push.deadline))"
    }

    /// Returns the running tasks and sessions of a lane, with their deadlines.
    private func running(in lane: Lane) -> [(name: String, deadline: Instant)] {
        self.device.tasks.compactMap { task in
            guard task.task.kind.lane == lane, case .running(_, _, let deadline, _) = task.state else { return nil }
            return (task.name, deadline)
        }
    }

    private func noSlot(_ task: TaskSnapshot) -> String {
        let key = task.task.kind == .urlSession ? "session" : "task"
        let resources = task.details.resources.map { " and resource=\($0)" }.joined()
        let what = "\(key)=\(task.name)\(resources)"
        return task.isTaken
            ? "no stream of \(self.device.topic) that takes \(what) of this device has a free slot: it launches once "
                + "one has; start another worker, or give one more slots"
            : "no stream of \(self.device.topic) takes \(what) of this device: start a worker that subscribes with it"
    }
}

// MARK: - Holds

/// The texts about the causes and the ends of holds.
extension Reasoning {
    /// Returns the causes of all holds of a launch, as the text between "is held" and the final period.
    ///
    /// - `holds`: one or more holds, without `worker`.
    /// - `ending`: the words before the end of a single hold: "and launches once" or "until".
    func causes(of holds: [Hold], _ kind: LaunchKind, ending: String) -> String {
        let causes = holds.map { self.cause(of: $0, kind) }
        guard causes.count > 1 else {
            return causes.map { "because \($0.what), \(ending) \($0.end)" }.joined()
        }
        let all = ending == "until" ? "until all of them have ended" : "\(ending) all of them have ended"
        let list = causes.map { "\($0.what), until \($0.end)" }.joined(separator: "; ")
        return "for \(causes.count) reasons, \(all): \(list)"
    }

    /// Returns the cause of a hold and the event that ends it, as two main clauses.
    func cause(of hold: Hold, _ kind: LaunchKind) -> (what: String, end: String) {
        let (conditions, parameters) = (self.device.state.conditions, self.device.parameters)
        switch hold {
        case .paused:
            return (
                "the topic \(self.device.topic) is paused",
                "it is resumed (wakegate topic resume \(self.device.topic))"
            )
        case .forceQuit:
            let states = kind == .push || kind == .urlSession ? "background or active" : "background"
            return ("the app was force-quit", "appState is reported as \(states)")
        case .backgroundRefresh: return self.refusedRefresh
        case .active: return ("the device is in use", "appState is reported as background")
        case .network:
            return ("the device has no network\(kind == .push ? "" : ", which it needs")", "it reports one")
        case .power:
            return ("it requires external power and the device is not charging", "charging is reported")
        case .lowPower: return ("the device is in low power mode", "lowPowerMode is reported as false")
        case .thermal:
            let remedy = conditions.thermalState == .serious ? Self.priorityRemedy(kind) : ""
            return (
                "the thermal state is \(conditions.thermalState.rawValue)",
                "the device reports that it is cooler\(remedy)"
            )
        case .memory:
            return ("the memory pressure is critical", "the device reports that it is normal or warning")
        case .battery:
            let (level, critical) = (Self.percent(conditions.batteryLevel), Self.percent(parameters.criticalBattery))
            return (
                "the battery is at \(level), below the critical \(critical), and not charging",
                "the device reports more charge or a charger\(Self.priorityRemedy(kind))"
            )
        case .usage:
            return (
                "the device has not been used since \(self.pastTime(self.device.usage.last)), for longer than the "
                    + "\(Self.seconds(parameters.usageWindow)) s of usageWindow", "the device is used again"
            )
        case .priority:
            return (
                "it has priority 1, which never wakes a device", "the device is active, or a more urgent push comes"
            )
        case .worker: return ("no worker has a free slot", "one has")
        }
    }

    /// The cause and the end of the hold `backgroundRefresh`. The user of the device can change `denied`, but not
    /// `restricted`.
    private var refusedRefresh: (what: String, end: String) {
        guard self.device.state.conditions.backgroundRefresh == .restricted else {
            return ("background refresh is denied", "it is reported as available")
        }
        return (
            "background refresh is restricted, which the user of the device cannot change",
            "the restriction (parental controls, or a profile of an administrator) is lifted and it is reported as "
                + "available"
        )
    }

    private static func priorityRemedy(_ kind: LaunchKind) -> String {
        kind == .push ? ", or with a push of priority 10" : ""
    }

    /// Formats a fraction as a percentage.
    private static func percent(_ fraction: Double) -> String {
        "\(JSONNumber.text(of: (fraction * 1000).rounded() / 10)) %"
    }
}

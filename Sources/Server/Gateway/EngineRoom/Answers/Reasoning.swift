import Engine
import Platform
import Policy
import Wire

/// Says in one sentence why what a device has pending, waiting or in flight is or is not launched, and what would
/// change that.
struct Reasoning {
    let device: DeviceSnapshot
    let offset: WallOffset

    private func time(_ instant: Instant) -> String { WallTime.textRoundedUp(self.offset.wall(instant)) }
}

// MARK: - Pushes

extension Reasoning {
    /// Says it of the device's push.
    ///
    /// - `webhook`: how the webhook of its topic is; nil when it has none.
    /// - `workers`: the workers of its topic.
    func push(_ webhook: WebhookStatus?, _ workers: Dispatcher.WorkerCounts, at now: Instant) -> String {
        let state = self.pushState(webhook, workers, now)
        guard let worker = self.device.silentWorker else { return state }
        return "\(state) Its last wake expired unanswered on the stream of \(worker), from which nothing was ever "
            + "received: the worker may not have received it: a buffering proxy?"
    }

    private func pushState(_ webhook: WebhookStatus?, _ workers: Dispatcher.WorkerCounts, _ now: Instant) -> String {
        let state = self.device.state
        if let inFlight = state.inFlight {
            let behind = state.pending == nil ? "" : "; a newer push waits for it to end"
            return "A wake has been in flight since \(self.time(inFlight.launchedAt)), "
                + "and its worker has until \(self.time(inFlight.deadline)) to report a result\(behind)."
        }
        guard self.device.isRegistered else {
            return "The device was removed at \(self.time(self.device.registrationChangedAt)), "
                + "and pushes to it are refused until it registers again."
        }
        guard let pending = state.pending else { return self.nothingPending(now) }
        if let hold = self.device.held.first, hold != .worker { return self.pushHeld(hold) }
        let eligibleAt = state.eligibleAt(pending.priority, self.device.parameters)
        guard eligibleAt <= now else {
            return "The push waits until \(self.time(eligibleAt))\(self.spacing(eligibleAt, pending.priority))."
        }
        if let (name, deadline) = self.running(in: .short).first {
            return "The push waits for \(name) to end, which runs in the same lane and has until "
                + "\(self.time(deadline))."
        }
        if let webhook { return webhook.reason(topic: self.device.topic) }
        let noSlot = "The push is due, but no worker subscribed to \(self.device.topic) has a free slot for this device"
        if let reason = workers.stallReason {
            return "\(noSlot). Stalled streams, which get no wakes until they answer one or subscribe again: "
                + "\(workers.stalled) of \(workers.connected), such as that of \(reason)."
        }
        return "\(noSlot): start one (wakegate worker --topic \(self.device.topic) -- COMMAND), or give it more slots."
    }

    private func nothingPending(_ now: Instant) -> String {
        guard !self.device.isTopicPaused else {
            return "Nothing is pending, and a push that comes now would wait: the topic \(self.device.topic) is paused "
                + "until it is resumed (wakegate topic resume \(self.device.topic))."
        }
        let eligibleAt = self.device.state.eligibleAt(.considerate, self.device.parameters)
        guard eligibleAt > now else { return "Nothing is pending, and the next push may launch at once." }
        return "Nothing is pending, and a push of priority 5 that comes now would wait until \(self.time(eligibleAt))."
    }

    private func pushHeld(_ hold: Hold) -> String {
        switch hold {
        case .paused:
            "The topic \(self.device.topic) is paused, and nothing of it launches by itself: the push waits "
                + "until it is resumed (wakegate topic resume \(self.device.topic))."
        case .priority:
            "The push has priority 1, which never wakes a device: it launches once the device is active, or "
                + "rides along with a more urgent push."
        default: "The push is held because \(self.cause(of: hold, .push))."
        }
    }
}

// MARK: - Holds, intervals and budgets

extension Reasoning {
    /// What holds it, and what ends the hold.
    private func cause(of hold: Hold, _ kind: LaunchKind) -> String {
        let (conditions, parameters) = (self.device.state.conditions, self.device.parameters)
        switch hold {
        case .paused:
            return "the topic \(self.device.topic) is paused, and launches once it is resumed (wakegate topic resume "
                + "\(self.device.topic))"
        case .forceQuit:
            let states = kind == .push || kind == .urlSession ? "background or active" : "background"
            return "the app was force-quit, and launches once appState is reported as \(states)"
        case .backgroundRefresh:
            return "background refresh is \(conditions.backgroundRefresh.rawValue), and launches once it is reported "
                + "as available"
        case .active: return "the device is in use, and launches once appState is reported as background"
        case .network:
            let need = kind == .push ? "" : ", which it needs"
            return "the device has no network\(need), and launches once it reports one"
        case .power:
            return "it requires external power and the device is not charging, and launches once charging is reported"
        case .lowPower:
            return "the device is in low power mode, and launches once lowPowerMode is reported as false"
        case .thermal:
            let way = conditions.thermalState == .serious ? Self.wayOfPush(kind) : ""
            return "the thermal state is \(conditions.thermalState.rawValue), and launches once the device reports "
                + "that it is cooler\(way)"
        case .battery:
            let (level, critical) = (Self.percent(conditions.batteryLevel), Self.percent(parameters.criticalBattery))
            return "the battery is at \(level), below the critical \(critical), and not charging; it launches once "
                + "the device reports more charge or a charger\(Self.wayOfPush(kind))"
        case .usage:
            return "nobody has used the device since \(self.time(self.device.usage.last)), for longer than the "
                + "\(Self.seconds(parameters.usageWindow)) s of usageWindow; it launches after the next use"
        case .priority, .worker: return "no worker has a free slot"
        }
    }

    private static func wayOfPush(_ kind: LaunchKind) -> String {
        kind == .push ? ", or with a push of priority 10" : ""
    }

    /// Why interval and budget keep a launch back until some moment: what goes behind "waits until" and the moment, up
    /// to the full stop.
    private func spacing(_ eligibleAt: Instant, _ priority: Priority) -> String {
        let (state, parameters) = (self.device.state, self.device.parameters)
        if state.spacing.windowCount >= parameters.dailyLaunches,
            state.spacing.windowStart + parameters.budgetWindow == eligibleAt
        {
            return ", because all \(parameters.dailyLaunches) launches of the budget window are used up"
        }
        let isSaving = state.conditions.lowPowerMode && priority < .immediate
        let causes = self.doubled + (isSaving ? ["doubled in low power mode"] : [])
        return ": the last launch was at \(self.time(state.spacing.lastLaunch)), and launches of priority "
            + "\(priority.rawValue) are \(Self.seconds(state.interval(priority, parameters))) s apart"
            + Self.inParentheses(causes)
    }

    /// Why intervals are longer than they were; empty when they are not.
    private var doubled: [String] {
        let penalty = self.device.state.penalty
        return penalty == 0
            ? [] : ["doubled \(penalty) times after wakes that were not completed, until one reports newData"]
    }

    private static func inParentheses(_ causes: [String]) -> String {
        causes.isEmpty ? "" : " (\(causes.joined(separator: "; ")))"
    }

    private static func seconds(_ milliseconds: Int64) -> String { JSONNumber.text(of: Double(milliseconds) / 1000) }

    /// A part of one.
    private static func percent(_ fraction: Double) -> String {
        "\(JSONNumber.text(of: (fraction * 1000).rounded() / 10)) %"
    }
}

// MARK: - Requests and sessions

extension Reasoning {
    /// Says it of a request, or of a session's transfers.
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
            let begin = "\(subject) has been running since \(self.time(launchedAt))"
            guard kind == .continued else {
                return "\(begin), and its worker has until \(self.time(deadline)) to report success or failure."
            }
            return "\(begin), \(self.advance(progress, launchedAt, deadline)), and has until \(self.time(deadline)) to "
                + "advance or end."
        case .waiting(let eligibleAt, let held, let laneIsFull):
            if let hold = held.first, hold != .worker {
                return "\(subject) is held because \(self.cause(of: hold, LaunchKind(kind)))."
            }
            if let eligibleAt { return "\(subject) \(self.waiting(task.task, until: eligibleAt))." }
            return laneIsFull
                ? "\(subject) waits \(self.laneWait(kind.lane))." : "\(subject) is due, but \(self.noSlot(task))."
        }
    }

    /// How far a continued task is, and since when.
    private func advance(_ progress: TaskProgress?, _ launchedAt: Instant, _ deadline: Instant) -> String {
        guard let progress else { return "has told of no progress" }
        let done = progress.total > 0 ? "\(progress.completed) of \(progress.total)" : "\(progress.completed)"
        // An advance is what moved the deadline last, by the window of then.
        let moved = deadline - self.device.parameters.progressWindow
        return moved > launchedAt ? "advanced to \(done) at \(self.time(moved))" : "has told of \(done)"
    }

    private func waiting(_ task: BackgroundTask, until eligibleAt: Instant) -> String {
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

    private func laneWait(_ lane: Lane) -> String {
        let running = self.running(in: lane)
        guard lane != .continued else {
            return "until fewer than \(self.device.parameters.continuedMax) continued tasks of the device are "
                + "running; now those are \(running.map(\.name).joined(separator: ", "))"
        }
        if let (name, deadline) = running.first { return "for \(name) to end, which has until \(self.time(deadline))" }
        guard let push = self.device.state.inFlight else { return "for the wake in flight to end" }
        return "for the wake in flight of a push to end, which has until \(self.time(push.deadline))"
    }

    /// The tasks and sessions of a lane that run, and until when they may.
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

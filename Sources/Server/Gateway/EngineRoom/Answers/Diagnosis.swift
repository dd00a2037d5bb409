package import Engine
import Platform
package import Policy
import Wire

/// The checks that decide if a push or a task can launch, with commands that fix failed checks.
///
/// Without a task, the checks apply to a push of priority 5 that arrives now.
package struct Diagnosis {
    /// A condition for a launch.
    package struct Check: Hashable, Sendable {
        package let name: String
        package let isOK: Bool
        package let detail: String
        /// A command that fixes a failed check; nil if the check passes or no command can fix it.
        package let remedy: String?
    }

    /// The checks that do not prevent a launch when they fail. Such a failure means that an interval applies or is
    /// longer.
    package static let harmless: Set = ["penalty", "allowance"]

    let device: DeviceSnapshot
    /// The outlook of the requested task; nil for a push.
    let task: TaskOutlook?
    let launch: LaunchOutlook
    /// The state of the topic's webhook; nil if there is none.
    let webhook: WebhookStatus?
    /// The workers of the topic.
    let workers: Dispatcher.WorkerCounts
    let reasoning: Reasoning

    /// - `task`: the outlook of a task; nil for a push.
    package init(
        device: DeviceSnapshot,
        task: TaskOutlook?,
        webhook: WebhookStatus?,
        workers: Dispatcher.WorkerCounts,
        now: Instant,
        offset: WallOffset
    ) {
        self.device = device
        self.task = task
        self.launch = task?.launch ?? device.outlook(at: now)
        self.webhook = webhook
        self.workers = workers
        self.reasoning = Reasoning(device: device, offset: offset)
    }

    /// The result: `ready`, `waiting`, `held`, `inFlight` or `unregistered`.
    package var verdict: String {
        guard self.device.isRegistered else { return "unregistered" }
        return self.task?.isPermitted == false ? LaunchOutlook.Verdict.held.rawValue : self.launch.verdict.rawValue
    }

    /// The checks, in the order in which a launch must pass them.
    package var checks: [Check] {
        guard self.device.isRegistered else { return [self.registered] }
        var checks = [self.registered]
        if let task { checks.append(self.permitted(task)) }
        checks += [self.handler, self.slots] + self.holds + [self.lane]
        if let task, [.appRefresh, .processing].contains(task.task.kind) { checks.append(self.earliestBegin(task)) }
        switch self.launch.kind.lane {
        case .short: checks += [self.interval, self.penalty, self.dailyBudget]
        case .processing: checks += [self.processingInterval, self.penalty]
        case .continued: break
        }
        return checks + (self.task == nil ? [self.allowance] : [])
    }

    /// Appends an object.
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.hex("device") { self.device.token.writeHex(to: &$0) }
        writer.member("topic", self.device.topic)
        writer.member("task", self.task?.name)
        writer.member("kind", self.launch.kind.rawValue)
        writer.member("at", self.launch.now, self.reasoning.offset)
        writer.member("verdict", self.verdict)
        let isTimed = self.device.isRegistered && self.task?.isPermitted != false
        writer.member("eligibleAt", isTimed ? self.launch.answeredEligibleAt : nil, self.reasoning.offset)
        writer.array("checks", self.checks) { writer, check in
            writer.beginObject()
            writer.member("check", check.name)
            writer.member("ok", check.isOK)
            writer.member("detail", check.detail)
            writer.member("remedy", check.remedy)
            writer.endObject()
        }
        writer.endObject()
    }
}

// MARK: - Registration and workers

extension Diagnosis {
    private var topic: String { self.device.topic }
    private var token: String { self.device.token.hex }

    private func time(_ moment: Instant) -> String { self.reasoning.time(moment) }

    /// Returns a check. `detail` describes the current state, whether the check passes or fails.
    private func check(_ name: String, _ isOK: Bool, _ detail: String, _ remedy: String? = nil) -> Check {
        Check(name: name, isOK: isOK, detail: detail, remedy: isOK ? nil : remedy)
    }

    private var registered: Check {
        let changed = self.reasoning.pastTime(self.device.registrationChangedAt)
        return self.check(
            "registered",
            self.device.isRegistered,
            self.device.isRegistered
                ? "The device is registered for \(self.topic) since \(changed)."
                : "The device was removed at \(changed), and what is sent to it is refused.",
            "wakegate device register \(self.token) --topic \(self.topic)"
        )
    }

    private func permitted(_ task: TaskOutlook) -> Check {
        self.check(
            "permitted",
            task.isPermitted,
            task.isPermitted
                ? "\(self.topic) permits \(task.name)."
                : "\(self.topic) does not permit \(task.name): add it to topics: { \"\(self.topic)\": { tasks: [...] } "
                    + "} of the configuration, and reload it.",
            "wakegate reload"
        )
    }

    /// The missing subscription, as options of `wakegate worker` and as words.
    private var wanted: (option: String, words: String) {
        guard let task else { return ("", "pushes of this device") }
        let resources = task.target.resources
        let option = " --task \(task.name)" + resources.map { " --resource \($0)" }.joined()
        let needs = resources.isEmpty ? "" : " and offers \(resources.joined(separator: ", "))"
        return (option, "\(task.name) of this device\(needs)")
    }

    private var handler: Check {
        let (option, words) = self.wanted
        let streams = self.workers.connected == 1 ? "1 stream is" : "\(self.workers.connected) streams are"
        let connected = "\(streams) connected for \(self.topic)"
        let takes: String
        switch self.launch.takers {
        case .free, .busy: takes = "one takes \(words)"
        case .none: takes = "none takes \(words)"
        case .unknown: takes = "it is not known here whether one of another gateway takes \(words)"
        }
        return self.check(
            "handler",
            self.launch.takers == .free || self.launch.takers == .busy,
            "\(connected), and \(takes).",
            "wakegate worker --topic \(self.topic)\(option) -- COMMAND"
        )
    }

    private var slots: Check {
        let detail: String
        switch self.launch.takers {
        case .free: detail = "A stream that takes it has a free slot."
        case .none: detail = "No stream takes it."
        case .unknown:
            detail =
                "This gateway knows of no free stream that takes it. It launches at once if a free stream of another "
                + "gateway does."
        case .busy:
            let stalled = self.workers.stallReason.map {
                " Stalled: \(self.workers.stalled), such as that of \($0). Fix its command or handler; a worker that "
                    + "gave wakes back tries again automatically."
            }
            let busy = "Every stream that takes it holds as many wakes as it may, or gets none."
            detail = self.webhook.map { Self.sentence($0.reason(topic: self.topic)) } ?? busy + (stalled ?? "")
        }
        let remedy = "wakegate worker --topic \(self.topic)\(self.wanted.option) --slots 4 -- COMMAND"
        // If workers are stalled, more slots do not help.
        let isRemedy = self.webhook == nil && self.workers.stallReason == nil
        return self.check("slots", self.launch.takers == .free, detail, isRemedy ? remedy : nil)
    }

    static func sentence(_ clause: String) -> String { clause.prefix(1).uppercased() + clause.dropFirst() + "." }
}

// MARK: - Holds

extension Diagnosis {
    private var holds: [Check] {
        let all = self.task == nil ? Hold.ofPushes : Hold.ofTasks
        return all.filter { $0 != .priority && $0 != .worker }.map { hold in
            let isOK = !self.launch.holds.contains(hold)
            let cause = self.reasoning.cause(of: hold, self.launch.kind)
            let detail = isOK ? self.fine(hold) : Self.sentence("\(cause.what), until \(cause.end)")
            return self.check("hold:\(hold.name)", isOK, detail, self.remedy(hold))
        }
    }

    /// Returns a sentence about a hold that does not apply.
    private func fine(_ hold: Hold) -> String {
        let conditions = self.device.state.conditions
        switch hold {
        case .paused: return "\(self.topic) is not paused."
        case .forceQuit, .active: return self.reported("appState", conditions.appState.rawValue)
        case .backgroundRefresh: return self.reported("backgroundRefresh", conditions.backgroundRefresh.rawValue)
        case .network: return self.reported("network", "\(conditions.network)")
        case .power: return self.reported("charging", "\(conditions.charging)")
        case .lowPower: return self.reported("lowPowerMode", "\(conditions.lowPowerMode)")
        case .thermal: return self.reported("thermalState", conditions.thermalState.rawValue)
        case .memory: return self.reported("memoryPressure", conditions.memoryPressure.rawValue)
        case .battery:
            let level = JSONNumber.text(of: conditions.batteryLevel)
            return self.reported("batteryLevel", "\(level) and charging is \(conditions.charging)")
        case .usage:
            let window = self.device.parameters.usageWindow
            let used = self.device.usage.last
            if window == 0 { return "usageWindow is 0, which holds nothing." }
            return used == .distantPast
                ? "No use of the device was ever reported, which holds nothing."
                : "The device was used last at \(self.reasoning.pastTime(used)), "
                    + "within the \(Reasoning.seconds(window)) s of usageWindow."
        case .priority, .worker: return ""
        }
    }

    private func reported(_ name: String, _ value: String) -> String { "\(name) is \(value), which holds nothing." }

    private func remedy(_ hold: Hold) -> String? {
        let report: String
        switch hold {
        case .paused: return "wakegate topic resume \(self.topic)"
        case .forceQuit, .active: report = "appState=background"
        case .backgroundRefresh: report = "backgroundRefresh=available"
        case .network: report = "network=true"
        case .power, .battery: report = "charging=true"
        case .lowPower: report = "lowPowerMode=false"
        case .thermal: report = "thermalState=nominal"
        case .memory: report = "memoryPressure=normal"
        case .usage: report = "appState=active"
        case .priority, .worker: return nil
        }
        return "wakegate device conditions \(self.token) \(report)"
    }
}

// MARK: - Lanes and times

extension Diagnosis {
    private var lane: Check {
        let expire = self.task.map { "wakegate task expire \(self.token) \($0.name)" }
        let isRunning = self.task?.found?.isRunning == true
        let detail: String
        if !self.launch.isInFlight {
            detail = "Nothing is in flight for which it would wait."
        } else if isRunning {
            detail = "The task itself is running."
        } else {
            detail = Self.sentence("it waits \(self.reasoning.laneWait(self.launch.kind.lane))")
        }
        let ofOther = "wakegate device expire \(self.token)"
        let ends = self.launch.kind.lane == .short ? ofOther : nil
        return self.check("lane", !self.launch.isInFlight, detail, isRunning ? expire : ends)
    }

    /// The command that launches the push or task now, regardless of intervals.
    private var now: String? {
        if let task { return task.found == nil ? nil : "wakegate task launch \(self.token) \(task.name)" }
        return self.device.state.pending == nil ? nil : "wakegate device launch \(self.token)"
    }

    /// Checks the earliest begin date. For refreshes, also checks the delay that results from the device's usage.
    private func earliestBegin(_ task: TaskOutlook) -> Check {
        let begin = task.task.waitsSince
        let spaced = self.device.state.eligibleAt(.considerate, self.device.parameters)
        let isPutOff =
            task.task.kind == .appRefresh && self.launch.eligibleAt > max(begin, spaced)
            && self.launch.eligibleAt > self.launch.now
        let detail: String
        if isPutOff {
            detail = Self.sentence("it \(self.reasoning.waiting(task.task, until: self.launch.eligibleAt))")
        } else if begin > self.launch.now {
            detail = "Its earliest beginning is at \(self.time(begin))."
        } else {
            detail = task.found == nil ? "No request waits: one is looked at that is submitted now." : "It may begin."
        }
        return self.check("earliestBegin", begin <= self.launch.now && !isPutOff, detail, self.now)
    }

    private var priority: Priority {
        self.task == nil ? max(.considerate, self.device.state.pending?.priority ?? .passive) : .considerate
    }

    private var interval: Check {
        let (state, parameters) = (self.device.state, self.device.parameters)
        guard state.conditions.appState != .active else {
            return self.check("interval", true, "The device is in use, and no interval applies.")
        }
        let interval = state.interval(self.priority, parameters)
        let from = state.spacedFrom(self.priority, parameters)
        let last = state.spacing.lastLaunch
        let lastTime = self.reasoning.pastTime(last)
        let lastText = last == .distantPast ? "There was no launch yet" : "The last launch was at \(lastTime)"
        if from > self.launch.now, from < last + interval {
            let more = Reasoning.allowance(parameters)
            let detail = "\(lastText), and the allowance of priority 10 has \(more) at \(self.time(from))."
            return self.check("interval", false, detail, self.now)
        }
        let until = from > self.launch.now ? ", so that it waits until \(self.time(from))" : ""
        let detail =
            "\(lastText), and launches of priority \(self.priority.rawValue) are \(Reasoning.seconds(interval)) s "
            + "apart\(until)."
        return self.check("interval", from <= self.launch.now, detail, self.now)
    }

    private var processingInterval: Check {
        guard let from = self.task?.processingFrom else { return self.interval }
        let isOver = from <= self.launch.now
        let detail =
            isOver
            ? "No other processing task of the device was launched lately."
            : "Processing tasks of a device are launched at least "
                + "\(Reasoning.seconds(self.device.parameters.processingInterval)) s apart, so that it waits until "
                + "\(self.time(from))."
        return self.check("interval", isOver, detail, self.now)
    }

    private var penalty: Check {
        let penalty = self.device.state.penalty
        let detail =
            penalty == 0
            ? "Intervals are as the policy says."
            : "Intervals are \(Reasoning.doublings(penalty))."
        return self.check("penalty", penalty == 0, detail, "wakegate stats --device \(self.token)")
    }

    private var dailyBudget: Check {
        let (spacing, parameters) = (self.device.state.spacing, self.device.parameters)
        let end = spacing.windowStart + parameters.budgetWindow
        let isOpen = end > self.launch.now
        let isSpent =
            spacing.windowCount >= parameters.dailyLaunches && isOpen
            && self.device.state.conditions.appState != .active
        let used = "\(isOpen ? spacing.windowCount : 0) of \(parameters.dailyLaunches) launches of the budget window"
        let detail = isSpent ? "\(used) are used up, until \(self.time(end))." : "\(used) are used."
        return self.check("dailyBudget", !isSpent, detail, self.now)
    }

    /// The check of the allowance within which pushes of priority 10 skip the interval.
    private var allowance: Check {
        let (state, parameters) = (self.device.state, self.device.parameters)
        let from = state.spacedFrom(.immediate, parameters)
        let isThere = from <= self.launch.now || state.conditions.appState == .active
        let detail =
            isThere
            ? "A push of priority 10 need not wait for the interval."
            : "The allowance of pushes of priority 10 is used up, until \(self.time(from))."
        return self.check("allowance", isThere, detail)
    }
}

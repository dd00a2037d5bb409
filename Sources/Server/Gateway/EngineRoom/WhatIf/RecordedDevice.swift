import Engine
import Policy
import Wire

/// The recorded pushes and tasks of one device, as a trace for the simulator, and their outcomes.
///
/// The history does not record the earliest begin dates of requests. If a request was pending although the policy
/// permitted its launch, the reason may have been its begin date, a hold or a missing worker. In the trace, its
/// earliest begin date is the time at which its wait ended.
struct RecordedDevice {
    /// The maximum usual time between the permission of a launch by the policy and the launch, in milliseconds.
    private static let latenessMax: Int64 = 1000

    /// A wake that was launched and has not ended yet.
    private struct OpenWake {
        let launchedAt: Instant
        var wasExtended = false
    }

    /// The device's policy that is in effect now.
    private let parameters: Parameters
    private let token: String
    private let offset: WallOffset
    /// The events of the trace. Their times are relative to `beginning`.
    private(set) var events: [TraceEvent] = []
    /// The time of the first event; nil if there is none.
    private(set) var beginning: Instant?
    private(set) var outcome = ReplayOutcome()
    /// The number of pushes that could wake the device.
    private(set) var pushes = 0
    /// The number of pushes whose priority and lifetime were not recorded.
    private(set) var assumed = 0
    /// The number of requests and of reports about finished transfers.
    private(set) var tasks = 0
    /// The number of reports of conditions whose values were not recorded.
    private(set) var conditionReports = 0
    private var header = TraceHeader()
    private var pushSteps: [WorkerScript.Step] = []
    private var taskSteps: [String: [TaskScript.Step]] = [:]
    /// The wakes in flight, by task or session. The key nil stands for the wake of a push.
    private var open: [OutcomeLine.Subject?: OpenWake] = [:]
    /// The indices in `events` of the pending requests, by name.
    private var waiting: [String: Int] = [:]
    /// The time from which the policy permits the next launch of a lane; the distant future while a wake of the lane is
    /// in flight.
    private var freeFrom: [Lane: Instant] = [:]
    private var penalty: Int64 = 0
    /// True if the last recorded report says that the device is in use.
    private var isActive = false

    /// - `recent`: the latest events of the device, the newest first.
    /// - `now`: the end of the period. Requests that are still pending have waited until then.
    init(_ token: String, recent: [HistoryEntry], _ parameters: Parameters, until now: Instant, _ offset: WallOffset) {
        self.token = token
        self.parameters = parameters
        self.offset = offset
        for entry in recent.reversed() { self.append(entry) }
        for identifier in Array(self.waiting.keys) { self.stopsWaiting(identifier, at: now + 1) }
        self.outcome.finish(at: offset.wall(now))
        self.header.until = Instant(milliseconds: max(0, now.milliseconds - (self.beginning ?? now).milliseconds))
        if !self.pushSteps.isEmpty { self.header.worker = WorkerScript(steps: self.pushSteps) }
        self.header.tasks = self.taskSteps.mapValues { TaskScript(steps: $0) }
    }

    /// Returns the header of the trace: the current policy with `changes`, and the results of workers.
    func header(_ changes: [PolicyChange] = []) -> TraceHeader {
        var header = self.header
        header.parameters = PolicyParameter.allCases.map { ($0, $0.value(in: self.parameters)) } + changes
        return header
    }

    private mutating func append(_ entry: HistoryEntry) {
        let (event, wall) = (entry.event, self.offset.wall(entry.event.at))
        switch event.kind {
        case .push(.noWake), .registered, .removed, .taskRefused, .worker, .subscribed, .namePart,
            .discard(_, .replaced):
            break
        case .push(let disposition):
            self.pushes += 1
            if event.terms == nil { self.assumed += 1 }
            self.appendPush(event)
            self.outcome.pushReceived(at: wall, isDiscarded: disposition == .discarded)
        case .discard(.push, _): self.outcome.pushDiscarded(at: wall)
        case .conditions:
            guard let changed = event.changed else {
                self.conditionReports += 1
                break
            }
            self.isActive = changed.appState.map { $0 == .active } ?? self.isActive
            self.append(.conditions(changed), at: event.at)
        case .taskSubmitted(let kind, _): self.submitted(kind, entry.subject(kind), event.at)
        case .transfersFinished(let count):
            let subject = entry.subject(.urlSession)
            self.tasks += 1
            self.append(.finished(session: subject.name, count: UInt64(max(1, count))), at: event.at)
            self.outcome.taskSubmitted(subject, at: wall)
        case .launch(let kind, let attempt, let coalesced):
            let subject = kind.task.map { entry.subject($0) }
            if let subject {
                self.stopsWaiting(subject.name, at: event.at)
                self.outcome.taskLaunched(subject, at: wall)
            } else {
                self.outcome.launched(at: wall, attempt: Int(attempt), coalesced: Int(coalesced))
            }
            self.open[subject] = OpenWake(launchedAt: event.at)
            self.freeFrom[kind.lane] = .distantFuture
        case .extended(let kind, _): self.open[kind.task.map { entry.subject($0) }]?.wasExtended = true
        case .result(let outcome): self.ended(outcome, outcome.kind.task.map { entry.subject($0) }, event)
        case .discard(let kind, let reason):
            let subject = entry.subject(kind.task ?? .urlSession)
            if case .task(let identifier) = subject, reason != .exhausted {
                self.stopsWaiting(identifier, at: event.at + 1)
                self.append(.cancel(identifier), at: event.at)
            }
            self.outcome.taskDiscarded(subject, at: wall)
        }
    }

    private mutating func append(_ kind: TraceEvent.Kind, at moment: Instant) {
        self.events.append(TraceEvent(moment: self.time(moment), device: self.token, kind: kind))
    }

    /// Returns the time in the trace. It is never earlier than that of the previous event.
    private mutating func time(_ moment: Instant) -> Instant {
        let beginning = self.beginning ?? moment
        self.beginning = beginning
        let time = Instant(milliseconds: moment.milliseconds - beginning.milliseconds)
        return max(time, self.events.last?.moment ?? Instant(milliseconds: 0))
    }

    private mutating func appendPush(_ event: HistoryEvent) {
        let moment = self.time(event.at)
        let expiration: Expiration =
            switch event.terms?.lifetime ?? .unlimited {
            case .unlimited: .absent
            case .nowOrNever: .nowOrNever
            case .seconds(let lifetime): .at(Instant(milliseconds: max(1, moment.milliseconds + lifetime * 1000)))
            }
        let push = TracePush(
            apnsID: String(self.pushes - 1),
            priority: event.terms?.priority ?? .considerate,
            expiration: expiration
        )
        self.append(.push(push), at: event.at)
    }

    // MARK: Tasks

    private mutating func submitted(_ kind: TaskKind, _ subject: OutcomeLine.Subject, _ moment: Instant) {
        self.tasks += 1
        self.stopsWaiting(subject.name, at: moment + 1)
        self.outcome.taskSubmitted(subject, at: self.offset.wall(moment))
        var request = TraceRequest(identifier: subject.name, kind: .appRefresh)
        switch kind {
        case .appRefresh, .urlSession: break
        case .processing: request.kind = .processing([])
        case .continued:
            // The gateway accepts a request of this kind only while the device is in use.
            request.kind = .continued(.queue)
            if !self.isActive { self.reportAppState(.active, at: moment) }
        }
        self.waiting[subject.name] = self.events.count
        self.append(.submit(request), at: moment)
        if kind == .continued, !self.isActive { self.reportAppState(.background, at: moment) }
    }

    private mutating func reportAppState(_ state: Conditions.AppState, at moment: Instant) {
        var report = ConditionsReport()
        report.appState = state
        self.append(.conditions(report), at: moment)
    }

    /// Ends the wait of a request. If the policy permitted an earlier launch, sets `moment` as the earliest begin date.
    private mutating func stopsWaiting(_ identifier: String, at moment: Instant) {
        guard let place = self.waiting.removeValue(forKey: identifier),
            case .submit(var request) = self.events[place].kind, let beginning = self.beginning
        else { return }
        let lane = request.kind.taskKind.lane
        let submittedAt = beginning + self.events[place].moment.milliseconds
        let free = max(submittedAt, self.freeFrom[lane] ?? .distantPast)
        guard lane != .continued, moment > free + Self.latenessMax else { return }
        request.earliestBegin = Instant(milliseconds: moment.milliseconds - beginning.milliseconds)
        self.events[place].kind = .submit(request)
    }

    // MARK: Ends

    private mutating func ended(_ outcome: LaunchOutcome, _ subject: OutcomeLine.Subject?, _ event: HistoryEvent) {
        let wake = self.open.removeValue(forKey: subject)
        let lane = outcome.kind.lane
        let delay = max(0, event.at.milliseconds - (wake?.launchedAt ?? event.at).milliseconds)
        switch outcome {
        case .push(let result):
            if wake != nil {
                let answer = PushScriptAnswer(rawValue: result.rawValue) ?? .none
                self.pushSteps.append(WorkerScript.Step(answer: answer, delay: self.answered(wake, lane, delay)))
                self.outcome.ended(result, isDiscarded: event.related == nil)
            }
            self.penalize(isExpired: result == .expired, isSuccess: result == .newData)
        case .task(let kind, let result):
            guard let subject else { return }
            // Treat an interruption or a cancellation as a failure, which has no effect on later launches.
            let answer = TaskScriptAnswer(rawValue: result.rawValue) ?? (result == .expired ? .none : .failure)
            var step = TaskScript.Step(answer: answer, delay: self.answered(wake, lane, delay))
            if kind == .continued {
                // The history does not record progress, so the script reports it often enough for the recorded
                // duration.
                step.advance = max(1, self.parameters.progressWindow / 2)
                if answer == .none { step.delay = max(0, delay - self.parameters.progressWindow) + 1 }
            }
            if wake != nil { self.taskSteps[subject.name, default: []].append(step) }
            self.outcome.taskEnded(subject, result)
            guard kind != .continued else { return }
            self.penalize(isExpired: result == .expired, isSuccess: result == .success)
        }
        let isLost = outcome == .push(.lost) || subject != nil && outcome.name == TaskOutcome.lost.rawValue
        let next = isLost ? event.at : (wake?.launchedAt ?? event.at) + self.interval(lane)
        self.freeFrom[lane] = max(next, event.at)
    }

    /// Returns the delay of a worker's answer. The delay for an extended wake is limited to the usual deadline, because
    /// the simulator does not extend wakes.
    private func answered(_ wake: OpenWake?, _ lane: Lane, _ delay: Int64) -> Int64 {
        guard wake?.wasExtended == true else { return delay }
        let window = lane == .processing ? self.parameters.processingWindow : self.parameters.executionWindow
        return min(delay, window - 1)
    }

    private mutating func penalize(isExpired: Bool, isSuccess: Bool) {
        if isSuccess { self.penalty = 0 }
        if isExpired { self.penalty = min(self.penalty + 1, Int64(self.parameters.maxPenalty)) }
    }

    /// Returns the minimum time between two launches of a lane, in milliseconds.
    private func interval(_ lane: Lane) -> Int64 {
        guard lane != .continued else { return 0 }
        let minimum = lane == .short ? self.parameters.launchInterval : self.parameters.processingInterval
        return min(minimum << self.penalty, max(minimum, self.parameters.maxInterval))
    }
}

extension HistoryEntry {
    /// Returns the task or session of the event. If the history no longer has the name, returns the kind's name.
    fileprivate func subject(_ kind: TaskKind) -> OutcomeLine.Subject {
        let name = self.name ?? kind.rawValue
        return kind == .urlSession ? .session(name) : .task(name)
    }
}

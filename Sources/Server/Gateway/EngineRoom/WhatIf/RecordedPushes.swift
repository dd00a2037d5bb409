import Engine
import Policy
import Wire

/// The pushes of one device as recorded by the history, and their outcomes.
struct RecordedPushes {
    /// A push that could wake the device.
    struct Push {
        let at: Instant
        /// The terms of the push; nil if the history was written before terms were recorded.
        let terms: PushTerms?
    }

    /// The result of a wake.
    struct Answer {
        let outcome: WakeOutcome
        /// The time after its launch, in milliseconds.
        let delay: Int64
        /// True if the worker extended the wake.
        let wasExtended: Bool
    }

    private(set) var pushes: [Push] = []
    private(set) var answers: [Answer] = []
    /// The number of reports about conditions; the history does not record their contents.
    private(set) var conditionReports = 0
    private(set) var outcome = ReplayOutcome()
    private var launchedAt: Instant?
    private var wasExtended = false

    /// - Parameters:
    ///   - recent: the recent events of the device, the newest first.
    ///   - now: the end of the period, up to which pending pushes have waited.
    init(recent: [HistoryEvent], until now: Instant, _ offset: WallOffset) {
        for event in recent.reversed() { self.append(event, at: offset.wall(event.at)) }
        self.outcome.finish(at: offset.wall(now))
    }

    private mutating func append(_ event: HistoryEvent, at wall: Int64) {
        switch event.kind {
        case .push(.noWake), .registered, .removed, .taskSubmitted, .transfersFinished, .namePart: break
        case .push(let disposition):
            self.pushes.append(Push(at: event.at, terms: event.terms))
            self.outcome.pushReceived(at: wall, isDiscarded: disposition == .discarded)
        case .launch(.push, let attempt, let coalesced):
            self.launchedAt = event.at
            self.wasExtended = false
            self.outcome.launched(at: wall, attempt: Int(attempt), coalesced: Int(coalesced))
        case .result(.push(let result)):
            if let launchedAt = self.launchedAt {
                let delay = max(0, event.at.milliseconds - launchedAt.milliseconds)
                self.answers.append(Answer(outcome: result, delay: delay, wasExtended: self.wasExtended))
                self.outcome.ended(result, isDiscarded: event.related == nil)
            }
            self.launchedAt = nil
        case .discard(.push, _): self.outcome.pushDiscarded(at: wall)
        case .conditions: self.conditionReports += 1
        case .extended(.push, _): self.wasExtended = true
        // The outcomes of tasks are not used.
        case .launch, .result, .discard, .extended: break
        }
    }
}

import HTTPClient

/// When the progress of a continued task is told: what is newest, at once, then four times a second at most, and what
/// was last in any case, before the result.
///
/// Pure: moments are milliseconds on the caller's clock, and randomness comes in.
package struct ProgressStateMachine: Sendable {
    private enum State: Hashable, Sendable {
        /// No report is on its way. Can move to: telling, over.
        case quiet
        /// A report is on its way. Can move to: quiet, over.
        case telling
        /// The gateway takes no more. Terminal.
        case over
    }

    /// Milliseconds between two reports.
    package static let interval: Int64 = 250
    /// How long a result waits for the last report, in milliseconds.
    package static let lastReportPatience: Int64 = 5000

    private var state = State.quiet
    /// Whether there is something that the gateway does not have.
    private var isBehind = false
    private var tellsAt = Int64.min
    /// Until when the result waits; nil while the handler runs.
    private var resultWaitsUntil: Int64?
    /// Whether the last report that was answered for had not arrived.
    private var hasFailed = false
    private var backoff = Backoff(firstMilliseconds: 500, lastMilliseconds: 5000)

    package init() {}

    /// Whether the handler has ended, and its result waits for the last report.
    package var holdsResult: Bool {
        self.resultWaitsUntil != nil && (self.state == .telling || (self.state == .quiet && self.isBehind))
    }

    /// When `momentReached` has something to say; nil for never.
    package var nextMoment: Int64? {
        switch self.state {
        case .over: nil
        case .telling: self.resultWaitsUntil
        case .quiet: self.isBehind ? min(self.tellsAt, self.resultWaitsUntil ?? .max) : nil
        }
    }
}

// MARK: - Events

extension ProgressStateMachine {
    /// The handler has come further, or shows other texts.
    package mutating func changed() { self.isBehind = true }

    /// The handler has ended: what it has said last is told at once.
    package mutating func handlerEnded(now: Int64) {
        self.resultWaitsUntil = now + Self.lastReportPatience
        // A gateway that did not take the report before is given its time.
        if !self.hasFailed { self.tellsAt = now }
    }

    /// The result is to wait no longer.
    package mutating func abandoned() { self.state = .over }

    package enum MomentReachedAction: Hashable, Sendable {
        case nothing
        case tell
        /// The last report has not arrived in time: the result goes without it.
        case giveUp
    }

    package mutating func momentReached(now: Int64) -> MomentReachedAction {
        guard let moment = self.nextMoment, moment <= now else { return .nothing }
        if let end = self.resultWaitsUntil, end <= now {
            self.state = .over
            return .giveUp
        }
        guard self.state == .quiet else { return .nothing }
        self.state = .telling
        self.isBehind = false
        self.tellsAt = now + Self.interval
        return .tell
    }

    /// What came of a report.
    package enum Answer: Hashable, Sendable {
        case accepted
        /// The gateway will take no report of the wake.
        case refused
        /// The report may not have arrived; the gateway wants to be left alone for so many milliseconds at least.
        case failed(retryAfter: Int64)
    }

    package mutating func answered(
        _ answer: Answer,
        now: Int64,
        using generator: inout some RandomNumberGenerator
    ) {
        guard self.state == .telling else { return }
        switch answer {
        case .accepted:
            self.state = .quiet
            self.hasFailed = false
            self.backoff.succeeded()
        case .refused: self.state = .over
        case .failed(let retryAfter):
            self.state = .quiet
            // By then there may be something newer, which is told instead.
            self.isBehind = true
            self.hasFailed = true
            let wait = max(Int64(self.backoff.failed(using: &generator)), retryAfter)
            self.tellsAt = max(self.tellsAt, now + wait)
        }
    }
}

package import HTTPClient
package import Wire

/// The state machine of one wake at a worker, from its arrival until its result is confirmed or abandoned.
///
/// All times are milliseconds on the caller's clock, and the caller supplies randomness.
package struct WakeStateMachine: Sendable {
    /// The reason why a wake ended at the gateway before its result arrived.
    package enum Ending: Hashable, Sendable {
        case expired, lost
    }

    private enum State: Hashable, Sendable {
        /// The wake waits for a free handler. Can move to: running, over.
        case queued
        /// The handler runs. Can move to: expiring, stopping, sending, over.
        case running
        /// The deadline is near and the handler was cancelled. Its result still counts. Can move to: stopping, sending,
        /// over.
        case expiring
        /// The wake ended at the gateway and the handler was cancelled. Can move to: sending, over.
        case stopping(Ending)
        /// The result is being sent. Can move to: pausing, over.
        case sending(BackgroundFetchResult)
        /// The result could not be delivered and is sent again at `until`. Can move to: sending, over.
        case pausing(BackgroundFetchResult, until: Int64)
        /// The wake is finished. Terminal.
        case over
    }

    /// The time after the deadline, in milliseconds, in which the worker still tries to deliver a result. A late result
    /// does not count, but it shows the gateway that the stream is alive.
    package static let lateMax: Int64 = 60_000
    /// The maximum number of tries to deliver a result that no longer counts.
    package static let lateTriesMax = 2

    private var state = State.queued
    package private(set) var deadline: Int64
    private var hasEnded = false
    /// The time at which the worker asked the gateway if the wake has more time; nil if it did not ask.
    private var askedAt: Int64?
    /// The maximum difference between the deadlines at the worker and at the gateway, in milliseconds. Latency makes
    /// the worker's deadline later.
    static let tolerance: Int64 = 500
    private var lateTries = 0
    private var backoff: Backoff
    private let grace: Int64

    /// - `deadline`: the time at which the gateway ends the wake.
    package init(deadline: Int64, timing: WorkerTiming = WorkerTiming()) {
        self.deadline = deadline
        self.grace = timing.grace
        self.backoff = timing.resultBackoff
    }

    package var isOver: Bool { self.state == .over }

    package var isQueued: Bool { self.state == .queued }

    /// True if the wake runs and the gateway still expects its result.
    package var isRunning: Bool { self.state == .running || self.state == .expiring }

    /// The time of the next call of `momentReached`; nil for never.
    package var nextMoment: Int64? {
        switch self.state {
        case .queued, .running, .expiring: (self.askedAt ?? self.deadline) + self.grace
        case .pausing(_, let until): until
        case .stopping, .sending, .over: nil
        }
    }
}

// MARK: - Events

extension WakeStateMachine {
    package mutating func handlerStarted() {
        precondition(self.state == .queued, "a wake is started once")
        self.state = .running
    }

    /// Records that the gateway extended the deadline.
    package mutating func extended(to deadline: Int64) {
        if deadline > self.deadline { self.askedAt = nil }
        self.deadline = max(self.deadline, deadline)
    }

    /// Records the gateway's warning that a deadline is near.
    ///
    /// - Returns: true if the caller must cancel the handler. False if no handler runs, or if the deadline was extended
    ///   after the warning.
    package mutating func deadlineNears(_ deadline: Int64) -> Bool {
        guard self.state == .running, deadline + Self.tolerance >= self.deadline else { return false }
        self.extended(to: deadline)
        self.state = .expiring
        return true
    }

    /// Records that the gateway granted no more time, or did not answer the request.
    package mutating func gotNoTime() -> Action { self.askedAt == nil ? .nothing : self.ended(.expired) }

    /// Records that the wake continues at the gateway, but its deadline is unknown. The worker asks again after the
    /// grace.
    package mutating func continues(now: Int64) {
        guard self.askedAt != nil else { return }
        self.askedAt = nil
        self.deadline = max(self.deadline, now)
    }

    /// An action for the caller.
    package enum Action: Hashable, Sendable {
        case nothing
        /// Send the handler's result.
        case send(BackgroundFetchResult)
        case cancelHandler
        /// Ask the gateway for a short extension.
        case ask
        /// Remove the wake: its handler was never started, or its result does not count.
        case forget
        /// Report that the gateway has the result.
        case delivered(BackgroundFetchResult)
        /// Report that the result was refused, or could not be delivered.
        case dropped(BackgroundFetchResult)
    }

    /// Records that the gateway ended the wake, or that the stream broke.
    package mutating func ended(_ ending: Ending) -> Action {
        self.hasEnded = true
        switch self.state {
        case .queued:
            self.state = .over
            return .forget
        case .running, .expiring:
            self.state = .stopping(ending)
            return .cancelHandler
        case .stopping, .sending, .pausing, .over: return .nothing
        }
    }

    /// - Parameter result: the handler's result; nil if it threw an error.
    package mutating func handlerEnded(_ result: BackgroundFetchResult?) -> Action {
        switch (self.state, result) {
        case (.stopping(.lost), nil), (.queued, _), (.sending, _), (.pausing, _), (.over, _):
            // The gateway gives a lost wake to another worker. If a failure were reported, it would cost the push an
            // attempt.
            self.state = .over
            return .forget
        case (.running, let result), (.expiring, let result), (.stopping, let result):
            // A late result is sent, too, because it shows the gateway that a slow stream is alive.
            let result = result ?? .failed
            self.state = .sending(result)
            return .send(result)
        }
    }

    /// The outcome of sending a result or a progress report.
    package enum Answer: Hashable, Sendable {
        /// The gateway has received it.
        case accepted
        /// The gateway will never accept it, nor a later progress report of the wake.
        case refused
        /// The gateway may not have received it. The gateway requests a wait of at least `retryAfter` milliseconds.
        case failed(retryAfter: Int64)
    }

    /// Records the outcome of sending the result. After a failure, `nextMoment` is the time of the next try.
    package mutating func answered(
        _ answer: Answer,
        now: Int64,
        using generator: inout some RandomNumberGenerator
    ) -> Action {
        guard case .sending(let result) = self.state else { return .nothing }
        switch answer {
        case .accepted:
            self.state = .over
            return .delivered(result)
        case .refused:
            self.state = .over
            return .dropped(result)
        case .failed(let retryAfter):
            if self.hasEnded { self.lateTries += 1 }
            let moment = now + Int64(self.backoff.failed(using: &generator)) + max(0, retryAfter)
            guard self.lateTries < Self.lateTriesMax, moment < self.deadline + Self.lateMax else {
                self.state = .over
                return .dropped(result)
            }
            self.state = .pausing(result, until: moment)
            return .nothing
        }
    }

    package mutating func momentReached(now: Int64) -> Action {
        guard let moment = self.nextMoment, moment <= now else { return .nothing }
        switch self.state {
        case .running where self.askedAt == nil, .expiring where self.askedAt == nil:
            self.askedAt = now
            return .ask
        case .queued, .running, .expiring: return self.ended(.expired)
        case .pausing(let result, _):
            self.state = .sending(result)
            return .send(result)
        case .stopping, .sending, .over: return .nothing
        }
    }

    /// Ends the wake when the worker ends.
    ///
    /// - Returns: the result that the gateway has not confirmed; nil if there is none.
    package mutating func givenUp() -> BackgroundFetchResult? {
        defer { self.state = .over }
        return switch self.state {
        case .sending(let result), .pausing(let result, _): result
        case .queued, .running, .expiring, .stopping, .over: nil
        }
    }
}

/// The callers that keep a wake alive, and the time of the next request for more time. All times are milliseconds on
/// the caller's clock.
package struct KeepAlive: Hashable, Sendable {
    /// The duration that each request asks for, in milliseconds.
    package static let extensionLength: Int64 = 30_000
    /// The wait after a request that got no answer, in milliseconds.
    package static let retry: Int64 = 1000

    private var holders = 0
    private var isAsking = false
    private var isRefused = false
    private var askAt: Int64?

    /// Creates a state without callers.
    package init() {}

    /// The time of the next call of `momentReached`; nil for never.
    package var nextMoment: Int64? { self.holders > 0 && !self.isAsking && !self.isRefused ? self.askAt : nil }

    package mutating func begun(deadline: Int64) {
        self.holders += 1
        if self.holders == 1 { self.askAt = deadline - Self.extensionLength / 2 }
    }

    package mutating func ended() {
        self.holders = max(0, self.holders - 1)
    }

    /// - Returns: true if the caller must request more time.
    package mutating func momentReached(now: Int64) -> Bool {
        guard let moment = self.nextMoment, moment <= now else { return false }
        self.isAsking = true
        return true
    }

    /// Records that the gateway granted more time to this request or to another one.
    package mutating func extended(to deadline: Int64) {
        self.isAsking = false
        self.askAt = deadline - Self.extensionLength / 2
    }

    /// Records that a request received no answer.
    package mutating func unanswered(now: Int64) {
        self.isAsking = false
        self.askAt = now + Self.retry
    }

    /// Records that the gateway grants no more time.
    package mutating func refused() {
        self.isAsking = false
        self.isRefused = true
    }
}

/// The state machine that determines when a worker subscribes again after returned wakes. After three in a row, a
/// gateway sends no more wakes on the stream.
///
/// All times are milliseconds on the caller's clock, and the caller supplies randomness.
package struct ReleaseStateMachine: Sendable {
    /// The number of returned wakes in a row after which a gateway considers a stream stalled.
    package static let releasesMax = 3

    private var releases = 0
    private var backoff: Backoff
    /// The time at which the worker subscribes again; nil for never.
    package private(set) var renewAt: Int64?

    /// Creates the state of a stream without returned wakes.
    package init(backoff: Backoff = Backoff(firstMilliseconds: 2000, lastMilliseconds: 60_000)) {
        self.backoff = backoff
    }

    /// Records that the gateway accepted the return of a wake.
    package mutating func released(now: Int64, using generator: inout some RandomNumberGenerator) {
        self.releases += 1
        guard self.releases >= Self.releasesMax, self.renewAt == nil else { return }
        self.renewAt = now + Int64(self.backoff.failed(using: &generator))
    }

    /// Records that the gateway accepted a result. The stream is then not stalled.
    package mutating func answered() {
        self.streamEnded()
        self.backoff.succeeded()
    }

    /// Records that the stream ended. The next stream starts without returned wakes.
    package mutating func streamEnded() {
        self.releases = 0
        self.renewAt = nil
    }
}

/// The kinds of wakes that had no handler. Each kind is reported once.
package struct RefusedKinds: Sendable {
    /// The maximum number of stored kinds. It is limited because a peer may invent kinds.
    package static let countMax = 16

    private var said: Set<WakeKind> = []

    package init() {}

    /// Records that a wake of `kind` was refused.
    ///
    /// - Returns: true if this should be reported.
    package mutating func isFirst(_ kind: WakeKind) -> Bool {
        self.said.count < Self.countMax && self.said.insert(kind).inserted
    }
}

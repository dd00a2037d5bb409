package import HTTPClient
package import Wire

/// One wake in a worker's hands: from its arrival to the moment its result is known to have arrived, or too late.
///
/// Pure: moments are milliseconds on the caller's clock, and randomness comes in.
package struct WakeStateMachine: Sendable {
    /// Why a wake ended at the gateway before its result came.
    package enum Ending: Hashable, Sendable {
        case expired, lost
    }

    private enum State: Hashable, Sendable {
        /// No handler is free for it yet. Can move to: running, over.
        case queued
        /// The wake's handler runs. Can move to: expiring, stopping, sending, over.
        case running
        /// The wake's deadline is near, and its handler was cancelled; its result counts still. Can move to: stopping,
        /// sending, over.
        case expiring
        /// The wake ended at the gateway, and its handler was cancelled. Can move to: sending, over.
        case stopping(Ending)
        /// The wake's result is on its way. Can move to: pausing, over.
        case sending(BackgroundFetchResult)
        /// The wake's result could not be delivered, and is sent again then. Can move to: sending, over.
        case pausing(BackgroundFetchResult, until: Int64)
        /// Nothing is left to do. Terminal.
        case over
    }

    /// The gateway says when a wake has expired. If it has not so many milliseconds after the deadline, the worker asks
    /// it for more time, as the wake's command may have done, and takes the wake as expired after as many again.
    package static let expirationGrace: Int64 = 2000
    /// How long after its deadline a result is still tried to be delivered, in milliseconds: the gateway counts none
    /// by then, but takes it as a sign of life.
    package static let lateMax: Int64 = 60_000
    /// How often a result is sent that no longer counts.
    package static let lateTriesMax = 2

    private var state = State.queued
    package private(set) var deadline: Int64
    private var hasEnded = false
    /// When the gateway was asked if the wake has more time; nil when it was not.
    private var askedAt: Int64?
    /// The most that a deadline may seem later here than at the gateway, in milliseconds: answers take their time.
    private static let tolerance: Int64 = 500
    private var lateTries = 0
    private var backoff: Backoff
    private let grace: Int64

    /// - Parameters:
    ///   - deadline: when the gateway ends it.
    ///   - grace: how long the gateway may say nothing after the deadline, in milliseconds.
    ///   - backoff: the waits between two tries to deliver the result.
    package init(
        deadline: Int64,
        grace: Int64 = Self.expirationGrace,
        backoff: Backoff = Backoff(firstMilliseconds: 200, lastMilliseconds: 5000)
    ) {
        self.deadline = deadline
        self.grace = grace
        self.backoff = backoff
    }

    package var isOver: Bool { self.state == .over }

    package var isQueued: Bool { self.state == .queued }

    /// Whether the wake runs, and the gateway still waits for its result.
    package var isRunning: Bool { self.state == .running || self.state == .expiring }

    /// When `momentReached` has something to say; nil for never.
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

    /// The gateway gave it until `deadline`.
    package mutating func extended(to deadline: Int64) {
        if deadline > self.deadline { self.askedAt = nil }
        self.deadline = max(self.deadline, deadline)
    }

    /// The gateway said that this deadline is near.
    ///
    /// - Returns: whether the handler is to be cancelled; false when it does not run, or has more time by now.
    package mutating func deadlineNears(_ deadline: Int64) -> Bool {
        guard self.state == .running, deadline + Self.tolerance >= self.deadline else { return false }
        self.extended(to: deadline)
        self.state = .expiring
        return true
    }

    /// The gateway was asked for more time, and gave none, or did not answer.
    package mutating func gotNoTime() -> EndedAction { self.askedAt == nil ? .nothing : self.ended(.expired) }

    package enum EndedAction: Hashable, Sendable {
        case nothing
        case cancelHandler
        /// The wake's handler was never started.
        case forget
    }

    /// The gateway said that its time is over, or its stream broke.
    package mutating func ended(_ ending: Ending) -> EndedAction {
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

    package enum HandlerEndedAction: Hashable, Sendable {
        case send(BackgroundFetchResult)
        case forget
    }

    /// - Parameter result: nil when the handler threw.
    package mutating func handlerEnded(_ result: BackgroundFetchResult?) -> HandlerEndedAction {
        switch (self.state, result) {
        case (.stopping(.lost), nil), (.queued, _), (.sending, _), (.pausing, _), (.over, _):
            // The gateway gives a lost wake to another worker; to call it failed would cost the push an attempt.
            self.state = .over
            return .forget
        case (.running, let result), (.expiring, let result), (.stopping, let result):
            // After an expiration, too: a stream that answers late is not taken for a dead one.
            let result = result ?? .failed
            self.state = .sending(result)
            return .send(result)
        }
    }

    /// What came of a result that was sent.
    package enum Answer: Hashable, Sendable {
        /// The gateway has it.
        case accepted
        /// The gateway will never take it.
        case refused
        /// The result may not have arrived; the gateway wants to be left alone for so many milliseconds at least.
        case failed(retryAfter: Int64)
    }

    package enum AnsweredAction: Hashable, Sendable {
        case nothing
        case delivered(BackgroundFetchResult)
        case dropped(BackgroundFetchResult)
        case retry(at: Int64)
    }

    package mutating func answered(
        _ answer: Answer,
        now: Int64,
        using generator: inout some RandomNumberGenerator
    ) -> AnsweredAction {
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
            return .retry(at: moment)
        }
    }

    package enum MomentReachedAction: Hashable, Sendable {
        case nothing
        case send(BackgroundFetchResult)
        case cancelHandler
        case forget
        /// The gateway is to be asked for a little more time.
        case ask
    }

    package mutating func momentReached(now: Int64) -> MomentReachedAction {
        guard let moment = self.nextMoment, moment <= now else { return .nothing }
        switch self.state {
        case .running where self.askedAt == nil, .expiring where self.askedAt == nil:
            self.askedAt = now
            return .ask
        case .queued, .running, .expiring:
            switch self.ended(.expired) {
            case .nothing: return .nothing
            case .cancelHandler: return .cancelHandler
            case .forget: return .forget
            }
        case .pausing(let result, _):
            self.state = .sending(result)
            return .send(result)
        case .stopping, .sending, .over: return .nothing
        }
    }

    /// The worker ends, and waits for nothing more.
    ///
    /// - Returns: the result that is not known to have arrived.
    package mutating func givenUp() -> BackgroundFetchResult? {
        defer { self.state = .over }
        return switch self.state {
        case .sending(let result), .pausing(let result, _): result
        case .queued, .running, .expiring, .stopping, .over: nil
        }
    }
}

/// Who wants a wake to be kept alive, and when more time is asked for next. Milliseconds on the caller's clock.
package struct KeepAlive: Hashable, Sendable {
    /// How much time is asked for at once.
    package static let extensionLength: Int64 = 30_000
    /// How long until another try after one that brought no answer.
    package static let retry: Int64 = 1000

    private var holders = 0
    private var isAsking = false
    private var isRefused = false
    private var askAt: Int64?

    /// Nobody wants it to be kept alive yet.
    package init() {}

    /// When `momentReached` is due; nil for never.
    package var nextMoment: Int64? { self.holders > 0 && !self.isAsking && !self.isRefused ? self.askAt : nil }

    package mutating func begun(deadline: Int64) {
        self.holders += 1
        if self.holders == 1 { self.askAt = deadline - Self.extensionLength / 2 }
    }

    package mutating func ended() {
        self.holders = max(0, self.holders - 1)
    }

    /// - Returns: whether more time is to be asked for.
    package mutating func momentReached(now: Int64) -> Bool {
        guard let moment = self.nextMoment, moment <= now else { return false }
        self.isAsking = true
        return true
    }

    /// The gateway gave more time, whoever asked.
    package mutating func extended(to deadline: Int64) {
        self.isAsking = false
        self.askAt = deadline - Self.extensionLength / 2
    }

    /// No answer came.
    package mutating func unanswered(now: Int64) {
        self.isAsking = false
        self.askAt = now + Self.retry
    }

    /// The gateway gives no more.
    package mutating func refused() {
        self.isAsking = false
        self.isRefused = true
    }
}

/// When a worker subscribes again because its wakes cannot begin: a gateway gives a stream no more wakes after three in
/// a row that were given back.
///
/// Pure: moments are milliseconds on the caller's clock, and randomness comes in.
package struct ReleaseStateMachine: Sendable {
    /// The number of wakes in a row after which a gateway takes a stream for stalled.
    package static let releasesMax = 3

    private var releases = 0
    private var backoff: Backoff
    /// When to subscribe again; nil for never.
    package private(set) var renewAt: Int64?

    /// A machine that has given nothing back.
    package init(backoff: Backoff = Backoff(firstMilliseconds: 2000, lastMilliseconds: 60_000)) {
        self.backoff = backoff
    }

    /// The gateway took a wake back.
    package mutating func released(now: Int64, using generator: inout some RandomNumberGenerator) {
        self.releases += 1
        guard self.releases >= Self.releasesMax, self.renewAt == nil else { return }
        self.renewAt = now + Int64(self.backoff.failed(using: &generator))
    }

    /// The gateway has a result: wakes can begin, and its stream is not stalled.
    package mutating func answered() {
        self.streamEnded()
        self.backoff.succeeded()
    }

    /// The stream has ended; the next one has given nothing back.
    package mutating func streamEnded() {
        self.releases = 0
        self.renewAt = nil
    }
}

/// The kinds of wakes that a worker has no handler for, each said once.
package struct RefusedKinds: Sendable {
    /// The most that are remembered: there are fewer, and a peer may make some up.
    package static let countMax = 16

    private var said: Set<WakeKind> = []

    package init() {}

    /// A wake of `kind` was refused.
    ///
    /// - Returns: whether that is to be said.
    package mutating func isFirst(_ kind: WakeKind) -> Bool {
        self.said.count < Self.countMax && self.said.insert(kind).inserted
    }
}

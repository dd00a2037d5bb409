import HTTPClient

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
        /// The wake's handler runs. Can move to: stopping, sending, over.
        case running
        /// The wake ended at the gateway, and its handler was cancelled. Can move to: sending, over.
        case stopping(Ending)
        /// The wake's result is on its way. Can move to: pausing, over.
        case sending(BackgroundFetchResult)
        /// The wake's result could not be delivered, and is sent again then. Can move to: sending, over.
        case pausing(BackgroundFetchResult, until: Int64)
        /// Nothing is left to do. Terminal.
        case over
    }

    /// The gateway says when a wake has expired; after so many milliseconds without a word we know by ourselves.
    package static let expirationGrace: Int64 = 2000
    /// How long after its deadline a result is still tried to be delivered, in milliseconds: the gateway counts none
    /// by then, but takes it as a sign of life.
    package static let lateMax: Int64 = 60_000
    /// How often a result is sent that no longer counts.
    package static let lateTriesMax = 2

    private var state = State.queued
    package private(set) var deadline: Int64
    private var hasEnded = false
    private var lateTries = 0
    private var backoff = Backoff(firstMilliseconds: 200, lastMilliseconds: 5000)

    /// - Parameter deadline: when the gateway ends it.
    package init(deadline: Int64) {
        self.deadline = deadline
    }

    package var isOver: Bool { self.state == .over }

    package var isQueued: Bool { self.state == .queued }

    /// Whether the wake runs, and the gateway still waits for its result.
    package var isRunning: Bool { self.state == .running }

    /// When `momentReached` has something to say; nil for never.
    package var nextMoment: Int64? {
        switch self.state {
        case .queued, .running: self.deadline + Self.expirationGrace
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
        self.deadline = max(self.deadline, deadline)
    }

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
        case .running:
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
        case (.running, let result), (.stopping, let result):
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
    }

    package mutating func momentReached(now: Int64) -> MomentReachedAction {
        guard let moment = self.nextMoment, moment <= now else { return .nothing }
        switch self.state {
        case .queued, .running:
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
        case .queued, .running, .stopping, .over: nil
        }
    }
}

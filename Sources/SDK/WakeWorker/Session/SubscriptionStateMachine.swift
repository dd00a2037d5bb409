import HTTPClient

/// The state machine of a worker's subscription. It determines when to subscribe, when to abandon a stream, and when
/// the subscription is over.
///
/// All times are milliseconds on the caller's clock, and the caller supplies randomness.
package struct SubscriptionStateMachine: Sendable {
    private enum State: Hashable, Sendable {
        /// The worker waits until it is time to subscribe. Can move to: connecting, over.
        case waiting(until: Int64)
        /// The subscription request was sent. Can move to: subscribed, waiting, over.
        case connecting(since: Int64)
        /// The stream is open. The last data arrived at `receivedAt`. Can move to: waiting, draining, over.
        case subscribed(receivedAt: Int64)
        /// The worker asked the gateway to send no new wakes and to end the stream after the last result. Can move to:
        /// over.
        case draining(receivedAt: Int64)
        /// The subscription is over. Terminal.
        case over
    }

    /// The timeout for the gateway's answer to a subscription, in milliseconds. The gateway normally answers
    /// immediately.
    package static let answerMax: Int64 = 15_000

    private var state: State
    private var backoff: Backoff
    private let timing: WorkerTiming

    /// Creates a machine that subscribes immediately.
    package init(now: Int64, timing: WorkerTiming = WorkerTiming()) {
        self.state = .waiting(until: now)
        self.timing = timing
        self.backoff = timing.backoff
    }

    /// The time of the next call of `momentReached`; nil for never.
    package var nextMoment: Int64? {
        switch self.state {
        case .waiting(let moment): moment
        case .connecting(let since): since + Self.answerMax
        case .subscribed(let receivedAt), .draining(let receivedAt): receivedAt + self.timing.silenceMax
        case .over: nil
        }
    }

    package var isOver: Bool { self.state == .over }

    package var isStopping: Bool {
        switch self.state {
        case .draining, .over: true
        case .waiting, .connecting, .subscribed: false
        }
    }
}

// MARK: - Events

extension SubscriptionStateMachine {
    package enum MomentReachedAction: Hashable, Sendable {
        case nothing
        case subscribe
        /// The gateway was silent for this number of milliseconds. The caller must treat the stream as ended.
        case giveUp(silence: Int64)
    }

    package mutating func momentReached(now: Int64) -> MomentReachedAction {
        guard let moment = self.nextMoment, moment <= now else { return .nothing }
        switch self.state {
        case .waiting:
            self.state = .connecting(since: now)
            return .subscribe
        case .connecting: return .giveUp(silence: Self.answerMax)
        case .subscribed, .draining: return .giveUp(silence: self.timing.silenceMax)
        case .over: return .nothing
        }
    }

    /// Records that the gateway accepted the subscription.
    package mutating func accepted(now: Int64) {
        guard case .connecting = self.state else { return }
        self.backoff.succeeded()
        self.state = .subscribed(receivedAt: now)
    }

    /// Records that data arrived on the stream.
    package mutating func received(now: Int64) {
        switch self.state {
        case .subscribed: self.state = .subscribed(receivedAt: now)
        case .draining: self.state = .draining(receivedAt: now)
        case .waiting, .connecting, .over: break
        }
    }

    /// Makes the worker subscribe again immediately.
    ///
    /// - Returns: true if a stream is open, which the caller must end.
    package mutating func renewed(now: Int64) -> Bool {
        guard case .subscribed = self.state else { return false }
        self.state = .waiting(until: now)
        return true
    }

    package enum StreamEndedAction: Hashable, Sendable {
        case retry(inMilliseconds: Int64)
        case over
    }

    /// Records that the stream ended or could not be opened, and that a retry may succeed.
    ///
    /// - `retryAfter`: the minimum wait that the gateway requests, in milliseconds.
    package mutating func streamEnded(
        retryAfter: Int64 = 0,
        now: Int64,
        using generator: inout some RandomNumberGenerator
    ) -> StreamEndedAction {
        switch self.state {
        case .subscribed:
            let wait = Int64.random(in: self.timing.firstWaits, using: &generator)
            return self.retry(inMilliseconds: wait + max(0, retryAfter), now)
        case .connecting, .waiting:
            return self.retry(inMilliseconds: Int64(self.backoff.failed(using: &generator)) + max(0, retryAfter), now)
        case .draining, .over:
            self.state = .over
            return .over
        }
    }

    private mutating func retry(inMilliseconds wait: Int64, _ now: Int64) -> StreamEndedAction {
        self.state = .waiting(until: now + wait)
        return .retry(inMilliseconds: wait)
    }

    /// Records a permanent failure.
    package mutating func failed() {
        self.state = .over
    }

    package enum StopRequestedAction: Hashable, Sendable {
        /// Ask the gateway to send no new wakes and to end the stream after the last result.
        case drain
        /// No stream is open. Cancel the pending request.
        case cancel
        /// The subscription is already stopping.
        case nothing
    }

    package mutating func stopRequested() -> StopRequestedAction {
        switch self.state {
        case .waiting, .connecting:
            self.state = .over
            return .cancel
        case .subscribed(let receivedAt):
            self.state = .draining(receivedAt: receivedAt)
            return .drain
        case .draining, .over: return .nothing
        }
    }
}

/// The state machine of a worker's stop. It determines the deadlines of the handlers, of their results, and of the end.
///
/// One limit applies from the first stop request, even if the gateway, the network or a handler does not respond. All
/// times are milliseconds on the caller's clock.
package struct StopStateMachine: Sendable {
    private enum State: Hashable, Sendable {
        /// No stop was requested. Can move to: finishing, cancelled.
        case running
        /// Handlers may finish normally until `cancelAt`. Can move to: cancelled, over.
        case finishing(cancelAt: Int64, endAt: Int64)
        /// The handlers were cancelled. Can move to: over.
        case cancelled(endAt: Int64)
        /// The worker waits no longer. Terminal.
        case over
    }

    /// The default maximum time from the first stop request to the end, in milliseconds: an execution window of 30 s,
    /// and time to deliver results.
    package static let limitByDefault: Int64 = 40_000
    /// The maximum time to deliver results after the last handler has ended, in milliseconds. If `limit` is under 40 s,
    /// the maximum is a quarter of it.
    package static let resultsMax: Int64 = 10_000
    /// The maximum time to deliver results after a second stop request, in milliseconds.
    package static let cancelledResultsMax: Int64 = 2000
    /// The maximum time from a second stop request to the end, in milliseconds. A command that ignores SIGTERM is
    /// killed after 2 s.
    package static let cancelledMax: Int64 = 5000

    private var state = State.running
    private let limit: Int64
    private var resultsMax: Int64
    /// The time of the end of the last handler, after a stop request; nil while handlers run.
    private var idleSince: Int64?

    package init(limit: Int64 = Self.limitByDefault) {
        self.limit = limit
        self.resultsMax = min(Self.resultsMax, limit / 4)
    }

    /// True if the handlers were cancelled. Then no handler may be started.
    package var isCancelled: Bool {
        switch self.state {
        case .cancelled, .over: true
        case .running, .finishing: false
        }
    }

    /// The time of the next call of `momentReached`; nil for never.
    package var nextMoment: Int64? {
        let idleEnd = self.idleSince.map { $0 + self.resultsMax }
        return switch self.state {
        case .running, .over: nil
        case .finishing(let cancelAt, let endAt): min(idleEnd ?? cancelAt, endAt)
        case .cancelled(let endAt): min(idleEnd ?? endAt, endAt)
        }
    }
}

// MARK: - Events

extension StopStateMachine {
    /// Records the first stop request, or a refusal of the worker by the gateway.
    package mutating func stopRequested(now: Int64) {
        guard self.state == .running else { return }
        let endAt = now + self.limit
        self.state = .finishing(cancelAt: endAt - self.resultsMax, endAt: endAt)
    }

    /// Records a second stop request. The caller must cancel the handlers.
    package mutating func cancelRequested(now: Int64) {
        switch self.state {
        case .running: self.state = .cancelled(endAt: now + min(self.limit, Self.cancelledMax))
        case .finishing(_, let endAt), .cancelled(let endAt):
            self.state = .cancelled(endAt: min(endAt, now + Self.cancelledMax))
        case .over: return
        }
        self.resultsMax = min(self.resultsMax, Self.cancelledResultsMax)
    }

    package enum Action: Hashable, Sendable {
        case nothing
        case cancelHandlers
        /// Stop waiting and abandon undelivered results.
        case end
    }

    /// Records the number of unfinished handlers and wakes.
    ///
    /// - `handlers`: the number of running handlers.
    /// - `wakes`: the number of wakes that have a running handler or an unconfirmed result.
    package mutating func workChanged(handlers: Int, wakes: Int, now: Int64) -> Action {
        switch self.state {
        case .running: return .nothing
        case .over: return .end
        case .finishing, .cancelled: break
        }
        if handlers > 0 {
            self.idleSince = nil
        } else if self.idleSince == nil {
            self.idleSince = now
        }
        // In a normal stop, the worker waits until the gateway ends the stream. The gateway then knows that no wake is
        // lost.
        guard self.isCancelled, handlers == 0, wakes == 0 else { return .nothing }
        self.state = .over
        return .end
    }

    package mutating func momentReached(now: Int64) -> Action {
        guard let moment = self.nextMoment, moment <= now else { return .nothing }
        if case .finishing(_, let endAt) = self.state, self.idleSince == nil, now < endAt {
            self.state = .cancelled(endAt: endAt)
            return .cancelHandlers
        }
        self.state = .over
        return .end
    }
}

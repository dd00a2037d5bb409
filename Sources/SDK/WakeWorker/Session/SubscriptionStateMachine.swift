package import HTTPClient

/// A worker's subscription: when it is tried, when its stream is given up, and how it ends for good.
///
/// Pure: moments are milliseconds on the caller's clock, and randomness comes in.
package struct SubscriptionStateMachine: Sendable {
    private enum State: Hashable, Sendable {
        /// Waits until it is time to subscribe. Can move to: connecting, over.
        case waiting(until: Int64)
        /// The request is on its way since. Can move to: subscribed, waiting, over.
        case connecting(since: Int64)
        /// Wakes come; something was last heard then. Can move to: waiting, draining, over.
        case subscribed(heardAt: Int64)
        /// The gateway was told to send no new wakes, and ends the stream itself. Can move to: over.
        case draining(heardAt: Int64)
        /// Nothing more happens. Terminal.
        case over
    }

    /// The gateway sends a comment after 15 s of silence; two of them are missing.
    package static let silenceMaxByDefault: Int64 = 40_000
    /// The gateway answers a subscription at once.
    package static let answerMax: Int64 = 15_000

    /// How long to wait after the end of a stream that was open, in milliseconds. Its gateway may be restarting, and
    /// thousands of others come back with this one, so the range is wide.
    package static let firstWaits: ClosedRange<Int64> = 750...2250

    private var state: State
    private var backoff: Backoff
    private let silenceMax: Int64
    private let firstWaits: ClosedRange<Int64>

    /// A machine that subscribes at once; a stream may bring nothing for `silenceMax`.
    package init(
        now: Int64,
        silenceMax: Int64 = Self.silenceMaxByDefault,
        firstWaits: ClosedRange<Int64> = Self.firstWaits,
        backoff: Backoff = Backoff(firstMilliseconds: 2500, lastMilliseconds: 15_000)
    ) {
        self.state = .waiting(until: now)
        self.silenceMax = silenceMax
        self.firstWaits = firstWaits
        self.backoff = backoff
    }

    /// When `momentReached` has something to say; nil for never.
    package var nextMoment: Int64? {
        switch self.state {
        case .waiting(let moment): moment
        case .connecting(let since): since + Self.answerMax
        case .subscribed(let heardAt), .draining(let heardAt): heardAt + self.silenceMax
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
        /// The gateway has been silent for so many milliseconds: the stream is to be treated as ended.
        case giveUp(silence: Int64)
    }

    package mutating func momentReached(now: Int64) -> MomentReachedAction {
        guard let moment = self.nextMoment, moment <= now else { return .nothing }
        switch self.state {
        case .waiting:
            self.state = .connecting(since: now)
            return .subscribe
        case .connecting: return .giveUp(silence: Self.answerMax)
        case .subscribed, .draining: return .giveUp(silence: self.silenceMax)
        case .over: return .nothing
        }
    }

    /// The gateway accepted the subscription.
    package mutating func accepted(now: Int64) {
        guard case .connecting = self.state else { return }
        self.backoff.succeeded()
        self.state = .subscribed(heardAt: now)
    }

    /// Something came on the stream.
    package mutating func heard(now: Int64) {
        switch self.state {
        case .subscribed: self.state = .subscribed(heardAt: now)
        case .draining: self.state = .draining(heardAt: now)
        case .waiting, .connecting, .over: break
        }
    }

    /// Subscribes again at once.
    ///
    /// - Returns: true if there was a stream, which the caller ends.
    package mutating func renewed(now: Int64) -> Bool {
        guard case .subscribed = self.state else { return false }
        self.state = .waiting(until: now)
        return true
    }

    package enum StreamEndedAction: Hashable, Sendable {
        case retry(inMilliseconds: Int64)
        case over
    }

    /// The stream ended, or none came to be, for a reason that passes.
    ///
    /// - `retryAfter`: how long the gateway wants to be left alone at least, in milliseconds.
    package mutating func streamEnded(
        retryAfter: Int64 = 0,
        now: Int64,
        using generator: inout some RandomNumberGenerator
    ) -> StreamEndedAction {
        switch self.state {
        case .subscribed:
            return self.retry(inMilliseconds: .random(in: self.firstWaits, using: &generator) + max(0, retryAfter), now)
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

    /// Another try would come to the same.
    package mutating func failed() {
        self.state = .over
    }

    package enum StopRequestedAction: Hashable, Sendable {
        /// Ask the gateway for no new wakes; it ends the stream after the last result.
        case drain
        /// No stream is open: end what is being tried.
        case cancel
        /// The subscription stops already.
        case nothing
    }

    package mutating func stopRequested() -> StopRequestedAction {
        switch self.state {
        case .waiting, .connecting:
            self.state = .over
            return .cancel
        case .subscribed(let heardAt):
            self.state = .draining(heardAt: heardAt)
            return .drain
        case .draining, .over: return .nothing
        }
    }
}

/// How a worker ends once it was asked to: by when its handlers, its results and everything else are over.
///
/// One bound holds from the first request, whoever is silent: the gateway, the network, or a handler. Pure: moments are
/// milliseconds on the caller's clock.
package struct StopStateMachine: Sendable {
    private enum State: Hashable, Sendable {
        /// Nobody has asked. Can move to: finishing, cancelled.
        case running
        /// Handlers may end by themselves until `cancelAt`. Can move to: cancelled, over.
        case finishing(cancelAt: Int64, endAt: Int64)
        /// Handlers were told to stop. Can move to: over.
        case cancelled(endAt: Int64)
        /// Nothing more is waited for. Terminal.
        case over
    }

    /// How long ending takes at most, from the first request: an execution window of 30 s, and the time for results.
    package static let limitByDefault: Int64 = 40_000
    /// How long results are tried to be delivered once no handler runs, at most; a quarter of a limit that is short.
    package static let resultsMax: Int64 = 10_000
    /// How long results are tried to be delivered after a second request, at most.
    package static let hurriedResultsMax: Int64 = 2000
    /// How long ending takes at most from a second request: commands that do not heed SIGTERM are killed after 2 s.
    package static let hurriedMax: Int64 = 5000

    private var state = State.running
    private let limit: Int64
    private var resultsMax: Int64
    /// Since when no handler runs, after the request.
    private var idleSince: Int64?

    package init(limit: Int64 = Self.limitByDefault) {
        self.limit = limit
        self.resultsMax = min(Self.resultsMax, limit / 4)
    }

    /// Whether handlers were told to stop, so that none is started.
    package var isCancelled: Bool {
        switch self.state {
        case .cancelled, .over: true
        case .running, .finishing: false
        }
    }

    /// When `momentReached` has something to say; nil for never.
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
    /// Somebody asked for the first time, or the gateway lets the worker in no more.
    package mutating func stopRequested(now: Int64) {
        guard self.state == .running else { return }
        let endAt = now + self.limit
        self.state = .finishing(cancelAt: endAt - self.resultsMax, endAt: endAt)
    }

    /// Somebody asked again: the caller cancels the handlers.
    package mutating func cancelRequested(now: Int64) {
        switch self.state {
        case .running: self.state = .cancelled(endAt: now + min(self.limit, Self.hurriedMax))
        case .finishing(_, let endAt), .cancelled(let endAt):
            self.state = .cancelled(endAt: min(endAt, now + Self.hurriedMax))
        case .over: return
        }
        self.resultsMax = min(self.resultsMax, Self.hurriedResultsMax)
    }

    package enum Action: Hashable, Sendable {
        case nothing
        case cancelHandlers
        /// Nothing more is waited for: what was not delivered is given up.
        case end
    }

    /// What is left to do has changed, or may have.
    ///
    /// - `handlers`: how many run.
    /// - `wakes`: how many have a handler that runs, or a result that is not known to have arrived.
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
        // Until it is in a hurry it lets the gateway end the stream, which then knows that no wake is lost.
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

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

    /// A machine that subscribes at once; a stream may bring nothing for `silenceMax`.
    package init(
        now: Int64,
        silenceMax: Int64 = Self.silenceMaxByDefault,
        backoff: Backoff = Backoff(firstMilliseconds: 2500, lastMilliseconds: 15_000)
    ) {
        self.state = .waiting(until: now)
        self.silenceMax = silenceMax
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
            return self.retry(inMilliseconds: .random(in: Self.firstWaits, using: &generator) + max(0, retryAfter), now)
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

import HTTPClient

/// A circuit breaker that limits the number of wakes in flight to a webhook: all slots normally, none during a pause
/// after failures, and one wake as a probe after the pause.
///
/// Each wake belongs to the round in which it was sent. A result from an earlier round is ignored, because it does not
/// show the webhook's present state, unless it contains the webhook's request for a pause.
package struct WebhookBreaker: Sendable {
    /// The number of consecutive failures that begins a pause.
    package static let failuresMax = 5
    /// The maximum duration of the first pause, in milliseconds. The maximum doubles with each failed probe, up to
    /// `lastPause`. It is also the minimum duration of a pause that a webhook requests.
    package static let firstPause: Int64 = 1000
    /// The maximum duration of a pause that no webhook requested, in milliseconds.
    package static let lastPause: Int64 = 60_000
    /// The maximum duration of a pause that a webhook requests, in milliseconds.
    package static let retryAfterMax: Int64 = 3_600_000

    package typealias State = WebhookState

    /// The action that the caller must take.
    package enum Action: Hashable, Sendable {
        case nothing
        /// Send no wakes until this time.
        case pause(until: Int64)
        /// Send one wake at a time.
        case probe
        /// Send as many wakes as there are slots.
        case recover
    }

    package private(set) var state = State.active
    /// The number of failures since the last success. A pause does not reset it.
    package private(set) var failures = 0
    /// The number of transitions between active, resting and probing.
    package private(set) var round: UInt64 = 0
    private var backoff = Backoff(
        firstMilliseconds: Int(WebhookBreaker.firstPause),
        lastMilliseconds: Int(WebhookBreaker.lastPause)
    )

    package init() {}

    /// Records a success: the webhook received a wake and gave a valid answer.
    package mutating func succeeded(round: UInt64) -> Action {
        guard round == self.round else { return .nothing }
        self.failures = 0
        switch self.state {
        case .active, .resting: return .nothing
        case .probing:
            self.backoff.succeeded()
            self.enter(.active)
            return .recover
        }
    }

    /// Records a failure: the webhook could not be reached, or gave an invalid answer.
    ///
    /// - `now`: the time in milliseconds, by the clock that `timePassed` also uses.
    /// - `retryAfter`: the pause requested by the webhook, in milliseconds; nil if it requested none.
    package mutating func failed(
        round: UInt64,
        at now: Int64,
        retryAfter: Int64? = nil,
        using generator: inout some RandomNumberGenerator
    ) -> Action {
        if let retryAfter {
            self.failures += 1
            return self.pause(until: now + max(Self.firstPause, min(Self.retryAfterMax, retryAfter)))
        }
        guard round == self.round else { return .nothing }
        self.failures += 1
        switch self.state {
        case .resting: return .nothing
        case .active where self.failures < Self.failuresMax: return .nothing
        case .active, .probing:
            return self.pause(until: now + Int64(self.backoff.failed(using: &generator)))
        }
    }

    /// Ends the pause if its time has passed.
    package mutating func timePassed(_ now: Int64) -> Action {
        guard case .resting(let until) = self.state, until <= now else { return .nothing }
        self.enter(.probing)
        return .probe
    }

    private mutating func pause(until moment: Int64) -> Action {
        if case .resting(let until) = self.state {
            guard moment > until else { return .nothing }
            self.state = .resting(until: moment)
        } else {
            self.enter(.resting(until: moment))
        }
        return .pause(until: moment)
    }

    private mutating func enter(_ state: State) {
        self.state = state
        self.round += 1
    }
}

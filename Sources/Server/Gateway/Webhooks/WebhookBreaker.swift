import HTTPClient

/// Decides how many wakes a webhook may get: all its slots, none while it rests after failures, and one to try whether
/// it works again.
///
/// Wakes belong to the round in which they were handed out. What becomes of one of an earlier round decides nothing: it
/// says how the webhook was, not how it is.
package struct WebhookBreaker: Sendable {
    /// So many failures in a row begin a rest.
    package static let failuresMax = 5
    /// The bound of the first rest, in milliseconds; it doubles with each rest that did not help.
    package static let firstRest: Int64 = 1000
    /// The bound of the longest rest.
    package static let lastRest: Int64 = 60_000
    /// The longest rest that a webhook may ask for itself.
    package static let retryAfterMax: Int64 = 3_600_000

    package typealias State = WebhookState

    /// What is to be done.
    package enum Action: Hashable, Sendable {
        case nothing
        /// Hand out no wakes until this moment.
        case rest(until: Int64)
        /// Hand out one wake at a time.
        case probe
        /// Hand out as many as there are slots.
        case recover
    }

    package private(set) var state = State.active
    /// Failures in a row, over all rests.
    package private(set) var failures = 0
    /// Changes with each change of state.
    package private(set) var round: UInt64 = 0
    private var backoff = Backoff(
        firstMilliseconds: Int(WebhookBreaker.firstRest),
        lastMilliseconds: Int(WebhookBreaker.lastRest)
    )

    package init() {}

    /// The webhook took a wake and answered as agreed.
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

    /// The webhook could not be reached, or did not answer as agreed.
    ///
    /// - `now`: in milliseconds, on any clock.
    /// - `retryAfter`: for how many milliseconds the webhook asked for rest; nil when it did not.
    package mutating func failed(
        round: UInt64,
        at now: Int64,
        retryAfter: Int64? = nil,
        using generator: inout some RandomNumberGenerator
    ) -> Action {
        if let retryAfter {
            self.failures += 1
            return self.rest(until: now + max(Self.firstRest, min(Self.retryAfterMax, retryAfter)))
        }
        guard round == self.round else { return .nothing }
        self.failures += 1
        switch self.state {
        case .resting: return .nothing
        case .active where self.failures < Self.failuresMax: return .nothing
        case .active, .probing:
            return self.rest(until: now + Int64(self.backoff.failed(using: &generator)))
        }
    }

    /// A moment has come; one that nobody waited for changes nothing.
    package mutating func timePassed(_ now: Int64) -> Action {
        guard case .resting(let until) = self.state, until <= now else { return .nothing }
        self.enter(.probing)
        return .probe
    }

    private mutating func rest(until moment: Int64) -> Action {
        if case .resting(let until) = self.state {
            guard moment > until else { return .nothing }
            self.state = .resting(until: moment)
        } else {
            self.enter(.resting(until: moment))
        }
        return .rest(until: moment)
    }

    private mutating func enter(_ state: State) {
        self.state = state
        self.round += 1
    }
}

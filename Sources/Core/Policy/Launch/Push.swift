package import Wire

/// A reference to the payload and apns-id of a push. The policy cannot read them.
package struct PushHandle: Hashable, Sendable {
    /// The value, chosen by the caller of the policy; 0 is `none`.
    package let rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// No push, as in an empty wake.
    package static var none: PushHandle { PushHandle(rawValue: 0) }
}

/// The meaning of a push's `apns-expiration`, in policy time.
package enum Expiration: Hashable, Sendable {
    /// The header is absent: the push expires `defaultTTL` from now.
    case absent
    /// The header is 0: the push launches now or never.
    case nowOrNever
    /// The push is dropped if it is pending at this time.
    case at(Instant)
}

/// A pending push, with the properties of the pushes coalesced into it.
package struct PendingPush: Hashable, Sendable {
    /// The content of the latest push.
    package var handle: PushHandle
    /// The time at which the push is dropped: the latest expiry of all coalesced pushes.
    package var expiry: Instant
    /// The arrival of the latest push.
    package var receivedAt: Instant
    /// The arrival of the first coalesced push.
    package var firstReceivedAt: Instant
    /// The number of earlier pushes coalesced into this push.
    package var coalesced: UInt32
    /// The number of attempts of the push.
    package var attempts: UInt32
    /// The highest priority of all coalesced pushes.
    package var priority: Priority

    package init(
        handle: PushHandle,
        expiry: Instant,
        receivedAt: Instant,
        firstReceivedAt: Instant,
        coalesced: UInt32,
        attempts: UInt32,
        priority: Priority
    ) {
        self.handle = handle
        self.expiry = expiry
        self.receivedAt = receivedAt
        self.firstReceivedAt = firstReceivedAt
        self.coalesced = coalesced
        self.attempts = attempts
        self.priority = priority
    }

    /// Merges the expiry, first arrival, priority and count of `older` into this push.
    mutating func absorb(_ older: PendingPush) {
        self.expiry = max(self.expiry, older.expiry)
        self.firstReceivedAt = min(self.firstReceivedAt, older.firstReceivedAt)
        self.priority = max(self.priority, older.priority)
        let (sum, overflow) = self.coalesced.addingReportingOverflow(older.coalesced &+ 1)
        self.coalesced = overflow ? .max : sum
    }
}

/// A launched push that has no outcome yet.
package struct WakeInFlight: Hashable, Sendable {
    /// The push. Its `attempts` include this launch; its handle is `none` for an empty wake.
    package var push: PendingPush
    package var launchedAt: Instant
    /// The time at which the wake expires unless its outcome arrives earlier.
    package var deadline: Instant
    /// The spacing before the launch. A lost wake restores it; nil if it must not be restored.
    package var spacingBefore: Spacing?
    /// True if the device was removed after the launch. The push is then discarded instead of retried.
    package var discardsRetry: Bool

    package init(
        push: PendingPush,
        launchedAt: Instant,
        deadline: Instant,
        spacingBefore: Spacing?,
        discardsRetry: Bool = false
    ) {
        self.push = push
        self.launchedAt = launchedAt
        self.deadline = deadline
        self.spacingBefore = spacingBefore
        self.discardsRetry = discardsRetry
    }
}

/// The record of launches, from which the policy computes when the interval, `immediateBurst` and the budget permit the
/// next launch.
package struct Spacing: Hashable, Sendable {
    /// The time of the last launch; `distantPast` before the first.
    package var lastLaunch = Instant.distantPast
    /// The time at which `immediateBurst` launches may skip the interval again (theoretical arrival time of a GCRA).
    package var immediateTAT = Instant.distantPast
    /// The start of the current budget window; `distantPast` before the first launch.
    package var windowStart = Instant.distantPast
    package var windowCount: UInt32 = 0

    package init() {}
}

package import Wire

/// Names a push's content (payload, apns-id); the policy carries it and never looks at it.
package struct PushHandle: Hashable, Sendable {
    /// Chosen by the policy's user; 0 is `none`.
    package let rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// No push: what an empty wake carries.
    package static var none: PushHandle { PushHandle(rawValue: 0) }
}

/// What `apns-expiration` of a push asks for, in policy time.
package enum Expiration: Hashable, Sendable {
    /// The header is absent: `defaultTTL` from now.
    case absent
    /// 0: now or never.
    case nowOrNever
    /// Dropped when it still waits at this moment.
    case at(Instant)
}

/// A push that waits for its launch, and what was coalesced into it.
package struct PendingPush: Hashable, Sendable {
    /// The content of the latest push.
    package var handle: PushHandle
    /// When it is dropped: the latest expiry of all it stands for.
    package var expiry: Instant
    /// When the latest push arrived.
    package var receivedAt: Instant
    /// When the first of all it stands for arrived.
    package var firstReceivedAt: Instant
    /// How many earlier pushes it stands for besides its own.
    package var coalesced: UInt32
    /// How often it was launched.
    package var attempts: UInt32
    /// The highest priority of all it stands for.
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

    /// Takes over the promises of `older`: its life, its urgency, its count.
    mutating func absorb(_ older: PendingPush) {
        self.expiry = max(self.expiry, older.expiry)
        self.firstReceivedAt = min(self.firstReceivedAt, older.firstReceivedAt)
        self.priority = max(self.priority, older.priority)
        let (sum, overflow) = self.coalesced.addingReportingOverflow(older.coalesced &+ 1)
        self.coalesced = overflow ? .max : sum
    }
}

/// A push that was launched and whose outcome is awaited.
package struct WakeInFlight: Hashable, Sendable {
    /// The push, its `attempts` counting this launch; its handle is `none` for an empty wake.
    package var push: PendingPush
    package var launchedAt: Instant
    /// When it expires: the outcome must come before.
    package var deadline: Instant
    /// What a lost wake puts back; nil when there is nothing to put back to.
    package var spacingBefore: Spacing?
    /// The device was removed after the launch: what would be retried is discarded.
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

/// What launches cost a device: the state that interval, allowance and budget are computed from.
package struct Spacing: Hashable, Sendable {
    /// Minus infinity before the first launch.
    package var lastLaunch = Instant.distantPast
    /// When the immediate allowance is full again (theoretical arrival time of a GCRA).
    package var immediateTAT = Instant.distantPast
    /// Minus infinity while no budget window was ever opened.
    package var windowStart = Instant.distantPast
    package var windowCount: UInt32 = 0

    package init() {}
}

/// How the worker's part of a wake ended, as the worker says it.
package enum FetchResult: String, Sendable, CaseIterable {
    case newData, noData, failed
}

/// How a wake ended.
package enum WakeOutcome: String, Sendable, CaseIterable {
    case newData, noData, failed, expired, lost
}

/// What became of an arriving push.
package enum PushReceivedAction: Hashable, Sendable {
    /// The push launched at once; `absorbed` was coalesced into it.
    case launched(absorbed: PushHandle?)
    /// The push waits; `absorbed` was coalesced into it.
    case waits(absorbed: PushHandle?)
    /// The push expired before it could launch; what was pending stays.
    case discarded

    /// The push that was coalesced into it.
    package var absorbed: PushHandle? {
        switch self {
        case .launched(let absorbed), .waits(let absorbed): absorbed
        case .discarded: nil
        }
    }
}

/// What becomes of the push of a wake that ended.
package enum WakeEndedAction: Hashable, Sendable {
    /// The worker handled it.
    case completed(PushHandle)
    /// The push is pending again.
    case retries
    /// The push was coalesced into the newer one that is pending.
    case absorbed(PushHandle)
    /// The push is dropped.
    case discarded(PushHandle, DiscardReason)
    /// The wake was empty: there is no push.
    case nothing
}

/// What a worker's wish for more time came to; with the deadline that holds now.
package enum ExtensionRequestedAction: Hashable, Sendable {
    /// The deadline moved; perhaps not as far as was asked.
    case extended(Instant)
    /// There is as much time already.
    case unchanged(Instant)
    /// The wake has all the time that it can have.
    case limitReached(Instant)
}

/// Why an accepted push was dropped.
package enum DiscardReason: String, Sendable, CaseIterable {
    case expired, exhausted, forceQuit, unregistered
    /// A person dropped it.
    case cancelled
}

/// What the passing of time did.
package enum TimePassedAction: Hashable, Sendable {
    /// Nothing more is due but, perhaps, a launch.
    case nothing
    /// The deadline of the wake in flight passed.
    case wakeExpired(WakeEndedAction)
    /// The pending push expired.
    case pendingExpired(PushHandle)
}

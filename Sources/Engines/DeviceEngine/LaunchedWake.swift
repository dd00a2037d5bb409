package import Bytes
package import LaunchPolicy

/// A wake that was launched, as its worker is told of it.
package struct LaunchedWake {
    package let id: WakeID
    package let kind: LaunchKind
    package let token: DeviceToken
    package let topic: String
    package let push: PendingPush
    package let deadline: Instant
    /// How long until the deadline, in milliseconds.
    package let timeLeft: Int64
    /// nil for an empty wake; valid during the call.
    package let content: PushContent?
}

/// What a reported result did.
package enum ReportOutcome: Hashable, Sendable {
    /// The report ended the wake.
    case ended
    /// The wake ended before, with this very result.
    case repeated
    /// The wake ended before, in another way.
    case endedOtherwise(LaunchOutcome)
    /// No such wake is remembered.
    case unknown
}

/// What a worker's wish for more time came to.
package enum ExtensionOutcome: Hashable, Sendable {
    /// The wake lasts until then.
    case lasts(Instant)
    /// The wake has all the time that its topic's policy gives; it ends then.
    case limitReached(Instant)
    /// The wake has ended.
    case ended(LaunchOutcome)
    /// No such wake is remembered.
    case unknown
}

/// What an operator's forced launch did.
package enum ForcedLaunch: Hashable, Sendable {
    case launched(WakeID)
    case wakeInFlight
}

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

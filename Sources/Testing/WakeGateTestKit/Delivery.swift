package import Bytes
package import LaunchPolicy
package import WakeDispatch

/// A wake as its worker was told of it.
package struct Delivery: Hashable, Sendable {
    package let wake: WakeID
    package let stream: StreamAddress
    package let token: DeviceToken
    package let topic: String
    package let push: PendingPush
    package let deadline: Instant
    /// nil for an empty wake.
    package let apnsID: APNsID?
    /// Empty for an empty wake.
    package let payload: [UInt8]
}

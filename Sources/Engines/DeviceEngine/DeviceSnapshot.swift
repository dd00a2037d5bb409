package import Bytes
package import LaunchPolicy

/// Everything the engine knows of one device, at one moment.
package struct DeviceSnapshot: Sendable {
    package let token: DeviceToken
    package let topic: String
    package let isRegistered: Bool
    /// When the device registered last; after its removal, when it was removed.
    package let registrationChangedAt: Instant
    package let state: DeviceState
    package let parameters: Parameters
    /// The wake in flight.
    package let wake: WakeID?
    package let pendingID: APNsID?
    package let inFlightID: APNsID?
    /// Every hold that applies to the pending push, the deciding one first.
    package let held: [HoldCode]
}

/// One topic, at one moment.
package struct TopicSnapshot: Sendable {
    package let index: TopicIndex
    package let name: String
    package let books: Books
}

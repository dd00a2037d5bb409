package import Bytes
package import LaunchPolicy

/// What the provider of an accepted push is told of it.
package enum Disposition: UInt8, Sendable, CaseIterable {
    case launched, scheduled, coalesced, discarded, noWake

    package var name: StaticString {
        switch self {
        case .launched: "launched"
        case .scheduled: "scheduled"
        case .coalesced: "coalesced"
        case .discarded: "discarded"
        case .noWake: "no-wake"
        }
    }
}

/// One thing that happened to a device.
package struct RecentEvent: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case registered
        case removed
        case push(Disposition)
        case launch(attempt: UInt16, coalesced: UInt16)
        case result(WakeOutcome)
        case discard(DiscardReason)
        case conditions
    }

    package let at: Instant
    package let kind: Kind
    /// The push it happened to, if it happened to one.
    package let apnsID: APNsID?
}

extension EmbeddedEngine {
    /// The bytes a device's recent events cost, once a push has arrived for it.
    package var recentBytes: Int { MemoryLayout<Ring<RecentEvent>>.stride }
}

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
    /// The push that was coalesced into that one, or, when a wake ended, that one was coalesced into.
    package let related: APNsID?

    package init(at: Instant, kind: Kind, apnsID: APNsID?, related: APNsID?) {
        self.at = at
        self.kind = kind
        self.apnsID = apnsID
        self.related = related
    }
}

/// One thing that happened, and the device it happened to.
package struct DeviceEvent: Hashable, Sendable {
    package let device: DeviceIndex
    package let event: RecentEvent
}

extension EmbeddedEngine {
    /// Takes what happened since the last call, in its order.
    package func takeEvents(_ body: (DeviceEvent) -> Void) {
        for event in self.events { body(event) }
        self.events.removeAll(keepingCapacity: true)
    }
}

import Text

/// What a gateway tells a worker on its stream.
package enum StreamEvent: Hashable, Sendable {
    case wake(WakeEvent)
    /// The time of a wake is over.
    case expired(wake: String)
    /// An event that is for programs which know more of gateways.
    case unknown

    /// Reads a server-sent event; nil for one that no gateway sends.
    package init?(name: String, data: [UInt8]) {
        switch name {
        case "wake":
            guard let event = WakeEvent(data) else { return nil }
            self = .wake(event)
        case "expired":
            guard let wake = WakeMessage.expiredWake(data) else { return nil }
            self = .expired(wake: wake)
        default: self = .unknown
        }
    }
}

/// A `wake` event, by what its wake is for.
package enum WakeEvent: Hashable, Sendable {
    case push(WakeMessage)
    /// The wake is for something else; what else its data holds is not looked at.
    case other(wake: String, WakeKind)

    /// Reads the data of a `wake` event, which is of a push when it names no kind; nil when something is missing.
    package init?(_ data: [UInt8]) {
        guard let members = JSONMembers(data), let kind = Self.kind(members) else { return nil }
        if kind == .push {
            guard let message = WakeMessage(members) else { return nil }
            self = .push(message)
        } else {
            guard let wake = WakeMessage.text("wake", in: members) else { return nil }
            self = .other(wake: wake, kind)
        }
    }

    /// Nil for a kind that is none.
    private static func kind(_ members: JSONMembers) -> WakeKind? {
        guard members.raw("kind") != nil else { return .push }
        return WakeMessage.text("kind", in: members).flatMap { WakeKind($0) }
    }
}

/// What a gateway tells a worker on its stream.
package enum StreamEvent: Hashable, Sendable {
    case wake(WakeEvent)
    /// The time of a wake is over; nil for a reason that is not told, or not known.
    case expired(wake: String, ExpirationReason?)
    /// The conditions of a device, as the members of one object.
    case conditions(device: String, JSONValue)
    /// An event that is for programs which know more of gateways.
    case unknown

    /// Reads a server-sent event; nil for one that no gateway sends.
    package init?(name: String, data: [UInt8]) {
        switch name {
        case "wake":
            guard let event = WakeEvent(data) else { return nil }
            self = .wake(event)
        case "expired":
            guard let members = JSONMembers(data), let wake = members.text("wake") else { return nil }
            self = .expired(wake: wake, members.text("reason").flatMap { ExpirationReason(rawValue: $0) })
        case "conditions":
            guard let value = try? JSONReader.read(String(decoding: data, as: UTF8.self)),
                let device = value["device"]?.eventText
            else { return nil }
            self = .conditions(device: device, value)
        default: self = .unknown
        }
    }
}

/// A `wake` event, by what its wake is for.
package enum WakeEvent: Hashable, Sendable {
    case push(WakeMessage)
    /// A background task's wake, or that of a session's finished transfers.
    case task(TaskMessage)
    /// The wake is for something else; what else its data holds is not looked at.
    case other(wake: String, WakeKind)

    /// Reads the data of a `wake` event, which is of a push when it names no kind; nil when something is missing.
    package init?(_ data: [UInt8]) {
        guard let members = JSONMembers(data), let kind = Self.kind(members) else { return nil }
        switch kind {
        case .push:
            guard let message = WakeMessage(members) else { return nil }
            self = .push(message)
        case .appRefresh, .processing, .continued, .urlSession:
            guard let message = TaskMessage(members, kind) else { return nil }
            self = .task(message)
        default:
            guard let wake = members.text("wake") else { return nil }
            self = .other(wake: wake, kind)
        }
    }

    /// Nil for a kind that is none.
    private static func kind(_ members: JSONMembers) -> WakeKind? {
        guard members.raw("kind") != nil else { return .push }
        return members.text("kind").flatMap { WakeKind($0) }
    }
}

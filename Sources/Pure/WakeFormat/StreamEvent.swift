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

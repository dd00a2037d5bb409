package import HTTPTransport

/// Whose a worker's stream is, as far as streams are counted by it.
package enum StreamHolder: Hashable, Sendable {
    case credential(Credential)
    /// Somebody who showed nothing, where nobody is asked; nil for a socket file, which has no addresses.
    case network(ClientNetwork?)

    package init(_ caller: Caller, from network: @autoclosure () -> ClientNetwork?) {
        if let credential = caller.credential {
            self = .credential(credential)
        } else {
            self = .network(network())
        }
    }
}

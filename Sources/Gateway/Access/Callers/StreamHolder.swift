package import HTTPTransport

/// Whose a worker's stream is, as far as streams are counted by it.
package enum StreamHolder: Hashable, Sendable {
    case credential(Credential)
    /// Somebody who showed nothing, where nobody is asked; nil for a socket file, which has no addresses.
    case network(ClientNetwork?)

    package init(_ shown: ShownProof?, from network: @autoclosure () -> ClientNetwork?) {
        switch shown {
        case .token(let shown)?: self = .credential(.bearerToken(shown.token.id))
        case .certificate(let holder)?: self = .credential(.certificate(holder.subject))
        case nil: self = .network(network())
        }
    }
}

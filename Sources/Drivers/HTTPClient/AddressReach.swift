/// Which addresses a client connects to.
package enum AddressReach: Hashable, Sendable {
    /// Every address.
    case anywhere
    /// Addresses of the public Internet alone.
    case global
    /// This machine alone.
    case loopback

    package func admits(_ scope: AddressScope) -> Bool {
        switch self {
        case .anywhere: true
        case .global: scope == .global
        case .loopback: scope == .loopback
        }
    }
}

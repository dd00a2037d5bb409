/// Whom a listener serves.
package enum ListenerRole: CaseIterable, Sendable {
    /// Providers and workers over TLS.
    case edge
    /// Providers and workers in cleartext.
    case plain
    /// Operators in cleartext.
    case admin

    package var isCleartext: Bool {
        switch self {
        case .edge: false
        case .plain, .admin: true
        }
    }
}

/// The addresses of one listener as the operator gave them: none, one, or a list.
package struct ListenSetting: Hashable, Sendable {
    /// Addresses as text, `HOST:PORT`, `[v6]:PORT` or `unix:/path`; none when the listener is off.
    package var addresses: [String]
    /// Whether they were given as a list, so that answers show them as a list.
    package var isList: Bool

    /// A listener that is switched off.
    package static let off = ListenSetting([])

    /// One address.
    package init(_ address: String) {
        self.addresses = [address]
        self.isList = false
    }

    /// A list of addresses; an empty list is a listener that is off.
    package init(_ addresses: [String]) {
        self.addresses = addresses
        self.isList = !addresses.isEmpty
    }

    package var isOff: Bool { self.addresses.isEmpty }
}

/// Where a running gateway accepts, with the ports it really got.
package struct BoundAddresses: Sendable {
    package var edge: ListenSetting
    package var admin: ListenSetting
    package var plain: ListenSetting

    package init(edge: ListenSetting, admin: ListenSetting, plain: ListenSetting) {
        self.edge = edge
        self.admin = admin
        self.plain = plain
    }
}

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

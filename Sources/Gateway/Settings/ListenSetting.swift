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

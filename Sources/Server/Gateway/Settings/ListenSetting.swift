import HTTPClient
package import HTTPTransport
package import Wire

/// The operator's setting for one listener: off, one address, or a list of addresses.
package struct ListenSetting: Hashable, Sendable {
    /// The addresses as text, `HOST:PORT`, `[v6]:PORT` or `unix:/path`; empty if the listener is off.
    package var addresses: [String]
    /// True if the operator wrote a list, so that answers show a list, too.
    package var isList: Bool

    /// A listener that is off.
    package static let off = ListenSetting([])

    /// Creates a setting with one address.
    package init(_ address: String) {
        self.addresses = [address]
        self.isList = false
    }

    /// Creates a setting with a list of addresses. An empty list turns the listener off.
    package init(_ addresses: [String]) {
        self.addresses = addresses
        self.isList = !addresses.isEmpty
    }

    package var isOff: Bool { self.addresses.isEmpty }
}

/// The addresses of a running gateway's listeners, with the ports that the system assigned for port 0.
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

/// The callers and the protocol of a listener.
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

extension ListenSetting {
    /// The form of a valid setting, for messages.
    package static let requirement =
        "\"HOST:PORT\", \"[IPv6]:PORT\", \"unix:/path\", a list of those, or \"off\""

    /// Parses a value of the configuration; returns nil if it is invalid.
    package init?(_ value: JSONValue) {
        switch value {
        case .null, .string("off"): self = .off
        case .string(let address):
            guard Self.isAddress(address) else { return nil }
            self.init(address)
        case .array(let values):
            let addresses = values.compactMap(\.text).filter { Self.isAddress($0) }
            guard addresses.count == values.count else { return nil }
            self.init(addresses)
        case .bool, .number, .object: return nil
        }
    }

    /// The setting as JSON: null if the listener is off, a string, or an array.
    package var value: JSONValue {
        if self.isList { return .array(self.addresses.map { .string($0) }) }
        return self.addresses.first.map { .string($0) } ?? .null
    }

    /// The addresses separated by commas, or `off`, for log lines.
    package var text: String { self.isOff ? "off" : self.addresses.joined(separator: ",") }

    /// Returns true if `text` has the form of an address. The address may still be impossible to bind.
    package static func isAddress(_ text: String) -> Bool {
        if text.hasPrefix("unix:/") { return text.utf8.count > 6 }
        guard let (host, port) = self.hostAndPort(text), !host.isEmpty else { return false }
        return port.utf8.allSatisfy { $0 &- 0x30 <= 9 } && UInt16(port) != nil
    }

    /// Returns true if only processes on this machine can reach `address`.
    package static func isLocal(_ address: String) -> Bool {
        if address.hasPrefix("unix:") { return true }
        return self.hostAndPort(address).map { self.isLoopback($0.host) } ?? false
    }

    /// Returns true if a host is `localhost` or a loopback address.
    static func isLoopback(_ host: Substring) -> Bool {
        if host == "localhost" || host == "::1" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }

    /// Returns the host and the port of an Internet address; nil for other text. An IPv6 host has no brackets.
    package static func hostAndPort(_ address: String) -> (host: Substring, port: Substring)? {
        guard let colon = address.lastIndex(of: ":") else { return nil }
        let host = address[..<colon]
        let port = address[address.index(after: colon)...]
        if host.hasPrefix("["), host.hasSuffix("]") { return (host.dropFirst().dropLast(), port) }
        return host.contains(where: { ":[]/ ".contains($0) }) ? nil : (host, port)
    }
}

/// A network whose machines may connect to a gateway that does not authenticate its callers.
package struct CallerNetwork: Hashable, Sendable {
    /// The form of a valid network, for messages.
    package static let requirement =
        "an address such as 172.17.0.2, or a network such as 172.17.0.0/16, or fd00:1::/64, an IPv6 one of 64 bits at "
        + "most"

    /// The network as the operator wrote it.
    package let text: String
    private let isIPv6: Bool
    private let bits: UInt64
    private let mask: UInt64

    /// Parses an IPv4 address, or an IPv4 or IPv6 network with the number of its bits after a slash.
    ///
    /// - Returns: nil for any other text. An IPv6 network must have at most 64 bits, because a client with one address
    ///   of such a network can use all of them.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let address = IPAddress(String(parts[0])), !parts[0].contains("%") else { return nil }
        self.isIPv6 = address.bytes.count == 16
        guard self.isIPv6 || parts[0].split(separator: ".", omittingEmptySubsequences: false).count == 4 else {
            return nil
        }
        let width = self.isIPv6 ? 64 : 32
        var count = width
        if parts.count == 2 {
            guard let given = Int(parts[1]), (0...width).contains(given) else { return nil }
            count = given
        } else if self.isIPv6 {
            return nil
        }
        self.text = text
        let first = address.bytes.prefix(width / 8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        self.mask = count == 0 ? 0 : UInt64.max << UInt64(width - count)
        self.bits = first & self.mask
    }

    /// Returns true if a client belongs to this network.
    package func contains(_ client: ClientNetwork) -> Bool {
        guard client.isIPv6 == self.isIPv6 else { return false }
        let bits = self.isIPv6 ? client.bits : client.bits & 0xFFFF_FFFF
        return bits & self.mask == self.bits
    }
}

extension ClientNetwork {
    /// True for an IPv6 network. The bits of an IPv4 address begin with 32 ones, and those of no IPv6 network do.
    fileprivate var isIPv6: Bool { self.bits >> 32 != 0xFFFF_FFFF }

    /// True if the client's address is 127.0.0.1 or ::1.
    package var isThisMachine: Bool { self.bits == 0xFFFF_FFFF_7F00_0001 || self.bits == 1 }

    /// The IPv4 address, or the /64 network of an IPv6 address.
    package var text: String {
        let bytes = (0..<8).map { UInt8(truncatingIfNeeded: self.bits >> UInt64(56 - 8 * $0)) }
        guard self.isIPv6 else { return bytes[4...].map { "\($0)" }.joined(separator: ".") }
        let address = IPAddress(bytes: bytes + [UInt8](repeating: 0, count: 8))
        return "\(address.map { $0.description } ?? "")/64"
    }
}

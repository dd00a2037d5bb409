/// Who can be reached at an address, by the registries of special addresses (RFC 6890 and what updates it).
package enum AddressScope: String, CaseIterable, Sendable {
    /// Anybody on the public Internet.
    case global = "public"
    case unspecified
    case loopback
    case linkLocal = "link-local"
    /// Private networks, unique local addresses, and networks that translate to IPv4 by themselves.
    case `private`
    /// The network between a provider and its customers (RFC 6598).
    case shared = "carrier-grade NAT"
    case multicast
    case broadcast
    case documentation
    case benchmarking
    /// Everything that no network may use, or that no registry has given out.
    case reserved
}

/// A block of addresses and their scope.
private struct AddressBlock {
    let bytes: [UInt8]
    let bits: Int
    let scope: AddressScope

    init(_ text: String, _ bits: Int, _ scope: AddressScope) {
        self.bytes = IPAddress(text)?.bytes ?? []
        self.bits = bits
        self.scope = scope
    }

    func contains(_ address: [UInt8]) -> Bool {
        guard address.count == self.bytes.count else { return false }
        let whole = self.bits / 8
        guard address[..<whole] == self.bytes[..<whole] else { return false }
        let rest = self.bits % 8
        return rest == 0 || (address[whole] ^ self.bytes[whole]) >> (8 - rest) == 0
    }
}

extension IPAddress {
    /// The first block that holds an address decides.
    private static let blocks = [
        AddressBlock("0.0.0.0", 8, .unspecified), AddressBlock("10.0.0.0", 8, .private),
        AddressBlock("100.64.0.0", 10, .shared), AddressBlock("127.0.0.0", 8, .loopback),
        AddressBlock("169.254.0.0", 16, .linkLocal), AddressBlock("172.16.0.0", 12, .private),
        AddressBlock("192.0.0.0", 24, .reserved), AddressBlock("192.0.2.0", 24, .documentation),
        AddressBlock("192.88.99.0", 24, .reserved), AddressBlock("192.168.0.0", 16, .private),
        AddressBlock("198.18.0.0", 15, .benchmarking), AddressBlock("198.51.100.0", 24, .documentation),
        AddressBlock("203.0.113.0", 24, .documentation), AddressBlock("224.0.0.0", 4, .multicast),
        AddressBlock("255.255.255.255", 32, .broadcast), AddressBlock("240.0.0.0", 4, .reserved),
        AddressBlock("0.0.0.0", 0, .global),
        AddressBlock("::", 128, .unspecified), AddressBlock("::1", 128, .loopback),
        AddressBlock("64:ff9b:1::", 48, .private), AddressBlock("2001:db8::", 32, .documentation),
        AddressBlock("2001::", 23, .reserved), AddressBlock("3fff::", 20, .documentation),
        AddressBlock("fc00::", 7, .private), AddressBlock("fe80::", 10, .linkLocal),
        AddressBlock("fec0::", 10, .private), AddressBlock("ff00::", 8, .multicast),
        AddressBlock("2000::", 3, .global),
    ]

    /// Where IPv6 addresses carry one of IPv4: mapped, translated (RFC 6052), and 6to4.
    private static let carriers = [
        (block: AddressBlock("::ffff:0:0", 96, .reserved), offset: 12),
        (block: AddressBlock("64:ff9b::", 96, .reserved), offset: 12),
        (block: AddressBlock("2002::", 16, .reserved), offset: 2),
    ]

    /// Who can be reached at this address; one that carries an IPv4 address reaches whom that one does.
    package var scope: AddressScope {
        for (block, offset) in Self.carriers where block.contains(self.bytes) {
            return IPAddress(bytes: Array(self.bytes[offset..<offset + 4]))?.scope ?? .reserved
        }
        return Self.blocks.first { $0.contains(self.bytes) }?.scope ?? .reserved
    }
}

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

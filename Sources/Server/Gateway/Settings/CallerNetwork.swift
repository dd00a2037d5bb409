import HTTPClient
package import HTTPTransport

/// A network whose machines may reach a gateway that asks nobody for proof.
package struct CallerNetwork: Hashable, Sendable {
    /// What a network must be, for messages.
    package static let requirement =
        "an address such as 172.17.0.2, or a network such as 172.17.0.0/16, or fd00:1::/64, an IPv6 one of 64 bits at "
        + "most"

    /// As it was written.
    package let text: String
    private let isIPv6: Bool
    private let bits: UInt64
    private let mask: UInt64

    /// Reads an address, or a network with the count of its bits behind a slash.
    ///
    /// - Returns: nil when it is neither, or a part of an IPv6 network of 64 bits: whoever has one address of that has
    ///   them all.
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

    /// Whether somebody who connected is of this network.
    package func contains(_ client: ClientNetwork) -> Bool {
        guard client.isIPv6 == self.isIPv6 else { return false }
        let bits = self.isIPv6 ? client.bits : client.bits & 0xFFFF_FFFF
        return bits & self.mask == self.bits
    }
}

extension ClientNetwork {
    /// Bits of no IPv6 network stand before an IPv4 address.
    fileprivate var isIPv6: Bool { self.bits >> 32 != 0xFFFF_FFFF }

    /// Whether it is this machine under its own address, 127.0.0.1 or ::1.
    package var isThisMachine: Bool { self.bits == 0xFFFF_FFFF_7F00_0001 || self.bits == 1 }

    /// The address, or the network of an IPv6 address.
    package var text: String {
        let bytes = (0..<8).map { UInt8(truncatingIfNeeded: self.bits >> UInt64(56 - 8 * $0)) }
        guard self.isIPv6 else { return bytes[4...].map { "\($0)" }.joined(separator: ".") }
        let address = IPAddress(bytes: bytes + [UInt8](repeating: 0, count: 8))
        return "\(address.map { $0.description } ?? "")/64"
    }
}

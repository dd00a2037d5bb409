import Glibc
import Wire

/// The parts of a URL as libcurl parses it. Checks of the host therefore apply to the host that libcurl connects to.
package struct HTTPURL: Hashable, Sendable {
    /// The scheme in lower case.
    package var scheme: String
    /// The decoded host. An IPv6 address is in brackets.
    package var host: String
    /// The port in the URL, or the default of the scheme. It may be 0, although no server listens on that port.
    package var port: Int
    /// The path, which begins with a slash.
    package var path: String
    /// True if the URL contains a user or a password.
    package var hasCredentials: Bool
    package var hasQuery: Bool
    package var hasFragment: Bool

    /// The URL for messages, without parts that may contain a secret.
    package var shown: String {
        let standard = self.scheme == "https" ? 443 : 80
        return "\(self.scheme)://\(self.host)\(self.port == standard ? "" : ":\(self.port)")\(self.path)"
    }

    /// The host's address; nil if the host is a name.
    package var address: IPAddress? { IPAddress(self.host) }

    /// True if the host is `localhost` or a loopback address.
    package var isLoopback: Bool { self.host.lowercased() == "localhost" || self.address?.scope == .loopback }

    /// True if the host is an address or a valid DNS name: labels of 1 to 63 ASCII letters, digits, hyphens and
    /// underscores, at most 253 characters in total, and an optional trailing dot.
    ///
    /// libcurl and the resolver determine the meaning of any other host.
    package var hasPlainHost: Bool {
        if self.address != nil { return true }
        let name = self.host.hasSuffix(".") ? self.host.dropLast() : self.host[...]
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        guard name.utf8.count <= 253, labels.allSatisfy(Self.isLabel), let last = labels.last else { return false }
        // A name that ends in a number would be an invalid address (WHATWG URL, 3.5).
        let digits = last.lowercased().hasPrefix("0x") ? last.dropFirst(2) : last
        let radix = digits.count == last.count ? 10 : 16
        return !digits.allSatisfy { $0.hexDigitValue.map { $0 < radix } ?? false }
    }

    private static func isLabel(_ label: Substring) -> Bool {
        (1...63).contains(label.utf8.count) && label.utf8.allSatisfy { $0.isLetterOrDigit(or: "-_") }
    }

    /// Returns the URL without user name and password.
    package static func withoutCredentials(_ url: String) -> String {
        guard let slashes = url.firstRange(of: "://") else { return url }
        let end = url[slashes.upperBound...].firstIndex { "/?#".contains($0) } ?? url.endIndex
        guard let at = url[slashes.upperBound..<end].lastIndex(of: "@") else { return url }
        return String(url[..<slashes.upperBound]) + url[url.index(after: at)...]
    }
}

/// Path components of URLs.
package enum URLPath {
    /// Returns `text` with all bytes percent-encoded except letters, digits and `-._~`.
    package static func component(_ text: String) -> String {
        var encoded = ""
        for byte in text.utf8 {
            if byte.isLetterOrDigit(or: "-._~") {
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                encoded += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return encoded
    }
}

/// An IPv4 or IPv6 address.
package struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// The 4 or 16 bytes in network order.
    package let bytes: [UInt8]

    /// - Returns: nil unless there are 4 or 16 bytes.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        self.bytes = bytes
    }

    /// Parses all forms that the system's resolver accepts as an address, such as `10.1`, `0x7f000001` or `::1`. An
    /// IPv6 address may have brackets and a zone.
    package init?(_ text: String) {
        // The memory is not initialized, because the module with the initializer of `in_addr` depends on the build.
        let four: [UInt8]? = unsafe withUnsafeTemporaryAllocation(of: in_addr.self, capacity: 1) { room in
            unsafe inet_aton(text, room.baseAddress) == 0 ? nil : Array(UnsafeRawBufferPointer(room))
        }
        if let four {
            self.bytes = four
            return
        }
        let isBracketed = text.hasPrefix("[") && text.hasSuffix("]")
        let plain = (isBracketed ? text.dropFirst().dropLast() : text[...]).prefix { $0 != "%" }
        var six = [UInt8](repeating: 0, count: 16)
        guard unsafe inet_pton(AF_INET6, String(plain), &six) == 1 else { return nil }
        self.bytes = six
    }

    package var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let family = self.bytes.count == 4 ? AF_INET : AF_INET6
        guard unsafe inet_ntop(family, self.bytes, &text, socklen_t(text.count)) != nil else { return "" }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// The scope of an address, by the registries of special addresses (RFC 6890 and its updates).
package enum AddressScope: String, CaseIterable, Sendable {
    /// The public Internet.
    case global = "public"
    case unspecified
    case loopback
    case linkLocal = "link-local"
    /// Private networks, unique local addresses, and networks whose addresses are translated to IPv4.
    case `private`
    /// The network between an Internet provider and its customers (RFC 6598).
    case shared = "carrier-grade NAT"
    case multicast
    case broadcast
    case documentation
    case benchmarking
    /// Addresses that are forbidden or not assigned.
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
    /// The blocks. The first block that contains an address determines its scope.
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

    /// The IPv6 blocks whose addresses contain an IPv4 address: mapped, translated (RFC 6052), and 6to4.
    private static let carriers = [
        (block: AddressBlock("::ffff:0:0", 96, .reserved), offset: 12),
        (block: AddressBlock("64:ff9b::", 96, .reserved), offset: 12),
        (block: AddressBlock("2002::", 16, .reserved), offset: 2),
    ]

    /// The scope of the address, or of the IPv4 address that it contains.
    package var scope: AddressScope {
        for (block, offset) in Self.carriers where block.contains(self.bytes) {
            return IPAddress(bytes: Array(self.bytes[offset..<offset + 4]))?.scope ?? .reserved
        }
        return Self.blocks.first { $0.contains(self.bytes) }?.scope ?? .reserved
    }
}

/// The addresses to which a client may connect.
package enum AddressReach: Hashable, Sendable {
    /// Every address.
    case anywhere
    /// Only addresses of the public Internet.
    case global
    /// Only this machine.
    case loopback

    package func admits(_ scope: AddressScope) -> Bool {
        switch self {
        case .anywhere: true
        case .global: scope == .global
        case .loopback: scope == .loopback
        }
    }
}

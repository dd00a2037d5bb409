package import Wire

/// What a `Host` or an `:authority` field names (RFC 3986 §3.2), taken apart: a view of the field's bytes.
package struct Authority {
    /// A name or an address, never empty; an IPv6 address without its brackets.
    package let host: ByteView
    /// Whether the host stood in brackets.
    package let isIPv6: Bool

    /// - Returns: nil for what names no host: an empty text, one with user information, one of other characters than
    ///   the grammar has, or with a port that is no number up to 65,535. The port may be empty, as the grammar has it.
    package init?(_ text: ByteView) {
        let hostCount: Int
        if text.starts(with: "[") {
            guard let bracket = text.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            self.host = text[1..<bracket]
            self.isIPv6 = true
            hostCount = bracket + 1
            guard Self.isIPv6(self.host) else { return nil }
        } else {
            hostCount = text.firstIndex(of: UInt8(ascii: ":")) ?? text.count
            self.host = text[0..<hostCount]
            self.isIPv6 = false
            guard Self.isName(self.host) else { return nil }
        }
        let rest = text.dropFirst(hostCount)
        guard rest.isEmpty || rest.starts(with: ":") else { return nil }
        if rest.count > 1 {
            guard let port = rest.dropFirst(1).decimal, port <= UInt64(UInt16.max) else { return nil }
        }
    }

    /// The host as it is compared: in lower case, and a name without the dot that marks the root of all names.
    package var name: String {
        let isRooted = !self.isIPv6 && self.host.count > 1 && self.host[self.host.count - 1] == UInt8(ascii: ".")
        return self.host[0..<(self.host.count - (isRooted ? 1 : 0))].string.lowercased()
    }

    /// Whether only this machine itself goes by that name or address.
    package var isLoopback: Bool {
        let name = self.name
        if self.isIPv6 { return name == "::1" }
        if name == "localhost" { return true }
        let parts = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0].elementsEqual("127".utf8) && parts.allSatisfy { Self.isOctet($0) }
    }

    private static func isOctet(_ digits: Substring.UTF8View) -> Bool {
        guard digits.allSatisfy({ $0 &- 0x30 <= 9 }), let octet = UInt8(Substring(digits)) else { return false }
        return "\(octet)".utf8.elementsEqual(digits)
    }

    private static func isIPv6(_ text: ByteView) -> Bool {
        var colons = 0
        for index in 0..<text.count {
            let byte = text[index]
            if byte == UInt8(ascii: ":") { colons += 1 }
            let isPunctuation = byte == UInt8(ascii: ":") || byte == UInt8(ascii: ".")
            guard isPunctuation || byte.hexDigitValue != nil else { return false }
        }
        return colons >= 2
    }

    /// Whether the bytes are a `reg-name`, which IPv4 addresses are too, and not empty.
    private static func isName(_ text: ByteView) -> Bool {
        var index = 0
        while index < text.count {
            switch text[index] {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: index += 1
            case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "!"),
                UInt8(ascii: "$"), UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "("), UInt8(ascii: ")"),
                UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "="):
                index += 1
            case UInt8(ascii: "%"):
                guard index + 2 < text.count, text[index + 1].hexDigitValue != nil, text[index + 2].hexDigitValue != nil
                else { return false }
                index += 3
            case _: return false
            }
        }
        return text.count > 0
    }
}

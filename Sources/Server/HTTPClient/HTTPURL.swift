/// The parts of a URL, as libcurl itself divides it: what is checked is what is connected to.
package struct HTTPURL: Hashable, Sendable {
    /// In lower case.
    package var scheme: String
    /// Decoded; an IPv6 address has its brackets.
    package var host: String
    /// As it was given, or the scheme's; 0 is no port that anybody listens on.
    package var port: Int
    /// Begins with a slash.
    package var path: String
    /// Whether it names a user or a password.
    package var hasCredentials: Bool
    package var hasQuery: Bool
    package var hasFragment: Bool

    /// The URL for people: without what may hold a secret.
    package var shown: String {
        let standard = self.scheme == "https" ? 443 : 80
        return "\(self.scheme)://\(self.host)\(self.port == standard ? "" : ":\(self.port)")\(self.path)"
    }

    /// The host's address, when it is one and no name.
    package var address: IPAddress? { IPAddress(self.host) }

    /// Whether the host is an address, or a name that DNS can have: labels of 1 to 63 letters, digits, hyphens and
    /// underscores of ASCII, at most 253 characters in all, and one full stop more at the end or none.
    ///
    /// Everything else is connected to, if at all, as what libcurl or the resolver makes of it.
    package var hasPlainHost: Bool {
        if self.address != nil { return true }
        let name = self.host.hasSuffix(".") ? self.host.dropLast() : self.host[...]
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        guard name.utf8.count <= 253, labels.allSatisfy(Self.isLabel), let last = labels.last else { return false }
        // What ends in a number is meant for an address (WHATWG URL, 3.5), and is none.
        let digits = last.lowercased().hasPrefix("0x") ? last.dropFirst(2) : last
        let radix = digits.count == last.count ? 10 : 16
        return !digits.allSatisfy { $0.hexDigitValue.map { $0 < radix } ?? false }
    }

    private static func isLabel(_ label: Substring) -> Bool {
        (1...63).contains(label.utf8.count)
            && label.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }
}

/// Path components of URLs.
package enum URLPath {
    /// `text` with every byte but letters, digits and `-._~` percent-encoded.
    package static func component(_ text: String) -> String {
        var encoded = ""
        for byte in text.utf8 {
            if (byte | 0x20) &- 0x61 < 26 || byte &- 0x30 < 10 || "-._~".utf8.contains(byte) {
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                encoded += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return encoded
    }
}

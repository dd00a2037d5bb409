package import Wire

/// An address to listen on: `HOST:PORT`, `[v6]:PORT` or `unix:/path`.
package struct ListenAddress: Hashable, Sendable, CustomStringConvertible {
    package enum Kind: Hashable, Sendable {
        /// A name or an address without brackets, and a port. Port 0 selects a free port.
        case tcp(host: String, port: UInt16)
        /// A socket file, identified by its absolute path.
        case unix(path: String)
    }

    package let kind: Kind

    package init(_ kind: Kind) {
        self.kind = kind
    }

    /// The maximum length of a socket file's path in bytes. The system's limit is 108 with the terminating zero.
    private static let pathBytesMax = 107

    /// - Throws: `TransportError` with the code `address`. Its message quotes `text` and gives an example of a correct
    ///   address.
    package static func parse(_ text: String) throws(TransportError) -> ListenAddress {
        if text.hasPrefix("unix:") {
            return try Self.unix(String(text.dropFirst(5)), in: text)
        }
        if text.hasPrefix("[") {
            guard let bracket = text.firstIndex(of: "]") else {
                throw Self.fault(text, "the bracket is not closed; write [::1]:2197")
            }
            let host = String(text[text.index(after: text.startIndex)..<bracket])
            let rest = text[text.index(after: bracket)...]
            guard rest.hasPrefix(":") else { throw Self.fault(text, "the port is missing; write [\(host)]:2197") }
            // A link-local address may name its interface.
            let isIPv6 = String(host.prefix { $0 != "%" }).withByteView { Authority.isIPv6($0) }
            guard isIPv6 else { throw Self.fault(text, "brackets are for IPv6 addresses; write [::1]:2197") }
            return ListenAddress(.tcp(host: host, port: try Self.port(rest.dropFirst(), in: text)))
        }
        guard let colon = text.lastIndex(of: ":") else {
            throw Self.fault(text, "the port is missing; write HOST:PORT, such as 127.0.0.1:2197")
        }
        let host = String(text[..<colon])
        guard !host.isEmpty else {
            throw Self.fault(text, "the host is missing; write 127.0.0.1\(text), or [::]\(text) for every address")
        }
        guard !host.contains(":") else {
            throw Self.fault(
                text,
                "an IPv6 address needs brackets; write [\(host)]:\(text[text.index(after: colon)...])"
            )
        }
        guard host.utf8.allSatisfy({ $0.isLetterOrDigit(or: ".-_") }) else {
            throw Self.fault(text, "the host may hold letters, digits, dots and hyphens only; write HOST:PORT")
        }
        return ListenAddress(.tcp(host: host, port: try Self.port(text[text.index(after: colon)...], in: text)))
    }

    package var description: String {
        switch self.kind {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }

    private static func unix(_ path: String, in text: String) throws(TransportError) -> ListenAddress {
        guard path.hasPrefix("/") else {
            throw Self.fault(text, "the path must be absolute; write unix:/run/wakegate.sock")
        }
        guard path.utf8.count <= Self.pathBytesMax, !path.utf8.contains(0) else {
            throw Self.fault(text, "the path may have \(Self.pathBytesMax) bytes; choose a shorter one")
        }
        return ListenAddress(.unix(path: path))
    }

    private static func port(_ digits: Substring, in text: String) throws(TransportError) -> UInt16 {
        guard !digits.isEmpty else { throw Self.fault(text, "the port is missing; write a number such as 2197") }
        guard digits.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let port = UInt16(digits) else {
            throw Self.fault(text, "the port \"\(digits)\" is not a number from 0 to 65535")
        }
        return port
    }

    private static func fault(_ text: String, _ what: String) -> TransportError {
        TransportError(.address, "The address \"\(text)\" cannot be used: \(what).")
    }
}

/// The parts of a `Host` or `:authority` field (RFC 3986 §3.2). They are views of the field's bytes.
package struct Authority {
    /// A name or an address, which is never empty. An IPv6 address is without brackets.
    package let host: ByteView
    /// True if the host was written in brackets.
    package let isIPv6: Bool

    /// - Returns: nil for empty text, user information, invalid characters, or a port that is not a number up to
    ///   65,535. The port may be empty, as the grammar allows.
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

    /// The host in lower case, without a trailing dot, for comparisons.
    package var name: String {
        let isRooted = !self.isIPv6 && self.host.count > 1 && self.host[self.host.count - 1] == UInt8(ascii: ".")
        return self.host[0..<(self.host.count - (isRooted ? 1 : 0))].string.lowercased()
    }

    /// True if the host is a name or an address of the loopback interface.
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

    fileprivate static func isIPv6(_ text: ByteView) -> Bool {
        var colons = 0
        for index in 0..<text.count {
            let byte = text[index]
            if byte == UInt8(ascii: ":") { colons += 1 }
            let isPunctuation = byte == UInt8(ascii: ":") || byte == UInt8(ascii: ".")
            guard isPunctuation || byte.hexDigitValue != nil else { return false }
        }
        return colons >= 2
    }

    /// Returns true if the bytes are a non-empty `reg-name`, which includes IPv4 addresses.
    private static func isName(_ text: ByteView) -> Bool {
        var index = 0
        while index < text.count {
            if text[index] == UInt8(ascii: "%") {
                guard index + 2 < text.count, text[index + 1].hexDigitValue != nil, text[index + 2].hexDigitValue != nil
                else { return false }
                index += 3
            } else {
                guard text[index].isLetterOrDigit(or: "-._~!$&'()*+,;=") else { return false }
                index += 1
            }
        }
        return text.count > 0
    }
}

/// A failure to set up the transport. The message names the fault and the remedy.
package struct TransportError: Error, Sendable, CustomStringConvertible {
    package enum Code: Sendable {
        /// The text is not an address to listen on.
        case address
        /// Another process already listens on the address.
        case addressInUse
        /// The system refused to listen on the address.
        case bind
        /// A certificate could not be read, made or used.
        case certificate
        /// A private key could not be read, made or used.
        case privateKey
        /// The system reported another failure.
        case system
    }

    package let code: Code
    /// The fault and the remedy, one sentence for each.
    package let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { self.message }
}

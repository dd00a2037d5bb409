package import Wire

extension ListenSetting {
    /// What an address must be, for messages.
    package static let requirement =
        "\"HOST:PORT\", \"[IPv6]:PORT\", \"unix:/path\", a list of those, or \"off\""

    /// The setting a configuration value stands for, or nil when it is none.
    package init?(_ value: JSONValue) {
        switch value {
        case .null, .string("off"): self = .off
        case .string(let address):
            guard Self.isAddress(address) else { return nil }
            self.init(address)
        case .array(let values):
            var addresses: [String] = []
            for value in values {
                guard case .string(let address) = value, Self.isAddress(address) else { return nil }
                addresses.append(address)
            }
            self.init(addresses)
        case .bool, .number, .object: return nil
        }
    }

    /// The setting as the ready line shows it: null, a string, or a list.
    package var value: JSONValue {
        if self.isList { return .array(self.addresses.map { .string($0) }) }
        return self.addresses.first.map { .string($0) } ?? .null
    }

    /// The addresses as one word, for log lines.
    package var text: String { self.isOff ? "off" : self.addresses.joined(separator: ",") }

    /// Whether `text` has the form of an address; whether it can be bound shows only later.
    package static func isAddress(_ text: String) -> Bool {
        if text.hasPrefix("unix:/") { return text.utf8.count > 6 }
        guard let (host, port) = self.hostAndPort(text), !host.isEmpty else { return false }
        return port.utf8.allSatisfy { $0 &- 0x30 <= 9 } && UInt16(port) != nil
    }

    /// Whether only processes of this machine can reach `address`.
    package static func isLocal(_ address: String) -> Bool {
        if address.hasPrefix("unix:") { return true }
        guard let (host, _) = self.hostAndPort(address) else { return false }
        if host == "localhost" || host == "::1" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }

    /// The two parts of an address of the Internet; an IPv6 host without its brackets.
    package static func hostAndPort(_ address: String) -> (host: Substring, port: Substring)? {
        guard let colon = address.lastIndex(of: ":") else { return nil }
        let host = address[..<colon]
        let port = address[address.index(after: colon)...]
        if host.hasPrefix("["), host.hasSuffix("]") { return (host.dropFirst().dropLast(), port) }
        return host.contains(where: { ":[]/ ".contains($0) }) ? nil : (host, port)
    }
}

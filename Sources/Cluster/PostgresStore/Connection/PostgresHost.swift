/// One server of a connection string.
struct PostgresHost: Hashable, Sendable {
    /// A name, an address or the folder of a socket; empty for what libpq chooses.
    let name: String
    /// An address that is connected to instead of the name's; empty for none.
    let address: String
    /// Digits; empty for 5432.
    let port: String

    /// Whether what is sent there leaves the machine.
    var isRemote: Bool {
        let place = self.address.isEmpty ? self.name : self.address
        guard !place.isEmpty, !place.hasPrefix("/"), !place.hasPrefix("@") else { return false }
        return place != "localhost" && place != "::1" && !Self.isLoopback(place)
    }

    /// As it stands in a log.
    var description: String {
        let place = self.name.isEmpty ? self.address : self.name
        let host = place.isEmpty ? "local socket" : place.contains(":") ? "[\(place)]" : place
        return "\(host):\(self.port.isEmpty ? "5432" : self.port)"
    }

    /// The servers that options name; one without a name when they name none.
    static func list(in options: ConnectionOptions) -> [PostgresHost] {
        let (names, addresses, ports) = (options.list("host"), options.list("hostaddr"), options.list("port"))
        return (0..<max(names.count, addresses.count, 1)).map { index in
            PostgresHost(
                name: names.indices.contains(index) ? names[index] : "",
                address: addresses.indices.contains(index) ? addresses[index] : "",
                port: ports.indices.contains(index) ? ports[index] : ports.first ?? ""
            )
        }
    }

    private static func isLoopback(_ text: String) -> Bool {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}

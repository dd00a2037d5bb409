import Wire

/// The address of a PostgreSQL database and its connection parameters, as a URI of libpq without a password.
///
/// The only parser of these URIs besides libpq, which parses `text` again for each connection. It finds faults before a
/// connection is made, and accepts only what libpq accepts.
package struct PostgresAddress: Hashable, Sendable, CustomStringConvertible {
    /// The fault of a URI. Its text quotes nothing of the URI except names of parameters.
    package struct Fault: Error, Hashable, Sendable {
        package let problem: String
        package let remedy: String
    }

    /// The schemes of database URIs.
    package static let schemes = ["postgresql://", "postgres://"]
    /// The rule for the value of a key, for messages.
    package static let requirement = "\"postgresql://HOST,HOST/DATABASE\""

    /// The text of the URI.
    package private(set) var text: String
    /// The servers to connect to. Empty if libpq determines them.
    package let hosts: [PostgresHost]
    /// True if servers on other machines need not prove their identity with TLS.
    package private(set) var allowsUnverifiedServers = false
    /// The values by keyword of libpq: the parameters after `?`, and the parts before it that no parameter overrides.
    private var values: [String: String]
    /// Every host of the URI, including those that a parameter overrides.
    private let places: [String]

    /// - Throws: `Fault` if the text is not a database URI, contains a password, or has a parameter that a gateway
    ///   cannot use.
    package init(_ text: String) throws(Fault) {
        guard let scheme = Self.schemes.first(where: { text.hasPrefix($0) }) else { throw .noURI }
        let parts = text.dropFirst(scheme.count).split(
            separator: "?",
            maxSplits: 1,
            omittingEmptySubsequences: false
        )
        let place = parts[0]
        // This check also finds passwords with an unescaped `/` or `@`, which libpq would parse differently.
        if let at = place.lastIndex(of: "@"), place[..<at].contains(":") { throw .password }
        let query = parts.count > 1 ? parts[1] : ""
        let parameters = try Self.parameters(query)
        guard place.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { throw .noURI }
        let authority = place.prefix { $0 != "/" }
        let userAndHosts = authority.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
        var (names, ports): ([String], [Substring]) = ([], [])
        for host in (userAndHosts.last ?? "").split(separator: ",", omittingEmptySubsequences: false) {
            guard let (name, port) = Self.host(host) else { throw .noURI }
            names.append(name)
            ports.append(port)
        }
        // Before the first `/`, libpq also takes an `@` in the parameters for the end of the user's name.
        let isMisread =
            !place.contains { "/@".contains($0) }
            && query.utf8.prefix { $0 != UInt8(ascii: "/") }.contains(UInt8(ascii: "@"))
        guard !isMisread, let user = Self.decoded(userAndHosts.dropLast().first ?? "", repairing: true),
            let database = Self.decoded(place.dropFirst(authority.count + 1), repairing: true)
        else { throw .noURI }
        let listedNames = names.joined(separator: ",")
        let values = [
            "host": listedNames, "port": ports.joined(separator: ","), "user": user, "dbname": database,
        ]
        self.values = values.filter { !$0.value.isEmpty }.merging(parameters) { $1 }
        self.hosts = try PostgresHost.checked(self.values)
        self.places = [listedNames, parameters["host"] ?? "", parameters["hostaddr"] ?? ""].flatMap {
            $0.split(separator: ",").map { String($0) }
        }
        self.text = text
    }

    /// True if the URI names only servers on this machine, by Unix socket or loopback address. False if the URI names a
    /// service, because its hosts are in a file.
    package var isLocal: Bool {
        self["service"] == nil && self.places.allSatisfy { PostgresHost.isLocal($0) }
    }

    /// Returns the value of a keyword of libpq; nil if the URI does not have it.
    package subscript(keyword: String) -> String? { self.values[keyword] }

    /// A URI for errors: `postgresql://user@db1:5432,db2:5432/wakegate`.
    package var description: String {
        let shown = self.values.filter { !$0.value.isEmpty }
        let user = shown["user"].map { "\($0)@" } ?? ""
        let wanted = shown["target_session_attrs"].map { "?target_session_attrs=\($0)" } ?? ""
        let servers = self.hosts.map(\.description).joined(separator: ",")
        let service = shown["service"].map { "service \($0): " } ?? ""
        return "\(service)postgresql://\(user)\(servers)/\(shown["dbname"] ?? "")\(wanted)"
    }

    /// Returns the address with defaults for parameters that a gateway needs.
    ///
    /// - Parameter allowsUnverifiedServers: true if servers on other machines need not prove their identity.
    package func completed(allowsUnverifiedServers: Bool) -> PostgresAddress {
        var added: [(keyword: String, value: String)] = []
        // If the URI names no host, PGHOST may name a remote one. Without PGHOST, libpq uses a Unix socket and ignores
        // sslmode.
        let isCertain = self.isLocal && !self.places.isEmpty
        if !isCertain, !allowsUnverifiedServers, self["sslmode"] == nil { added.append(("sslmode", "verify-full")) }
        if self["target_session_attrs"] == nil { added.append(("target_session_attrs", "read-write")) }
        if self["application_name"] == nil { added.append(("fallback_application_name", "wakegate")) }
        var address = self
        address.allowsUnverifiedServers = allowsUnverifiedServers
        for (keyword, value) in added {
            let query = address.text.drop { $0 != "?" }
            let separator = query.isEmpty ? "?" : query == "?" || query.hasSuffix("&") ? "" : "&"
            address.text += "\(separator)\(keyword)=\(value)"
            address.values[keyword] = value
        }
        return address
    }
}

/// One server of an address.
package struct PostgresHost: Hashable, Sendable {
    /// A name, an address or the folder of a socket; empty if libpq chooses it.
    package let name: String
    /// An address to connect to instead of resolving the name; empty for none.
    package let address: String
    /// The port in digits; empty for 5432.
    package let port: String

    package init(name: String, address: String = "", port: String) {
        self.name = name
        self.address = address
        self.port = port
    }

    /// True if connections to the server leave the machine.
    package var isRemote: Bool { !Self.isLocal(self.address.isEmpty ? self.name : self.address) }

    /// The host and port for logs.
    package var description: String {
        let place = self.name.isEmpty ? self.address : self.name
        let host = place.isEmpty ? "local socket" : place.contains(":") ? "[\(place)]" : place
        return "\(host):\(self.port.isEmpty ? "5432" : self.port)"
    }

    /// Returns the servers in values by keyword of libpq; without any, one server with an empty name.
    package static func list(in values: [String: String]) -> [PostgresHost] {
        let (names, addresses, ports) = (values.list("host"), values.list("hostaddr"), values.list("port"))
        return (0..<max(names.count, addresses.count, 1)).map { index in
            PostgresHost(
                name: names.indices.contains(index) ? names[index] : "",
                address: addresses.indices.contains(index) ? addresses[index] : "",
                port: ports.indices.contains(index) ? ports[index] : ports.first ?? ""
            )
        }
    }

    /// Returns the servers in the values of a URI, also if there are none.
    fileprivate static func checked(
        _ values: [String: String]
    ) throws(PostgresAddress.Fault) -> [PostgresHost] {
        let (names, addresses, ports) = (values.list("host"), values.list("hostaddr"), values.list("port"))
        let count = max(names.count, addresses.count)
        guard names.isEmpty || addresses.isEmpty || names.count == addresses.count,
            ports.count <= 1 || ports.count == max(count, 1), count < 2 || !(names + addresses).contains("")
        else { throw .unequalLists }
        // If the text contains an unescaped delimiter, libpq parses the rest of it as a host, a port or a database.
        guard !(names + addresses + [values["dbname"] ?? ""]).contains(where: { $0.dropFirst().contains("@") }),
            ports.allSatisfy({ $0.isEmpty || (UInt16($0) ?? 0) > 0 })
        else { throw .noURI }
        return count == 0 ? [] : self.list(in: values)
    }

    fileprivate static func isLocal(_ place: String) -> Bool {
        // A folder with a Unix socket, or a socket in the abstract namespace.
        if place.isEmpty || place.hasPrefix("/") || place.hasPrefix("@") { return true }
        if place == "localhost" || place == "::1" { return true }
        let parts = place.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}

extension [String: String] {
    /// Returns the comma-separated parts of a value, such as one for each host; none if it is empty or missing.
    fileprivate func list(_ keyword: String) -> [String] {
        guard let value = self[keyword], !value.isEmpty else { return [] }
        return value.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }
}

extension PostgresAddress {
    /// The parameters of libpq 15, without those that contain a password or change the kind of session.
    private static let known: Set<String> = [
        "application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname",
        "fallback_application_name", "gssencmode", "gsslib", "host", "hostaddr", "keepalives", "keepalives_count",
        "keepalives_idle", "keepalives_interval", "krbsrvname", "options", "passfile", "port", "requirepeer", "service",
        "ssl_max_protocol_version", "ssl_min_protocol_version", "sslcert", "sslcompression", "sslcrl", "sslcrldir",
        "sslkey", "sslmode", "sslrootcert", "sslsni", "target_session_attrs", "tcp_user_timeout", "user",
    ]

    /// The session attributes that select a writable server.
    private static let writableSessions: Set<String> = ["primary", "read-write"]

    private static func parameters(_ text: Substring) throws(Fault) -> [String: String] {
        var parameters: [String: String] = [:]
        var pairs = text.utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        // libpq ignores one `&` at the end.
        if pairs.last?.isEmpty == true { pairs.removeLast() }
        var isReadable = true
        for pair in pairs where !pair.isEmpty {
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(Substring(parts[0]))
            if name == "password" || name == "sslpassword" { throw .password }
            guard parts.count == 2, let value = Self.decoded(Substring(parts[1])) else { throw .noURI }
            guard Self.known.contains(name) else { throw .unknown(name) }
            parameters[name] = value
            isReadable = isReadable && !parts[1].contains(UInt8(ascii: "="))
        }
        if let session = parameters["target_session_attrs"], !self.writableSessions.contains(session) {
            throw .readOnlySession
        }
        guard isReadable, !pairs.contains(where: \.isEmpty) else { throw .noURI }
        return parameters
    }

    /// Returns the host and the port in `HOST`, `HOST:PORT` or `[IPv6]:PORT`; nil for any other text.
    private static func host(_ text: Substring) -> (name: String, port: Substring)? {
        var rest = text
        var host = text
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
            rest = text[text.index(after: end)...]
            guard !host.isEmpty else { return nil }
        } else {
            host = text.prefix { $0 != ":" }
            rest = text.dropFirst(host.count)
        }
        guard rest.isEmpty || rest.first == ":" else { return nil }
        let port = rest.dropFirst()
        guard port.utf8.allSatisfy({ $0 &- 0x30 <= 9 }), port.isEmpty || UInt16(port) != nil else { return nil }
        return self.decoded(host).map { ($0, port) }
    }

    /// Decodes percent-encoded text; returns nil if an escape is invalid or stands for a zero byte.
    ///
    /// - `repairing`: true if invalid UTF-8 is replaced instead of refused.
    private static func decoded(_ text: Substring, repairing: Bool = false) -> String? {
        guard let bytes = String(text).percentDecodedBytes, !bytes.contains(0) else { return nil }
        return repairing ? String(decoding: bytes, as: UTF8.self) : String(validating: bytes, as: UTF8.self)
    }
}

extension PostgresAddress.Fault {
    /// The fault of text that cannot be parsed. The fault does not quote the text, which may contain a password.
    fileprivate static let noURI = Self(
        problem: "is not the address of a database",
        remedy: "write \(PostgresAddress.requirement), with % and two digits for what a URI does not take"
    )

    fileprivate static let unequalLists = Self(
        problem: "has hosts, addresses and ports that are not equally many, or an empty one",
        remedy: "write each server as HOST or HOST:PORT, and as many addresses in hostaddr"
    )

    fileprivate static let password = Self(
        problem: "holds a password",
        remedy: "leave it out, and have libpq find it: in ~/.pgpass, in the file that ?passfile=/FILE names, or in a "
            + "service file (?service=NAME)"
    )

    fileprivate static let readOnlySession = Self(
        problem: "asks for a server that takes no writes with target_session_attrs",
        remedy: "write target_session_attrs=read-write, or leave it out"
    )

    fileprivate static func unknown(_ name: String) -> Self {
        // Do not quote other text, because it may be part of an unescaped value.
        let isName = name.utf8.allSatisfy { byte in
            byte == UInt8(ascii: "_") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
        }
        return Self(
            problem: isName && name.utf8.count <= 32
                ? "has a parameter that libpq does not know, or a gateway cannot use: \(name)"
                : "has a parameter that libpq does not know",
            remedy: "leave it out"
        )
    }
}

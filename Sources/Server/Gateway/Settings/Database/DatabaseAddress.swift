import Wire

/// The address of a PostgreSQL database and its connection parameters, as a URI without a password.
///
/// libpq parses the URI. This type only finds configuration faults before a connection is made.
package struct DatabaseAddress: Hashable, Sendable {
    /// The fault of a URI. Its text quotes nothing of the URI except names of parameters.
    package struct Fault: Error, Hashable, Sendable {
        package let problem: String
        package let remedy: String

        package init(problem: String, remedy: String) {
            self.problem = problem
            self.remedy = remedy
        }
    }

    /// The schemes of database URIs.
    package static let schemes = ["postgresql://", "postgres://"]
    /// The rule for the value of a key, for messages.
    package static let requirement = "\"postgresql://HOST,HOST/DATABASE\""

    /// The text of the URI, unchanged.
    package let text: String
    /// The hosts. Each is a name, an address without brackets, or the folder of a socket. Empty if libpq determines the
    /// hosts.
    package let hosts: [String]
    /// The parameters after `?`, by name.
    private let parameters: [String: String]

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
        let parameters = try Self.parameters(parts.count > 1 ? parts[1] : "")
        guard place.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { throw .noURI }
        let authority = place.prefix { $0 != "/" }
        let listed = authority.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false).last ?? ""
        var hosts: [String] = []
        for host in listed.split(separator: ",", omittingEmptySubsequences: false) {
            guard let name = Self.host(host) else { throw .noURI }
            hosts.append(name)
        }
        if hosts == [""] { hosts = [] }
        for name in ["host", "hostaddr"] {
            hosts += parameters[name]?.split(separator: ",").map { String($0) } ?? []
        }
        self.text = text
        self.hosts = hosts
        self.parameters = parameters
    }

    /// True if the URI names only servers on this machine, by Unix socket or loopback address. False if the URI names a
    /// service, because its hosts are in a file.
    package var isLocal: Bool {
        self.parameters["service"] == nil && self.hosts.allSatisfy { Self.isLocal($0) }
    }

    /// Returns the value of a parameter; nil if the URI does not have it.
    package subscript(parameter: String) -> String? { self.parameters[parameter] }

    /// Returns the connection string for libpq: the URI, with defaults for parameters that a gateway needs.
    ///
    /// - Parameter allowsUnverifiedServer: true if the identity of servers on other machines need not be verified.
    package func connectionString(allowsUnverifiedServer: Bool) -> String {
        var added: [String] = []
        // If the URI names no host, PGHOST may name a remote one. Without PGHOST, libpq uses a Unix socket and ignores
        // sslmode.
        let isCertain = self.isLocal && !self.hosts.isEmpty
        if !isCertain, !allowsUnverifiedServer, self["sslmode"] == nil { added.append("sslmode=verify-full") }
        if self["target_session_attrs"] == nil { added.append("target_session_attrs=read-write") }
        if self["application_name"] == nil { added.append("fallback_application_name=wakegate") }
        guard !added.isEmpty else { return self.text }
        let separator = !self.text.contains("?") ? "?" : self.text.hasSuffix("?") || self.text.hasSuffix("&") ? "" : "&"
        return self.text + separator + added.joined(separator: "&")
    }
}

extension DatabaseAddress {
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
        for pair in text.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            if name == "password" || name == "sslpassword" { throw .password }
            guard parts.count == 2, let value = Self.decoded(parts[1]) else { throw .noURI }
            guard Self.known.contains(name) else { throw .unknown(name) }
            parameters[name] = value
        }
        if let session = parameters["target_session_attrs"], !self.writableSessions.contains(session) {
            throw .readOnlySession
        }
        return parameters
    }

    /// Returns the host in `HOST`, `HOST:PORT` or `[IPv6]:PORT`; nil for any other text.
    private static func host(_ text: Substring) -> String? {
        var rest = text
        var host = text
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
            rest = text[text.index(after: end)...]
        } else {
            host = text.prefix { $0 != ":" }
            rest = text.dropFirst(host.count)
        }
        guard rest.isEmpty || rest.first == ":" else { return nil }
        let port = rest.dropFirst()
        guard port.utf8.allSatisfy({ $0 &- 0x30 <= 9 }), port.isEmpty || UInt16(port) != nil else { return nil }
        return self.decoded(host)
    }

    /// Decodes percent-encoded text; returns nil if an escape is invalid or stands for a zero byte.
    private static func decoded(_ text: Substring) -> String? {
        guard let decoded = String(text).percentDecoded, !decoded.utf8.contains(0) else { return nil }
        return decoded
    }

    private static func isLocal(_ host: String) -> Bool {
        // A folder with a Unix socket, or a socket in the abstract namespace.
        if host.isEmpty || host.hasPrefix("/") || host.hasPrefix("@") { return true }
        if host == "localhost" || host == "::1" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}

extension DatabaseAddress.Fault {
    /// The fault of text that cannot be parsed. The fault does not quote the text, which may contain a password.
    fileprivate static let noURI = Self(
        problem: "is not the address of a database",
        remedy: "write \(DatabaseAddress.requirement), with % and two digits for what a URI does not take"
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

/// Where a database is and as whom to go there: a connection string of libpq, as a URI.
///
/// It never shows the password, neither in `description` nor to reflection; passfile and service are libpq's own.
package struct PostgresAddress: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// The string as it was given, password included.
    let text: String
    let hosts: [PostgresHost]
    /// What `options` of the string says.
    let serverOptions: String
    /// Whether connections that leave the machine may be without verified TLS.
    package let isInsecureAllowed: Bool
    /// Whether the string itself has a password, which a passfile should have instead.
    package let hasPassword: Bool
    /// The name of the database; empty when it is left to libpq.
    package let database: String
    /// A URI without passwords, for logs and errors: `postgresql://user@db1:5432,db2:5432/wakegate`.
    package let description: String

    /// Reads a connection string.
    ///
    /// - Parameters:
    ///   - text: such as `postgresql://user@h1:5432,h2/db?target_session_attrs=read-write`.
    ///   - isInsecureAllowed: whether connections that leave the machine may be without `sslmode=verify-full`.
    /// - Throws: `invalidAddress` when libpq cannot read it, `insecure` when it names a server off loopback without
    ///   `sslmode=verify-full`. What a service file and the environment say is seen when it is connected to.
    package init(_ text: String, isInsecureAllowed: Bool = false) throws(PostgresError) {
        guard Self.isAddress(text) else {
            throw PostgresError(kind: .invalidAddress, message: "this is not the address of a database")
        }
        guard let options = ConnectionOptions(parsing: text) else {
            throw PostgresError(kind: .invalidAddress, message: "libpq cannot read the address of the database")
        }
        let (names, addresses, ports) = (options.list("host"), options.list("hostaddr"), options.list("port"))
        let count = max(names.count, addresses.count)
        guard names.isEmpty || addresses.isEmpty || names.count == addresses.count,
            ports.count <= 1 || ports.count == max(count, 1), count < 2 || !(names + addresses).contains("")
        else {
            throw PostgresError(
                kind: .invalidAddress,
                message: "hosts, addresses and ports of the address are not equally many, or one is empty"
            )
        }
        // A character of a password that is not encoded makes of its rest a host, a port or a database.
        let database = options["dbname"] ?? ""
        guard !(names + addresses + [database]).contains(where: { $0.dropFirst().contains("@") }),
            ports.allSatisfy({ $0.isEmpty || (UInt16($0) ?? 0) > 0 })
        else {
            throw PostgresError(
                kind: .invalidAddress,
                message: "a host, a port or the database in the address is none"
            )
        }
        self.text = text
        self.hosts = count == 0 ? [] : PostgresHost.list(in: options)
        self.serverOptions = options["options"] ?? ""
        self.isInsecureAllowed = isInsecureAllowed
        self.hasPassword = options["password"] != nil
        self.database = database
        let user = options["user"].map { "\($0)@" } ?? ""
        let wanted = options["target_session_attrs"].map { "?target_session_attrs=\($0)" } ?? ""
        let servers = self.hosts.map(\.description).joined(separator: ",")
        let service = options["service"].map { "service \($0): " } ?? ""
        self.description = "\(service)postgresql://\(user)\(servers)/\(database)\(wanted)"
        if let remote = self.hosts.first(where: \.isRemote) { try self.check(remote, options) }
    }

    /// Whether a text is meant as an address of a database, readable or not.
    package static func isAddress(_ text: String) -> Bool {
        text.hasPrefix("postgresql://") || text.hasPrefix("postgres://")
    }

    package var debugDescription: String { self.description }

    package var customMirror: Mirror { Mirror(self, children: ["address": self.description]) }

    /// Checks that what is sent to a host leaves the machine for that server alone.
    func check(_ host: PostgresHost, _ options: ConnectionOptions) throws(PostgresError) {
        guard !self.isInsecureAllowed, host.isRemote, options["sslmode"] != "verify-full" else { return }
        throw PostgresError(
            kind: .insecure,
            message: "sslmode is not verify-full, so that anybody on the way could read and change everything",
            server: host.description
        )
    }
}

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

/// What libpq makes of a connection string, or of a connection: values by keyword.
struct ConnectionOptions {
    private let values: [String: String]

    /// - Returns: nil when libpq cannot read the text.
    init?(parsing text: String) {
        guard let values = LibPQ.options(parsing: text) else { return nil }
        self.values = values
    }

    /// What is in force for a connection, the environment and the service file considered; nil without memory for it.
    init?(of connection: LibPQ) {
        guard let values = connection.options else { return nil }
        self.values = values
    }

    /// A value that is set and not empty.
    subscript(_ keyword: String) -> String? {
        guard let value = self.values[keyword], !value.isEmpty else { return nil }
        return value
    }

    /// A value of several parts, one for each host.
    func list(_ keyword: String) -> [String] {
        self[keyword].map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) } ?? []
    }
}

/// What libpq is told of a connection to be made: keywords and values, the last of a keyword in force.
struct ConnectionWords {
    private(set) var words: [(keyword: String, value: String)]

    /// - Parameters:
    ///   - address: the connection string.
    ///   - host: the one of its servers to connect to; nil when it names none.
    ///   - application: what the server shows.
    ///   - settings: of the session.
    init(_ address: PostgresAddress, host: PostgresHost?, application: String, settings: [PostgresSetting]) {
        // Defaults that the string may change: a peer that is gone without a word is found within ten seconds.
        self.words = [
            ("keepalives_idle", "5"), ("keepalives_interval", "2"), ("keepalives_count", "3"),
            ("tcp_user_timeout", "10000"),
            // Before TLS is even asked for, libpq would take Kerberos' own encryption, of whatever server.
            ("gssencmode", "disable"), ("fallback_application_name", application), ("dbname", address.text),
        ]
        if let host {
            // Empty values would leave the whole lists in force.
            if !host.name.isEmpty { self.words.append(("host", host.name)) }
            if !host.address.isEmpty { self.words.append(("hostaddr", host.address)) }
            if !host.port.isEmpty { self.words.append(("port", host.port)) }
        }
        self.words.append(("client_encoding", "UTF8"))
        guard !settings.isEmpty else { return }
        let arguments = [address.serverOptions] + settings.map(\.argument)
        self.words.append(("options", arguments.filter { !$0.isEmpty }.joined(separator: " ")))
    }
}

/// A setting of a session, in force from its first moment and above those of the user and of the database.
package struct PostgresSetting: Hashable, Sendable {
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// As an argument of the server, in which a space ends the argument.
    var argument: String {
        let value = self.value.reduce(into: "") { text, character in
            if character == " " || character == "\\" { text.append("\\") }
            text.append(character)
        }
        return "-c \(self.name)=\(value)"
    }
}

/// The address of a database: a connection string of libpq, as a URI.
///
/// The password is never shown, neither by `description` nor by reflection. libpq reads the passfile and the service
/// file.
package struct PostgresAddress: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// The original string, including a password.
    let text: String
    let hosts: [PostgresHost]
    /// The value of `options` in the string.
    let serverOptions: String
    /// True if remote connections may be made without verified TLS.
    package let isInsecureAllowed: Bool
    /// True if the string contains a password, which should be in a passfile instead.
    package let hasPassword: Bool
    /// The name of the database; empty if libpq chooses it.
    package let database: String
    /// A URI without passwords, for logs and errors: `postgresql://user@db1:5432,db2:5432/wakegate`.
    package let description: String

    /// Parses a connection string.
    ///
    /// - Parameters:
    ///   - text: such as `postgresql://user@h1:5432,h2/db?target_session_attrs=read-write`.
    ///   - isInsecureAllowed: true if remote connections may be made without `sslmode=verify-full`.
    /// - Throws: `invalidAddress` if libpq cannot parse the string, `insecure` if the string names a remote server
    ///   without `sslmode=verify-full`. Options of a service file and the environment are checked when connecting.
    package init(_ text: String, isInsecureAllowed: Bool = false) throws(PostgresError) {
        guard Self.isAddress(text) else {
            throw Self.invalid("this is not the address of a database")
        }
        guard let options = LibPQ.options(parsing: text) else {
            throw Self.invalid("libpq cannot read the address of the database")
        }
        let (names, addresses, ports) = (options.list("host"), options.list("hostaddr"), options.list("port"))
        let count = max(names.count, addresses.count)
        guard names.isEmpty || addresses.isEmpty || names.count == addresses.count,
            ports.count <= 1 || ports.count == max(count, 1), count < 2 || !(names + addresses).contains("")
        else {
            throw Self.invalid("hosts, addresses and ports of the address are not equally many, or one is empty")
        }
        // If a password contains an unencoded delimiter, libpq parses the rest of it as a host, a port or a database.
        let database = options["dbname"] ?? ""
        guard !(names + addresses + [database]).contains(where: { $0.dropFirst().contains("@") }),
            ports.allSatisfy({ $0.isEmpty || (UInt16($0) ?? 0) > 0 })
        else {
            throw Self.invalid("a host, a port or the database in the address is none")
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

    private static func invalid(_ message: String) -> PostgresError {
        PostgresError(kind: .invalidAddress, message: message)
    }

    /// Returns true if a text looks like the address of a database, valid or not.
    package static func isAddress(_ text: String) -> Bool {
        text.hasPrefix("postgresql://") || text.hasPrefix("postgres://")
    }

    package var debugDescription: String { self.description }

    package var customMirror: Mirror { Mirror(self, children: ["address": self.description]) }

    /// Checks that connections to a remote host use verified TLS.
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
    /// A name, an address or the folder of a socket; empty if libpq chooses it.
    let name: String
    /// An address to connect to instead of resolving the name; empty for none.
    let address: String
    /// The port in digits; empty for 5432.
    let port: String

    /// True if connections to the server leave the machine.
    var isRemote: Bool {
        let place = self.address.isEmpty ? self.name : self.address
        guard !place.isEmpty, !place.hasPrefix("/"), !place.hasPrefix("@") else { return false }
        return place != "localhost" && place != "::1" && !Self.isLoopback(place)
    }

    /// The host and port for logs.
    var description: String {
        let place = self.name.isEmpty ? self.address : self.name
        let host = place.isEmpty ? "local socket" : place.contains(":") ? "[\(place)]" : place
        return "\(host):\(self.port.isEmpty ? "5432" : self.port)"
    }

    /// Returns the servers in the options; without any, one server with an empty name.
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

/// The options of a connection string or of a connection: values by keyword.
struct ConnectionOptions {
    let values: [String: String]

    /// Returns the value of an option; nil if it is not set or empty.
    subscript(_ keyword: String) -> String? {
        guard let value = self.values[keyword], !value.isEmpty else { return nil }
        return value
    }

    /// Returns the comma-separated parts of an option's value, such as one for each host.
    func list(_ keyword: String) -> [String] {
        self[keyword].map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) } ?? []
    }
}

extension PostgresAddress {
    /// Returns the keywords and values for a new connection; the last value of a keyword is effective.
    ///
    /// - Parameters:
    ///   - host: the server to connect to; nil if the address names none.
    ///   - application: the name that the server shows.
    ///   - settings: the settings of the session.
    func words(
        host: PostgresHost?,
        application: String,
        settings: [PostgresSetting]
    ) -> [(keyword: String, value: String)] {
        // Defaults that the string may override: a peer that disappears is detected within ten seconds.
        var words: [(keyword: String, value: String)] = [
            ("keepalives_idle", "5"), ("keepalives_interval", "2"), ("keepalives_count", "3"),
            ("tcp_user_timeout", "10000"),
            // Without this, libpq would try Kerberos encryption before TLS.
            ("gssencmode", "disable"), ("fallback_application_name", application), ("dbname", self.text),
        ]
        if let host {
            // An empty value would not override the lists in the address.
            if !host.name.isEmpty { words.append(("host", host.name)) }
            if !host.address.isEmpty { words.append(("hostaddr", host.address)) }
            if !host.port.isEmpty {
                words.append(("port", host.port))
            } else if self.hosts.count > 1 {
                // libpq reads several hosts without ports as a list of empty ports, which does not fit one host.
                words.append(("port", "5432"))
            }
        }
        words.append(("client_encoding", "UTF8"))
        guard !settings.isEmpty else { return words }
        let arguments = [self.serverOptions] + settings.map(\.argument)
        words.append(("options", arguments.filter { !$0.isEmpty }.joined(separator: " ")))
        return words
    }
}

/// A setting of a session. It overrides the settings of the user and of the database.
package struct PostgresSetting: Hashable, Sendable {
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// The setting as a command-line argument of the server, with spaces escaped.
    var argument: String {
        let value = self.value.reduce(into: "") { text, character in
            if character == " " || character == "\\" { text.append("\\") }
            text.append(character)
        }
        return "-c \(self.name)=\(value)"
    }
}

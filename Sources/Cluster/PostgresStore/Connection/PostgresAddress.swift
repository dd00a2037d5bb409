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
            throw PostgresError(kind: .invalidAddress, message: "this is no address of a database")
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

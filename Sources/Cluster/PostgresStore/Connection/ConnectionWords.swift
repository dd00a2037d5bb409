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

/// An error of the server or of the connection to it.
package struct PostgresError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure.
    package let kind: Kind
    /// The SQLSTATE of five characters; empty if the error is not from a server.
    package let state: String
    /// The message as one line without a period. Never contains a password.
    package let message: String
    /// The server, such as `db1:5432`; empty if no server is involved.
    package let server: String

    package init(kind: Kind, state: String = "", message: String, server: String = "") {
        self.kind = kind
        self.state = state
        self.message = message
        self.server = server
    }

    /// Creates an error reported by a server.
    ///
    /// - Parameters:
    ///   - state: the SQLSTATE.
    ///   - message: the message as one line.
    ///   - server: the server.
    package init(state: String, message: String, server: String = "") {
        self.init(kind: Kind(state: state), state: state, message: message, server: server)
    }

    /// The remedy as one sentence.
    package var remedy: String { self.kind.remedy }

    /// One line for a log: the server, its message, its code and the remedy.
    package var description: String {
        let server = self.server.isEmpty ? "" : "\(self.server): "
        let state = self.state.isEmpty ? "" : " (\(self.state))"
        return "PostgreSQL: \(server)\(self.message)\(state). \(self.remedy)"
    }
}

extension PostgresError {
    /// The kinds of failure that callers distinguish.
    package enum Kind: Hashable, Sendable, CaseIterable {
        /// The connection would not be secure.
        case insecure
        /// The server's certificate could not be verified.
        case untrusted
        /// No server of the required kind could be reached.
        case unreachable
        /// An open connection is lost; the server may have executed the last statements.
        case connectionLost
        /// The server rejects this user.
        case notAllowed
        /// A connection pool such as pgbouncer answered instead of PostgreSQL.
        case pool
        /// The database does not exist.
        case noDatabase
        case uniqueViolation
        case deadlock
        /// Other transactions changed the same rows at the same time.
        case serialization
        /// A lock was not available at once, or within its timeout.
        case lockNotAvailable
        /// The server is a standby, or read-only.
        case readOnly
        /// The server is shutting down or starting.
        case adminShutdown
        /// The timeout of an idle session or transaction has passed.
        case idleTimeout
        /// A statement was cancelled, by its timeout or by a user.
        case cancelled
        case diskFull
        case outOfMemory
        case tooManyConnections
        /// A statement uses an unknown object, or an object that this user may not use.
        case wrongSchema
        case insufficientPrivilege
        /// Stored data is damaged.
        case corrupt
        /// The server's answer violates the protocol, or this process has no memory for the answer.
        case client
        case other

        /// Creates the kind for a SQLSTATE.
        init(state: String) {
            switch state {
            case "23505": self = .uniqueViolation
            case "40P01": self = .deadlock
            case "40001": self = .serialization
            case "55P03": self = .lockNotAvailable
            case "25006": self = .readOnly
            case "57P01", "57P02", "57P03", "57P04": self = .adminShutdown
            case "57P05", "25P03": self = .idleTimeout
            case "57014": self = .cancelled
            case "53100": self = .diskFull
            case "53200": self = .outOfMemory
            case "53300": self = .tooManyConnections
            case "3D000": self = .noDatabase
            case "28000", "28P01": self = .notAllowed
            case "42501": self = .insufficientPrivilege
            case "XX001", "XX002": self = .corrupt
            case "": self = .client
            case _ where state.hasPrefix("08"): self = .connectionLost
            case _ where state.hasPrefix("42"), _ where state.hasPrefix("3F"): self = .wrongSchema
            case _: self = .other
            }
        }

        /// The remedy as one sentence.
        package var remedy: String {
            switch self {
            case .insecure:
                "Add sslmode=verify-full (and sslrootcert=FILE, unless the server's certificate is of a public "
                    + "authority), or allow insecure connections where no other machine is on the network."
            case .untrusted:
                "See that sslrootcert names the authority of the server's certificate, and that the certificate is for "
                    + "the host as the address has it."
            case .unreachable:
                "See that PostgreSQL runs there, that it listens on that address and that no firewall is in between; "
                    + "with target_session_attrs=read-write, that one of the servers is the primary."
            case .connectionLost: "The connection is made anew; see PostgreSQL's log for why it ended."
            case .notAllowed:
                "See that the user exists, that its password is in the passfile (~/.pgpass, mode 0600) and that "
                    + "pg_hba.conf lets it in from here."
            case .pool: "Name PostgreSQL itself in the address, with its own port (5432), and no connection pool."
            case .noDatabase: "Create the database (createdb), or name the right one."
            case .uniqueViolation: "Another session wrote the same row first; read it and try again."
            case .deadlock, .serialization, .lockNotAvailable: "Others held the same rows; do it again."
            case .readOnly:
                "The server is a standby or read-only: name all servers and add target_session_attrs=read-write."
            case .adminShutdown: "PostgreSQL stops or starts; the connection is made anew when it runs."
            case .idleTimeout: "The session was idle for too long, as when this process stood still; it begins anew."
            case .cancelled: "A user or a time-out cancelled the statement; set no statement_timeout for this user."
            case .diskFull: "Free space on PostgreSQL's disk; the gateway then continues on its own."
            case .outOfMemory: "Give the machine of PostgreSQL more memory, or lower its work_mem."
            case .tooManyConnections: "Raise max_connections of PostgreSQL, or the user's connection limit."
            case .wrongSchema: "See that the schema is WakeGate's and of its version: run wakegate serve --check."
            case .insufficientPrivilege: "Grant the user what the article on PostgreSQL lists."
            case .corrupt: "Stop writing to this server, and restore or promote a standby; see PostgreSQL's log."
            case .client: "See the log of PostgreSQL and of this process."
            case .other: "See PostgreSQL's log."
            }
        }
    }
}

extension PostgresError {
    /// Creates the error of a failed statement. Omits the server's detail, which contains values of rows.
    init(_ failure: PostgresNotice, server: String) {
        let message = failure.message.isEmpty ? "the connection is lost" : failure.message
        if failure.state.isEmpty {
            // The error is from libpq, which reports the end of a connection this way.
            self.init(kind: .connectionLost, message: message, server: server)
        } else {
            self.init(state: failure.state, message: message, server: server)
        }
    }
}

/// Interprets libpq's messages about failed connection attempts.
enum ConnectFailure {
    /// Creates the error of one attempt from libpq's message, which contains a SQLSTATE if the server rejected the
    /// connection.
    static func read(_ text: String, server: String) -> PostgresError {
        let message = self.line(text) ?? "the connection cannot be made"
        guard let state = self.state(in: message) else {
            // Without a code, the message is from libpq: about the network, TLS, or a missing password.
            let kind: PostgresError.Kind =
                if message.contains("no password supplied") {
                    .notAllowed
                } else if message.contains("certificate") || message.contains("does not support SSL") {
                    .untrusted
                } else {
                    .unreachable
                }
            return PostgresError(kind: kind, message: message, server: server)
        }
        // PostgreSQL accepts every startup parameter that a gateway sends; pgbouncer rejects unknown parameters.
        if message.contains("unsupported startup parameter") {
            return PostgresError(
                kind: .pool,
                state: state,
                message: "this is a connection pool such as pgbouncer, and no PostgreSQL "
                    + "(\(self.dropping(state, of: message)))",
                server: server
            )
        }
        return PostgresError(state: state, message: self.dropping(state, of: message), server: server)
    }

    /// Combines the errors of the attempts at all servers of an address. The kind is that of the first server that was
    /// reached, or `unreachable`.
    static func sum(of attempts: [PostgresError]) -> PostgresError {
        guard attempts.count != 1, let telling = attempts.first(where: { $0.kind != .unreachable }) ?? attempts.first
        else { return attempts.first ?? PostgresError(kind: .unreachable, message: "the address names no server") }
        return PostgresError(
            kind: telling.kind,
            state: telling.state,
            message: attempts.map { "\($0.server): \($0.message)" }.joined(separator: "; ")
        )
    }

    /// Returns a message as one line, without libpq's hints and source locations; nil if no text remains.
    static func line(_ text: String) -> String? {
        let lines = text.split(separator: "\n").map(self.trimmed).filter { line in
            !line.isEmpty && !line.hasPrefix("LOCATION:") && !line.hasPrefix("This probably means the server")
                && !line.hasPrefix("before or while processing") && !line.hasPrefix("Is the server running")
        }
        return lines.isEmpty ? nil : lines.joined(separator: ", ")
    }

    private static func trimmed(_ line: Substring) -> String {
        var line = line.drop(while: \.isWhitespace)
        while let last = line.last, last.isWhitespace || last == "." { line.removeLast() }
        return String(line)
    }

    /// Returns the SQLSTATE after the severity, such as `28P01` in `FATAL:  28P01: password authentication failed`.
    private static func state(in message: String) -> String? {
        let words = message.split(separator: " ")
        for (word, next) in zip(words, words.dropFirst()) where word.hasSuffix(":") && next.hasSuffix(":") {
            let code = next.dropLast()
            // A code contains a digit, unlike FATAL, which has the same length.
            let isCode =
                code.utf8.count == 5 && code.utf8.contains { (0x30...0x39).contains($0) }
                && code.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
            if isCode { return String(code) }
        }
        return nil
    }

    private static func dropping(_ state: String, of message: String) -> String {
        message.split(separator: " ").filter { $0 != "\(state):" }.joined(separator: " ")
    }
}

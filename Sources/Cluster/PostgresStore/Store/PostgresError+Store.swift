import Engine

extension PostgresError {
    /// The error code with which `wakegate.mark` refuses a commit.
    static let fencedState = "WG001"

    /// The error of a gateway that others have marked as dead, or of a connection that a newer connection has replaced.
    static let fenced = PostgresError(state: Self.fencedState, message: "the gateway's number is dead")
    static let unexpectedAnswer = PostgresError(kind: .client, message: "an answer that no statement of WakeGate has")

    /// True if an immediate retry of the transaction may succeed.
    var isConflict: Bool {
        switch self.kind {
        case .uniqueViolation, .deadlock, .serialization, .lockNotAvailable, .idleTimeout: true
        default: false
        }
    }

    /// True if another server of the same database may succeed, because the cause may be this server.
    var isOfServer: Bool {
        guard self.state != Self.fencedState, !self.isConflict else { return false }
        return switch self.kind {
        case .insecure, .noDatabase, .wrongSchema, .insufficientPrivilege: false
        default: true
        }
    }
}

extension StoreError {
    static let unknown = StoreError(message: "The connection to PostgreSQL was lost.")

    /// Describes the server's error and its remedy.
    init(_ error: PostgresError) {
        guard error.state == PostgresError.fencedState else {
            self.init(message: error.description)
            return
        }
        self.init(
            message: "PostgreSQL: other gateways took this one for dead, as it said nothing for three seconds. It "
                + "begins anew; see what made it stand still."
        )
    }

    /// - Parameters:
    ///   - server: host and port.
    ///   - found: the version of the tables, which this program does not support.
    init(server: String, newerSchema found: Int32) {
        self.init(
            message: "PostgreSQL at \(server) has schema version \(found) of WakeGate, and this program works with "
                + "version \(Schema.version). Start the newer WakeGate that made it."
        )
    }

    /// - `version`: the server's version, such as 140005.
    init(server: String, oldServer version: Int) {
        self.init(
            message: "PostgreSQL at \(server) is version \(version / 10_000), and WakeGate needs 15 or later. "
                + "Upgrade the server, or name another one in `store`."
        )
    }

    /// Reports a server that does not accept writes.
    init(readOnlyServer server: String) {
        self.init(
            message: "PostgreSQL at \(server) is read-only: it is a standby, or its default_transaction_read_only is "
                + "on. Name every node in `store`, add target_session_attrs=read-write, and see that one of them is "
                + "the primary."
        )
    }

    /// Reports a server that could not confirm commits, because no standby is connected.
    init(serverWithoutStandby server: String) {
        self.init(
            message: "PostgreSQL at \(server) waits for a standby with each commit, and none is connected. See that a "
                + "standby runs and reaches it (pg_stat_replication), or change synchronous_standby_names."
        )
    }

    /// Reports a connection pool in place of the server.
    init(poolAt server: String) {
        self.init(
            message: "A connection pool such as pgbouncer answers at \(server), and not PostgreSQL itself. A gateway's "
                + "number, settings and notices belong to a session of its own: name PostgreSQL itself in `store`, "
                + "with its own port (5432)."
        )
    }

    /// - `holder`: the session that holds the lock.
    init(server: String, schemaLockedBy holder: String) {
        self.init(
            message: "PostgreSQL at \(server): another session holds the lock under which tables are made "
                + "(\(holder)). Wait if it is a gateway that "
                + "upgrades the tables; otherwise end it with pg_terminate_backend, and let only gateways connect."
        )
    }

    /// - `count`: the number of gateway numbers tried.
    init(server: String, lockedNumbers count: Int) {
        self.init(
            message: "PostgreSQL at \(server): other sessions hold the advisory locks of the next \(count) gateway "
                + "numbers. Find them in pg_locks (classid \(AdvisoryLock.gateways)), end them, and let only "
                + "gateways connect to the database."
        )
    }

    /// - `table`: the table whose rows are locked.
    init(server: String, lockedTable table: String) {
        self.init(
            message: "PostgreSQL at \(server): another session has held a lock on \(table) for three seconds. See "
                + "pg_locks and pg_stat_activity for who it is; a gateway that waits for a standby does so, too."
        )
    }

    /// - `tables`: the tables that the role may not read or write.
    init(server: String, role: String, withoutRightsOn tables: String) {
        self.init(
            message: "PostgreSQL at \(server): the role \(role) may not read and write \(tables) of schema wakegate. "
                + "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA wakegate TO it, and USAGE ON ALL "
                + "SEQUENCES and on the schema."
        )
    }

    /// - `seconds`: the time without an answer.
    init(silentServer server: String, seconds: Int64) {
        self.init(
            message: "PostgreSQL at \(server) answered nothing for \(seconds) s. See that the server runs and can be "
                + "reached."
        )
    }
}

/// A read-only check of a database for faults that prevent a start and for risks of losing pushes.
package struct DatabaseCheck {
    /// The result of a check.
    package struct Report {
        /// The faults that prevent a start or can lose pushes.
        package var faults: [Fault] = []
        /// The risks that do not prevent a start.
        package var warnings: [Fault] = []
    }

    /// A fault and its remedy.
    package struct Fault: Hashable, Sendable {
        package let problem: String
        package let remedy: String
    }

    private let client: PostgresClient
    private let settings: StoreSettings
    private var server: String { self.client.server }

    /// Checks the database. Blocks until the queries are answered.
    package static func report(_ settings: StoreSettings) -> Report {
        do throws(PostgresError) {
            let client = try PostgresClient(
                settings.address,
                application: "wakegate check",
                hostMilliseconds: StoreSettings.connectMilliseconds,
                answerMilliseconds: StoreSettings.answerMilliseconds
            )
            let check = DatabaseCheck(client: client, settings: settings)
            if let fault = try check.poolFault() { return Report(faults: [fault]) }
            // The other queries may fail on a server that is too old.
            if let fault = check.versionFault { return Report(faults: [fault]) }
            return try Report(faults: check.serverFaults() + check.schemaFaults(), warnings: check.accessWarnings())
        } catch {
            let server = error.server.isEmpty ? "" : "\(error.server): "
            let remedy = error.remedy.hasSuffix(".") ? String(error.remedy.dropLast()) : error.remedy
            return Report(faults: [Fault(problem: "\(server)\(error.message)", remedy: remedy)])
        }
    }

    /// Returns a fault if a connection pool answers. A pool assigns its own backend numbers.
    private func poolFault() throws(PostgresError) -> Fault? {
        let backend = try self.client.query("SELECT pg_backend_pid()").int32(0, 0)
        guard backend != self.client.backend else { return nil }
        return Fault(
            problem: "a connection pool such as pgbouncer answers at \(self.server), and not PostgreSQL itself",
            remedy: "name PostgreSQL itself, with its own port (5432)"
        )
    }

    private func accessWarnings() throws(PostgresError) -> [Fault] {
        let row = try self.client.query(
            """
            SELECT current_database()::text, has_database_privilege('public', current_database(), 'CONNECT'),
                quote_ident(current_database())
            """
        )
        guard row.flag(0, 1) else { return [] }
        let warning = Fault(
            problem: "every role of \(self.server) may connect to the database \(row.text(0, 0)) (PUBLIC has CONNECT): "
                + "such a role can read gateways' notices, and delay gateways with locks",
            remedy: "REVOKE CONNECT ON DATABASE \(row.text(0, 2)) FROM PUBLIC, and GRANT it to the roles that need it"
        )
        return [warning]
    }

    private var versionFault: Fault? {
        guard self.client.version < 150_000 else { return nil }
        return Fault(
            problem: "\(self.server) is PostgreSQL \(self.client.version / 10_000), and a gateway needs 15 or later",
            remedy: "upgrade it, or name another server"
        )
    }

    private func serverFaults() throws(PostgresError) -> [Fault] {
        let row = try self.client.query(
            """
            SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean,
                current_setting('fsync')::boolean, current_setting('synchronous_commit') <> 'off' AND (
                    current_setting('synchronous_commit') <> 'local'
                    OR current_setting('synchronous_standby_names') = ''),
                current_setting('max_connections')::integer
                    - current_setting('superuser_reserved_connections')::integer,
                current_setting('synchronous_commit')
            """
        )
        var faults: [Fault] = []
        if row.flag(0, 0) {
            let problem = "\(self.server) takes no writes: it is a standby, or default_transaction_read_only is on"
            let remedy = "name every node, with target_session_attrs=read-write, and see that one is the primary"
            faults.append(Fault(problem: problem, remedy: remedy))
        }
        if !row.flag(0, 1) {
            let problem = "\(self.server) answers before a commit is on the disk (fsync is off)"
            faults.append(Fault(problem: problem, remedy: "set fsync = on there, or pushes are lost when it dies"))
        }
        if !row.flag(0, 2) {
            let problem =
                "\(self.server) answers this user before a commit is safe (synchronous_commit is \(row.text(0, 4)))"
            let remedy = "set it to on for this user: only the gateway's own sessions do without that"
            faults.append(Fault(problem: problem, remedy: remedy))
        }
        let (free, needed) = (row.int32(0, 3), self.settings.connections + 4)
        if Int(free) < needed {
            let problem =
                "\(self.server) takes \(free) connections of all users together, and this gateway needs \(needed)"
            faults.append(Fault(problem: problem, remedy: "raise max_connections, or lower databaseConnections"))
        }
        return faults
    }

    private func schemaFaults() throws(PostgresError) -> [Fault] {
        let there = try self.client.query(
            """
            SELECT to_regnamespace('wakegate') IS NOT NULL, current_user::text, current_database()::text,
                has_database_privilege(current_database(), 'CREATE')
            """
        )
        let (user, database) = (there.text(0, 1), there.text(0, 2))
        guard there.flag(0, 0) else {
            guard !there.flag(0, 3) else { return [] }
            let problem = "the user \(user) may not make the schema wakegate in the database \(database)"
            let remedy = "GRANT CREATE ON DATABASE \(database) TO \(user), or start a gateway once as one who may"
            return [Fault(problem: problem, remedy: remedy)]
        }
        guard try self.client.query("SELECT has_schema_privilege('wakegate', 'USAGE')").flag(0, 0) else {
            let problem = "the user \(user) may not use the schema wakegate"
            return [Fault(problem: problem, remedy: "GRANT USAGE ON SCHEMA wakegate TO \(user)")]
        }
        let faults = try self.rightFaults(user)
        return try faults.isEmpty ? self.tableFaults(user) : faults
    }

    /// Returns a fault if the user lacks rights on tables or sequences.
    private func rightFaults(_ user: String) throws(PostgresError) -> [Fault] {
        let rows = try self.client.query(
            """
            SELECT coalesce(string_agg(c.relname, ', ' ORDER BY c.relname), '')::text FROM pg_class c
            WHERE c.relnamespace = 'wakegate'::regnamespace AND (
                (c.relkind IN ('r', 'p') AND NOT (
                    has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
                    AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')))
                OR (c.relkind = 'S' AND NOT has_sequence_privilege(c.oid, 'USAGE')))
            """
        )
        let names = rows.text(0, 0)
        guard !names.isEmpty else { return [] }
        let fault = Fault(
            problem: "the user \(user) may not read and write \(names) of the schema wakegate",
            remedy: "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA wakegate TO \(user), and USAGE ON "
                + "ALL SEQUENCES IN SCHEMA wakegate"
        )
        return [fault]
    }

    /// Returns a fault if the tables are newer than this program, or are older and the user may not upgrade them.
    private func tableFaults(_ user: String) throws(PostgresError) -> [Fault] {
        let there = try self.client.query("SELECT to_regclass('wakegate.meta') IS NOT NULL")
        let owns = try self.client.query(
            "SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = 'wakegate'"
        )
        let version = there.flag(0, 0) ? try self.client.query("SELECT version, oldest FROM wakegate.meta") : nil
        let (found, oldest) = version.map { $0.count == 1 ? ($0.int32(0, 0), $0.int32(0, 1)) : (0, 0) } ?? (0, 0)
        switch Schema.verdict(found: found, oldest: oldest) {
        case .current: return []
        case .newer(let found):
            let fault = Fault(
                problem: "the tables are of version \(found), and this program works with version \(Schema.version)",
                remedy: "start the newer WakeGate that made them"
            )
            return [fault]
        case .older(let found):
            guard owns.count == 1, !owns.flag(0, 0) else { return [] }
            let fault = Fault(
                problem: "the tables are of version \(found), and the user \(user) may not bring them to version "
                    + "\(Schema.version), since the schema is another's",
                remedy: "start a gateway once as the owner of the schema wakegate"
            )
            return [fault]
        }
    }
}

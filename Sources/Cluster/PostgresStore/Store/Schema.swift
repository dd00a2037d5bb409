/// The version of the tables, and the steps from each version to the next.
///
/// Programs of two consecutive versions may run at the same time, so a step changes nothing that the previous version
/// reads or writes. `meta.version` is the version of the tables, and `meta.oldest` the oldest program version that may
/// be attached. An upgrade sets `oldest` to the previous version. It is raised when no gateway of the previous version
/// is alive.
enum Schema {
    /// The version that this program supports.
    static let version: Int32 = 7

    /// The statements of each step; the first one creates the tables.
    static let steps: [[String]] = [
        SchemaTables.statements, EventTables.withoutRowIndexes, EventTables.bundles, SchemaTables.readyIndices, [], [],
        EventTables.summaries,
    ]

    /// Returns the statements that upgrade tables of version `found` to `version`; 0 for no tables. They must run in
    /// one transaction that holds the schema lock.
    static func statements(from found: Int32) -> [String] {
        let steps = self.steps[Int(found)..<Int(self.version)].joined()
        let oldest = found == 0 ? self.version : self.version - 1
        let meta =
            found == 0
            ? "INSERT INTO wakegate.meta (version, oldest) VALUES (\(self.version), \(oldest))"
            : "UPDATE wakegate.meta SET version = \(self.version), oldest = greatest(oldest, \(oldest))"
        return Array(steps) + [meta]
    }

    /// The compatibility of this program with the tables.
    enum Verdict: Hashable {
        case current
        /// The tables are older. Version 0 stands for no tables.
        case older(Int32)
        /// The tables are newer and incompatible with this program.
        case newer(Int32)
    }

    /// - Parameters:
    ///   - found: the version of the tables; 0 if they do not exist.
    ///   - oldest: the oldest program version that may be attached.
    static func verdict(found: Int32, oldest: Int32) -> Verdict {
        if oldest > self.version { return .newer(found) }
        return found < self.version ? .older(found) : .current
    }
}

/// The advisory locks. A lock is a pair of a class and a number.
enum AdvisoryLock {
    /// "wake" in ASCII. The locks of gateways have a separate class, so their numbers do not collide with other locks.
    static let gateways: Int32 = 0x7761_6B65
    static let others: Int32 = 0x7761_6B66

    static let schema: Int32 = 1
    static let topics: Int32 = 2
    static let retirement: Int32 = 3
    static let wakeCleanup: Int32 = 4
    static let imports: Int32 = 5
}

/// The tables as created by version 1 of the schema.
///
/// Tokens, records and similar values are bytes; times are milliseconds of policy time; topics are numbers from 0, and
/// -1 stands for all topics together. Values of a device that change in every transaction are in separate tables. Most
/// updates of `device` thus change no index and stay within their page.
enum SchemaTables {
    static let statements =
        [
            // An existing schema is used, so that the user needs no right to create schemas.
            "DO $$ BEGIN IF to_regnamespace('wakegate') IS NULL THEN CREATE SCHEMA wakegate; END IF; END $$",
            """
            CREATE TABLE wakegate.meta (
                single boolean PRIMARY KEY DEFAULT true CHECK (single),
                version integer NOT NULL,
                oldest integer NOT NULL,
                shift bigint NOT NULL DEFAULT 0)
            """,
            """
            CREATE TABLE wakegate.device (
                token bytea PRIMARY KEY,
                topic integer NOT NULL,
                version bigint NOT NULL,
                at bigint NOT NULL,
                has_tasks boolean NOT NULL,
                record bytea NOT NULL,
                tasks bytea NOT NULL,
                derived bytea NOT NULL)
            WITH (fillfactor = 70, \(frequentVacuum(scale: "0.05")))
            """,
            "ALTER TABLE wakegate.device ALTER record SET STORAGE EXTERNAL, ALTER tasks SET STORAGE EXTERNAL",
            "CREATE INDEX device_tasks ON wakegate.device (token) INCLUDE (topic) WHERE has_tasks",
            """
            CREATE TABLE wakegate.due (device bytea PRIMARY KEY, at bigint NOT NULL)
            WITH (fillfactor = 70, \(frequentVacuum(scale: "0.02")))
            """,
            "CREATE INDEX due_at ON wakegate.due (at)",
            """
            CREATE TABLE wakegate.ready (
                device bytea NOT NULL,
                kind smallint NOT NULL,
                name text NOT NULL,
                resources text[] NOT NULL,
                topic integer NOT NULL,
                since bigint NOT NULL,
                PRIMARY KEY (device, kind, name))
            WITH (\(frequentVacuum(scale: "0.02")))
            """,
            "CREATE INDEX ready_since ON wakegate.ready (topic, since)",
            """
            CREATE TABLE wakegate.wake (
                id uuid PRIMARY KEY,
                device bytea NOT NULL,
                holder integer NOT NULL,
                deadline bigint NOT NULL,
                ended bigint)
            WITH (fillfactor = 80, \(frequentVacuum(scale: "0.02")))
            """,
            "CREATE INDEX wake_holder ON wakegate.wake (holder, device) WHERE ended IS NULL",
            "CREATE INDEX wake_ended ON wakegate.wake (ended) WHERE ended IS NOT NULL",
            "CREATE TABLE wakegate.topic (id integer PRIMARY KEY, name text NOT NULL UNIQUE)",
            """
            CREATE TABLE wakegate.books (
                gateway integer NOT NULL,
                connection smallint NOT NULL,
                topic integer NOT NULL,
                counts bytea NOT NULL,
                PRIMARY KEY (gateway, connection, topic))
            WITH (fillfactor = 50, \(frequentVacuum(scale: "0")))
            """,
            """
            CREATE TABLE wakegate.rejection (
                gateway integer NOT NULL,
                connection smallint NOT NULL,
                topic integer NOT NULL,
                number bigint NOT NULL,
                content bytea NOT NULL,
                PRIMARY KEY (gateway, connection, topic))
            WITH (fillfactor = 50, \(frequentVacuum(scale: "0")))
            """,
            "CREATE INDEX books_topic ON wakegate.books (topic)",
            "CREATE SEQUENCE wakegate.value_version",
            """
            CREATE TABLE wakegate.value (
                name text PRIMARY KEY,
                version bigint NOT NULL DEFAULT nextval('wakegate.value_version'),
                content bytea NOT NULL)
            """,
            "CREATE SEQUENCE wakegate.gateway_number AS integer",
            """
            CREATE TABLE wakegate.gateway (
                number integer PRIMARY KEY,
                schema integer NOT NULL,
                since bigint NOT NULL,
                reported_at bigint NOT NULL,
                report bytea NOT NULL,
                alive boolean NOT NULL,
                buried boolean NOT NULL DEFAULT false)
            WITH (fillfactor = 50, \(frequentVacuum(scale: "0")))
            """,
            "CREATE INDEX gateway_there ON wakegate.gateway (number) WHERE NOT buried",
            """
            CREATE TABLE wakegate.connection (
                gateway integer NOT NULL,
                connection smallint NOT NULL,
                number bigint NOT NULL DEFAULT 0,
                moment bigint NOT NULL DEFAULT 0,
                epoch bigint NOT NULL DEFAULT 0,
                alive boolean NOT NULL,
                PRIMARY KEY (gateway, connection))
            WITH (fillfactor = 20, \(frequentVacuum(scale: "0")))
            """,
            "INSERT INTO wakegate.connection (gateway, connection, alive) VALUES (0, 0, false)",
            expect,
            mark,
            fence,
            leave,
        ] + EventTables.statements

    /// An expression for the part of a name up to its last dot, or the whole name without a dot. Patterns such as
    /// `com.example.*` find a name by this part.
    static let stem = "left(name, length(name) - strpos(reverse(name), '.') + 1)"

    /// The indexes for finding ready devices (from version 4): by push, by exact name, by name pattern.
    static let readyIndices = [
        "CREATE INDEX ready_pushes ON wakegate.ready (topic, since) WHERE kind = 0",
        """
        CREATE INDEX ready_names ON wakegate.ready (topic, kind, (name COLLATE "C"), resources, since) WHERE kind > 0
        """,
        """
        CREATE INDEX ready_stems ON wakegate.ready
            (topic, kind, (\(stem) COLLATE "C"), resources, since) WHERE kind > 0
        """,
    ]

    /// Returns vacuum settings for tables whose rows change constantly, so that dead rows are removed early.
    private static func frequentVacuum(scale: String) -> String {
        "autovacuum_vacuum_scale_factor = \(scale), autovacuum_vacuum_threshold = 1000, "
            + "autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 1"
    }

    /// An SQL function that fails a transaction if it has written fewer rows than it had read. Another transaction has
    /// then changed the missing rows.
    private static let expect = """
        CREATE FUNCTION wakegate.expect(there bigint, wanted bigint) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
            IF there <> wanted THEN
                RAISE EXCEPTION 'of % rows % were there', wanted, there USING ERRCODE = 'serialization_failure';
            END IF;
        END $$
        """

    /// An SQL function that records the number of the transaction. It fails if the gateway is dead or has replaced the
    /// connection.
    private static let mark = """
        CREATE FUNCTION wakegate.mark(
            gateway_ integer, connection_ smallint, epoch_ bigint, number_ bigint, moment_ bigint)
        RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
            UPDATE wakegate.connection
            SET number = number_, moment = greatest(moment, moment_)
            WHERE gateway = gateway_ AND connection = connection_ AND epoch = epoch_ AND alive;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'gateway % is dead, or its connection % was given up', gateway_, connection_
                    USING ERRCODE = '\(PostgresError.fencedState)';
            END IF;
        END $$
        """

    /// An SQL function that marks every gateway that has lost its lock as dead. A dead gateway cannot commit. A gateway
    /// with a commit in progress is skipped until the next call.
    private static let fence = """
        CREATE FUNCTION wakegate.fence(own integer) RETURNS void LANGUAGE plpgsql SET lock_timeout = '300ms' AS $$
        DECLARE silent integer;
        BEGIN
            FOR silent IN
                SELECT number FROM wakegate.gateway WHERE alive AND NOT buried AND number <> own ORDER BY number
            LOOP
                IF pg_try_advisory_xact_lock(\(AdvisoryLock.gateways), silent) THEN
                    BEGIN
                        UPDATE wakegate.connection SET alive = false WHERE gateway = silent AND alive;
                        UPDATE wakegate.gateway SET alive = false WHERE number = silent;
                    EXCEPTION WHEN lock_not_available THEN NULL;
                    END;
                END IF;
            END LOOP;
        END $$
        """

    /// An SQL function that marks a gateway's number as dead when the gateway leaves.
    private static let leave = """
        CREATE FUNCTION wakegate.leave(own integer) RETURNS void LANGUAGE sql AS $$
            UPDATE wakegate.connection SET alive = false WHERE gateway = own;
            UPDATE wakegate.gateway SET alive = false WHERE number = own;
        $$
        """
}

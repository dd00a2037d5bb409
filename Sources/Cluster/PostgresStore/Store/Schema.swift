/// The version of the tables, and how each follows from the one before.
///
/// A step adds, and changes nothing that programs one version back read or write: they run on beside this one.
/// `meta.version` is the version of the tables, `meta.oldest` the oldest program that may be attached: it stays one
/// version back until no gateway of the older program lives.
enum Schema {
    /// The version that this program works with.
    static let version: Int32 = 5

    /// What leads from each version to the next; the first makes the tables.
    static let steps: [[String]] = [
        SchemaTables.statements, EventTables.summaries, EventTables.bundles, SchemaTables.readyIndices, [],
    ]

    /// The version from which programs read the memory pressure in devices' records. It changed no table.
    static let memoryPressureFrom: Int32 = 5

    /// The statements that bring tables of version `found` to `version`; of 0 when there are none. Run within one
    /// transaction that has the lock of the schema.
    static func statements(from found: Int32) -> [String] {
        let steps = self.steps[Int(found)..<Int(self.version)].joined()
        let oldest = found == 0 ? self.version : self.version - 1
        let meta =
            found == 0
            ? "INSERT INTO wakegate.meta (version, oldest) VALUES (\(self.version), \(oldest))"
            : "UPDATE wakegate.meta SET version = \(self.version), oldest = greatest(oldest, \(oldest))"
        return Array(steps) + [meta]
    }

    /// Whether a program of this version may work with what was found.
    enum Verdict: Hashable {
        case current
        /// The tables are older, or there are none, which is version 0.
        case older(Int32)
        /// The tables are newer, and no longer those of this program.
        case newer(Int32)
    }

    /// - Parameters:
    ///   - found: the version of the tables; 0 when there are none.
    ///   - oldest: the oldest program that may be attached.
    static func verdict(found: Int32, oldest: Int32) -> Verdict {
        if oldest > self.version { return .newer(found) }
        return found < self.version ? .older(found) : .current
    }
}

/// The advisory locks: pairs of this class and a number.
enum AdvisoryLock {
    /// "wake" in ASCII. The locks of gateways have their own class, so that a number is no other lock.
    static let gateways: Int32 = 0x7761_6B65
    static let others: Int32 = 0x7761_6B66

    static let schema: Int32 = 1
    static let topics: Int32 = 2
    static let burial: Int32 = 3
    static let janitor: Int32 = 4
}

/// The tables as version 1 of the schema makes them.
///
/// Tokens, records and the like are bytes; moments are milliseconds of policy time; topics are numbers from 0, and -1
/// stands for all topics together. What every transaction changes of a device lies in a table of its own, so that most
/// updates of `device` touch no index and are made within its page.
enum SchemaTables {
    static let statements =
        [
            // One that was made for the gateway's user is taken: who may not make any need not.
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
            WITH (fillfactor = 70, \(eager(scale: "0.05")))
            """,
            "ALTER TABLE wakegate.device ALTER record SET STORAGE EXTERNAL, ALTER tasks SET STORAGE EXTERNAL",
            "CREATE INDEX device_tasks ON wakegate.device (token) INCLUDE (topic) WHERE has_tasks",
            """
            CREATE TABLE wakegate.due (device bytea PRIMARY KEY, at bigint NOT NULL)
            WITH (fillfactor = 70, \(eager(scale: "0.02")))
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
            WITH (\(eager(scale: "0.02")))
            """,
            "CREATE INDEX ready_since ON wakegate.ready (topic, since)",
            """
            CREATE TABLE wakegate.wake (
                id uuid PRIMARY KEY,
                device bytea NOT NULL,
                holder integer NOT NULL,
                deadline bigint NOT NULL,
                ended bigint)
            WITH (fillfactor = 80, \(eager(scale: "0.02")))
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
            WITH (fillfactor = 50, \(eager(scale: "0")))
            """,
            """
            CREATE TABLE wakegate.rejection (
                gateway integer NOT NULL,
                connection smallint NOT NULL,
                topic integer NOT NULL,
                number bigint NOT NULL,
                content bytea NOT NULL,
                PRIMARY KEY (gateway, connection, topic))
            WITH (fillfactor = 50, \(eager(scale: "0")))
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
            WITH (fillfactor = 50, \(eager(scale: "0")))
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
            WITH (fillfactor = 20, \(eager(scale: "0")))
            """,
            "INSERT INTO wakegate.connection (gateway, connection, alive) VALUES (0, 0, false)",
            expect,
            mark,
            fence,
            leave,
        ] + EventTables.statements

    /// An expression for the part of a name up to its last dot, by which patterns such as `com.example.*` find it; the
    /// whole name if it has no dot.
    static let stem = "left(name, length(name) - strpos(reverse(name), '.') + 1)"

    /// The indices of `ready` that claims read, from version 4: one for each way in which a stream names its lanes.
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

    /// What each table says of its vacuum: rows that change all the time are cleared away while there are few of them.
    private static func eager(scale: String) -> String {
        "autovacuum_vacuum_scale_factor = \(scale), autovacuum_vacuum_threshold = 1000, "
            + "autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 1"
    }

    /// Fails the transaction that wrote fewer rows than it had read: the rows are another's by now.
    private static let expect = """
        CREATE FUNCTION wakegate.expect(there bigint, wanted bigint) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
            IF there <> wanted THEN
                RAISE EXCEPTION 'of % rows % were there', wanted, there USING ERRCODE = 'serialization_failure';
            END IF;
        END $$
        """

    /// Writes that the transaction is the one of this number, or fails it: its gateway is dead, or its connection was
    /// given up by its own gateway.
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

    /// Fences the gateways whose locks nobody holds: they commit nothing from here on. One of which a commit is under
    /// way is left for the next call.
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

    /// A gateway's last word: its number is dead from here on.
    private static let leave = """
        CREATE FUNCTION wakegate.leave(own integer) RETURNS void LANGUAGE sql AS $$
            UPDATE wakegate.connection SET alive = false WHERE gateway = own;
            UPDATE wakegate.gateway SET alive = false WHERE number = own;
        $$
        """
}

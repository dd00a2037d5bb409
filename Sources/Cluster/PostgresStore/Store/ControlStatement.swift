/// The statements of the control connection.
enum ControlStatement: PreparedStatement {
    case light, durable, report, members, fence, fenceMasked, dead, ready, nextDue, totals, clock, keepTime, leave
    case durability
    case raiseOldest, forget
    case topicsFrom, lockTopics, addTopics
    case valuesChanged, storeValue, notify, sendersOfGateways
    case sweepWakes

    /// The time in milliseconds for which the commit numbers of a dead gateway are retained. A gateway that was
    /// interrupted reads them to find out whether its last commit succeeded.
    private static let memoryMilliseconds: Int64 = 86_400_000

    func sql(clock: String) -> String {
        switch self {
        // Rows that only describe the current state need not be durable.
        case .light: "SELECT set_config('synchronous_commit', 'off', true)"
        // The control session keeps the settings of its role in order to monitor them, so each transaction sets this.
        case .durable: "SELECT set_config('synchronous_commit', 'on', true)"
        case .keepTime: Self.keepTimeSQL(clock)
        case .raiseOldest:
            """
            UPDATE wakegate.meta SET oldest = version WHERE oldest < version AND NOT EXISTS (
                SELECT FROM wakegate.gateway g WHERE g.alive AND NOT g.buried AND g.schema < wakegate.meta.version)
            """
        case .forget: Self.forgetSQL(clock)
        case .leave: "SELECT wakegate.leave($1::integer)"
        case .durability: Self.durabilitySQL
        case .report:
            """
            UPDATE wakegate.gateway SET reported_at = \(clock), report = $2::bytea WHERE number = $1::integer AND alive
            RETURNING 1
            """
        case .members:
            "SELECT number, since, reported_at, report FROM wakegate.gateway WHERE alive AND NOT buried ORDER BY number"
        case .fence: "SELECT wakegate.fence($1::integer)"
        case .fenceMasked: Self.fenceMaskedSQL
        case .dead: "SELECT number FROM wakegate.gateway WHERE NOT alive AND NOT buried ORDER BY number"
        case .ready: Self.readySQL
        case .nextDue: "SELECT at FROM wakegate.due ORDER BY at LIMIT 1"
        case .totals: "SELECT counts FROM wakegate.books WHERE topic = \(ConnectionCounters.everyTopic)"
        case .clock: "SELECT \(clock), shift FROM wakegate.meta"
        case .topicsFrom: "SELECT id, name FROM wakegate.topic WHERE id >= $1::integer ORDER BY id"
        case .lockTopics: "SELECT pg_try_advisory_xact_lock(\(AdvisoryLock.others), \(AdvisoryLock.topics))"
        case .addTopics:
            """
            INSERT INTO wakegate.topic (id, name)
            SELECT (SELECT count(*) FROM wakegate.topic) + row_number() OVER (ORDER BY n.place) - 1, n.name
            FROM unnest($1::text[]) WITH ORDINALITY n(name, place)
            WHERE NOT EXISTS (SELECT FROM wakegate.topic t WHERE t.name = n.name)
            """
        case .valuesChanged: Self.valuesChangedSQL
        case .storeValue:
            """
            INSERT INTO wakegate.value (name, content) VALUES ($1::text, $2::bytea)
            ON CONFLICT (name) DO UPDATE SET content = excluded.content, version = nextval('wakegate.value_version')
            RETURNING version
            """
        case .notify: "SELECT pg_notify('wakegate', $1::text)"
        case .sendersOfGateways:
            """
            SELECT pid FROM pg_stat_activity
            WHERE pid = ANY($1::integer[]) AND has_table_privilege(usesysid, 'wakegate.gateway', 'UPDATE')
            """
        case .sweepWakes: Self.sweepWakesSQL
        }
    }

    private static let readySQL = """
        WITH RECURSIVE topics AS (
            (SELECT topic, since FROM wakegate.ready ORDER BY topic, since LIMIT 1)
            UNION ALL
            SELECT n.topic, n.since FROM topics t, LATERAL (
                SELECT r.topic, r.since FROM wakegate.ready r WHERE r.topic > t.topic
                ORDER BY r.topic, r.since LIMIT 1) n)
        SELECT topic, since FROM topics
        """

    private static func forgetSQL(_ clock: String) -> String {
        """
        WITH old AS (
            DELETE FROM wakegate.gateway WHERE buried AND reported_at < \(clock) - \(Self.memoryMilliseconds)
            RETURNING number),
        gone AS (
            DELETE FROM wakegate.connection c USING old WHERE c.gateway = old.number RETURNING c.moment)
        UPDATE wakegate.connection SET moment = greatest(moment, (SELECT max(moment) FROM gone))
        WHERE gateway = 0 AND EXISTS (SELECT FROM gone)
        """
    }

    /// Advances policy time to the latest time of any commit, or to the latest time known to this gateway, if the
    /// primary's clock is behind. Without this, policy time would stop until a clock that was set back has caught up.
    private static func keepTimeSQL(_ clock: String) -> String {
        let reached = "greatest((SELECT max(moment) FROM wakegate.connection), $1::bigint)"
        return """
            UPDATE wakegate.meta m SET shift = \(reached) - \(clock) WHERE \(reached) > \(clock) + m.shift
            """
    }

    /// Marks as dead the gateways whose locks are held by sessions of roles that may not write the tables. Any role
    /// that may connect can take the lock of a dead gateway.
    private static let fenceMaskedSQL = """
        WITH masked AS (
            SELECT g.number FROM wakegate.gateway g
            JOIN pg_locks l ON l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
                AND l.classid = \(AdvisoryLock.gateways)::oid AND l.objid = g.number::oid
                AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            JOIN pg_stat_activity a ON a.pid = l.pid
            WHERE g.alive AND NOT g.buried AND g.number <> $1::integer
                AND NOT has_table_privilege(a.usesysid, 'wakegate.gateway', 'UPDATE')),
        fenced AS (
            UPDATE wakegate.connection c SET alive = false FROM masked m WHERE c.gateway = m.number AND c.alive)
        UPDATE wakegate.gateway g SET alive = false FROM masked m WHERE g.number = m.number
        """

    /// A query for the value of synchronous_commit in new sessions of this role, and for a flag that is true if
    /// standbys are configured. Settings of a role and of a database apply to new sessions only.
    private static let durabilitySQL = """
        SELECT coalesce((
            SELECT split_part(c, '=', 2) FROM pg_db_role_setting s, unnest(s.setconfig) c
            WHERE c LIKE 'synchronous_commit=%'
                AND s.setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = session_user))
                AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
            ORDER BY s.setrole <> 0 DESC, s.setdatabase <> 0 DESC LIMIT 1),
            current_setting('synchronous_commit'))::text, current_setting('synchronous_standby_names') <> ''
        """

    private static let valuesChangedSQL = """
        SELECT v.name, v.version, v.content FROM wakegate.value v
        LEFT JOIN unnest($1::text[], $2::bigint[]) k(name, version) ON k.name = v.name
        WHERE k.version IS DISTINCT FROM v.version
        """

    private static let sweepWakesSQL = """
        DELETE FROM wakegate.wake WHERE id = ANY(ARRAY(
            SELECT id FROM wakegate.wake WHERE ended < $1::bigint
            AND (SELECT pg_try_advisory_xact_lock(\(AdvisoryLock.others), \(AdvisoryLock.wakeCleanup)))
            ORDER BY ended LIMIT $2::integer FOR UPDATE SKIP LOCKED))
        """
}

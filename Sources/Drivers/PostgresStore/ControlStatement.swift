/// What the control connection runs.
enum ControlStatement: Int, CaseIterable {
    case light, report, members, fence, dead, ready, nextDue, totals, clock, keepTime, leave
    case raiseOldest, forget
    case topicsFrom, lockTopics, addTopics
    case valuesChanged, keep, notify
    case sweepWakes

    /// For how long a dead gateway's marks are kept: whoever was cut off looks for its own.
    private static let memoryMilliseconds: Int64 = 86_400_000

    /// The name under which it is prepared.
    var name: String { "wakegate_\(self)" }

    /// - Parameter clock: an expression for the primary's clock in milliseconds since 1970.
    func sql(clock: String) -> String {
        switch self {
        // What only says how things are need not wait for stable storage.
        case .light: "SELECT set_config('synchronous_commit', 'off', true)"
        case .keepTime: Self.keepTimeSQL(clock)
        case .raiseOldest:
            """
            UPDATE wakegate.meta SET oldest = version WHERE oldest < version AND NOT EXISTS (
                SELECT FROM wakegate.gateway g WHERE g.alive AND NOT g.buried AND g.schema < wakegate.meta.version)
            """
        case .forget: Self.forgetSQL(clock)
        case .leave: "SELECT wakegate.leave($1::integer)"
        case .report:
            """
            UPDATE wakegate.gateway SET reported_at = \(clock), report = $2::bytea WHERE number = $1::integer AND alive
            RETURNING 1
            """
        case .members:
            "SELECT number, since, reported_at, report FROM wakegate.gateway WHERE alive AND NOT buried ORDER BY number"
        case .fence: "SELECT wakegate.fence($1::integer)"
        case .dead: "SELECT number FROM wakegate.gateway WHERE NOT alive AND NOT buried ORDER BY number"
        case .ready: Self.readySQL
        case .nextDue: "SELECT at FROM wakegate.due ORDER BY at LIMIT 1"
        case .totals: "SELECT counts FROM wakegate.books WHERE topic = \(ConnectionBooks.everyTopic)"
        case .clock: "SELECT \(clock), shift FROM wakegate.meta"
        case .topicsFrom: "SELECT id, name FROM wakegate.topic WHERE id >= $1::integer ORDER BY id"
        case .lockTopics: "SELECT pg_advisory_xact_lock(\(AdvisoryLock.others), \(AdvisoryLock.topics))"
        case .addTopics:
            """
            INSERT INTO wakegate.topic (id, name)
            SELECT (SELECT count(*) FROM wakegate.topic) + row_number() OVER (ORDER BY n.place) - 1, n.name
            FROM unnest($1::text[]) WITH ORDINALITY n(name, place)
            WHERE NOT EXISTS (SELECT FROM wakegate.topic t WHERE t.name = n.name)
            """
        case .valuesChanged: Self.valuesChangedSQL
        case .keep:
            """
            INSERT INTO wakegate.value (name, content) VALUES ($1::text, $2::bytea)
            ON CONFLICT (name) DO UPDATE SET content = excluded.content, version = nextval('wakegate.value_version')
            RETURNING version
            """
        case .notify: "SELECT pg_notify('wakegate', $1::text)"
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

    private static func keepTimeSQL(_ clock: String) -> String {
        """
        UPDATE wakegate.meta m SET shift = (SELECT max(moment) FROM wakegate.connection) - \(clock)
        WHERE (SELECT max(moment) FROM wakegate.connection) > \(clock) + m.shift
        """
    }

    private static let valuesChangedSQL = """
        SELECT v.name, v.version, v.content FROM wakegate.value v
        LEFT JOIN unnest($1::text[], $2::bigint[]) k(name, version) ON k.name = v.name
        WHERE k.version IS DISTINCT FROM v.version
        """

    private static let sweepWakesSQL = """
        DELETE FROM wakegate.wake WHERE id = ANY(ARRAY(
            SELECT id FROM wakegate.wake WHERE ended < $1::bigint
            AND (SELECT pg_try_advisory_xact_lock(\(AdvisoryLock.others), \(AdvisoryLock.janitor)))
            ORDER BY ended LIMIT $2::integer FOR UPDATE SKIP LOCKED))
        """
}

/// The prepared statements of the connections that commit.
///
/// Devices given by token are locked in the order of their tokens, so that transactions do not deadlock. After a lock
/// timeout, the next attempt skips locked devices. Other statements always skip locked rows. One statement writes all
/// rows of a transaction in a table, from arrays with one element per row.
enum CommitStatement: Int, PreparedStatement {
    case begin, commit, rollback, clock
    case lockTokens, lockTokensAndWakes, lockFreeTokens, lockHolder, lockDue
    case lockReady, lockReadyPushes, lockReadyDevices
    case passedOver, tableHolder
    case insertDevices, updateDevices, upsertDue, deleteDue, deleteReady, insertReady, insertWakes, endWakes
    case upsertCounters, upsertRejections, insertEvents, insertPushes, insertBundles, mark
    case wakesOfHolder, lostWakes, holders, resolve
    case lockBurial, burialRows, foldCounters, foldRejections, endBurial

    /// The names of the prepared statements, indexed by raw value. They are created once, because each transaction uses
    /// several.
    private static let names = Self.allCases.map { "wakegate_\($0)" }

    var name: String { Self.names[self.rawValue] }

    func sql(clock: String) -> String {
        switch self {
        case .begin: "BEGIN"
        case .commit: "COMMIT"
        case .rollback: "ROLLBACK"
        // The devices are already locked. The timeout of 2 s is for locks on rows of other tables.
        case .clock: "SELECT \(clock), shift, set_config('lock_timeout', '2000', true) FROM wakegate.meta"
        case .lockTokens: Self.tokens + Self.inOrder
        case .lockTokensAndWakes: Self.tokensAndWakes + Self.inOrder
        case .lockFreeTokens: Self.tokensAndWakes + Self.skipping
        case .lockHolder: Self.holder + Self.skipping
        case .lockDue: Self.due(clock) + Self.skipping
        case .lockReady: Self.ready + Self.skipping
        case .lockReadyPushes: Self.readyPushes + Self.skipping
        case .lockReadyDevices: Self.readyOfDevices + Self.skipping
        case .passedOver: Self.passedOverSQL
        case .tableHolder: Self.tableHolderSQL
        case .insertDevices: Self.insertDevicesSQL
        case .updateDevices: Self.updateDevicesSQL
        case .upsertDue: Self.upsertDueSQL
        case .deleteDue: "DELETE FROM wakegate.due WHERE device = ANY($1::bytea[])"
        case .deleteReady: "DELETE FROM wakegate.ready WHERE device = ANY($1::bytea[])"
        case .insertReady: Self.insertReadySQL
        case .insertWakes: Self.insertWakesSQL
        case .endWakes: Self.endWakesSQL
        case .upsertCounters: Self.upsertCountersSQL
        case .upsertRejections: Self.upsertRejectionsSQL
        case .insertEvents: Self.insertEventsSQL
        case .insertPushes: Self.insertPushesSQL
        case .insertBundles: Self.insertBundlesSQL
        case .mark: Self.markSQL
        case .lockBurial: Self.lockBurialSQL
        case .burialRows: Self.burialRowsSQL
        case .foldCounters: Self.foldCountersSQL
        case .foldRejections: Self.foldRejectionsSQL
        case .endBurial: "UPDATE wakegate.gateway SET buried = true WHERE number = $1::integer"
        case .wakesOfHolder: Self.wakesOfHolderSQL
        case .lostWakes: Self.lostWakesSQL
        case .holders: Self.holdersSQL
        case .resolve: Self.resolveSQL
        }
    }

    static let row = """
        SELECT d.token, d.version, d.at, d.record, d.tasks, d.derived, d.ctid FROM wakegate.device d
        """
    private static let inOrder = " FOR UPDATE"
    private static let skipping = " FOR UPDATE OF d SKIP LOCKED"

    static let tokens = "\(row) WHERE d.token = ANY($1::bytea[]) ORDER BY d.token"

    static let tokensAndWakes = """
        \(row) WHERE d.token = ANY($1::bytea[] || ARRAY(
            SELECT w.device FROM wakegate.wake w WHERE w.id = ANY($2::uuid[]))) ORDER BY d.token
        """

    private static let devicesOfHolder = """
        SELECT DISTINCT w.device FROM wakegate.wake w WHERE w.holder = $1::integer AND w.ended IS NULL
        ORDER BY w.device OFFSET 0
        """

    private static let holder = """
        \(row) JOIN (\(devicesOfHolder)) h ON h.device = d.token ORDER BY h.device LIMIT $2::integer
        """

    private static func due(_ clock: String) -> String {
        """
        \(self.row) JOIN (
            SELECT device, at FROM wakegate.due
            WHERE at <= (SELECT greatest(\(clock) + shift, $1::bigint) FROM wakegate.meta)
            ORDER BY at OFFSET 0) u ON u.device = d.token
        ORDER BY u.at LIMIT $2::integer
        """
    }

    /// Loads ready devices for streams that accept only pushes. Rows are read in index order, and each device is locked
    /// as its row is read, until the limit is reached. The cost depends only on the number of loaded rows. OFFSET 0
    /// prevents PostgreSQL from sorting after the join, which the planner prefers while the tables are empty.
    private static let readyPushes = """
        \(row) JOIN (
            SELECT r.device, r.since FROM wakegate.ready r WHERE r.topic = $1 AND r.kind = 0
            ORDER BY r.since OFFSET 0) q ON q.device = d.token
        ORDER BY q.since LIMIT $2::integer
        """

    /// Loads ready devices for streams that name tasks or sessions. Reads only rows that these streams accept.
    ///
    /// Rows with the same kind, key and resources form a group, ordered by its oldest row. `found` has the groups in
    /// the ranges that the streams name. `taken` has the oldest of these groups that the streams accept. If there are
    /// many groups, few rows of each are read. `sample` also searches ranges with more groups than the limit.
    private static let ready = """
        WITH found AS MATERIALIZED (\(named) UNION ALL \(matched)),
        taken AS MATERIALIZED (
            SELECT * FROM found WHERE resources <@ $7::text[] ORDER BY since LIMIT $8::integer + 32)
        \(row) JOIN (
            SELECT u.device, u.since FROM (
                (SELECT r.device, r.since FROM wakegate.ready r WHERE r.topic = $1 AND r.kind = 0 AND $2::boolean
                ORDER BY r.since LIMIT \(lanesMax))
                UNION ALL \(rows(key: "name", "NOT g.is_stem"))
                UNION ALL \(rows(key: "\(SchemaTables.stem)", "g.is_stem"))
                UNION ALL \(sample)) u ORDER BY u.since OFFSET 0) q ON q.device = d.token
        ORDER BY q.since LIMIT $8::integer
        """

    private static let named = groups(
        key: "name",
        isStem: false,
        tasks: "$3",
        sessions: "$5",
        end: "n.low || E'\\x01'"
    )
    private static let matched = groups(
        key: SchemaTables.stem,
        isStem: true,
        tasks: "$4",
        sessions: "$6",
        end: "left(n.low, -1) || '/'"
    )

    /// The maximum number of rows read for one name. It exceeds the number of devices to load, because concurrent
    /// transactions may have locked the first rows.
    private static let lanesMax = "4 * $8::integer + 64"

    /// Returns SQL for the groups whose key is in one of several ranges. `tasks` and `sessions` are arrays with the
    /// starts of the ranges. The range of a stem ends with "/", which follows "." in byte order.
    ///
    /// Each group costs one index lookup. The next lookup begins at the next list of resources that the streams could
    /// offer, and skips the groups before it. At most `$9` groups of a range are found.
    ///
    /// - `key`: `name`, or the expression for its stem.
    /// - `end`: an expression for the end of the range that begins with `n.low`.
    private static func groups(key: String, isStem: Bool, tasks: String, sessions: String, end: String) -> String {
        let key = "\(key) COLLATE \"C\""
        let rows = "FROM wakegate.ready WHERE topic = $1 AND kind = t.kind AND kind > 0"
        let first = "ORDER BY \(key), resources, since LIMIT 1"
        return """
            SELECT t.kind, t.low, \(isStem) AS is_stem, f.* FROM (
                SELECT k.kind, n.low, \(end) AS high
                FROM unnest(\(tasks)::text[]) n(low), (VALUES (1::smallint), (2::smallint), (3::smallint)) k(kind)
                UNION ALL
                SELECT 4::smallint, n.low, \(end) FROM unnest(\(sessions)::text[]) n(low)) t, LATERAL (
                WITH RECURSIVE found AS (
                    (SELECT \(key) AS key, resources, since, 1 AS number \(rows)
                        AND \(key) >= t.low AND \(key) < t.high \(first))
                    UNION ALL
                    SELECT n.key, n.resources, n.since, g.number + 1 FROM found g, LATERAL (
                        SELECT \(nextResources) AS resources OFFSET 0) x, LATERAL (
                        SELECT \(key) AS key, resources, since \(rows) AND \(key) < t.high
                            AND (\(key), resources) >= (
                                CASE WHEN x.resources IS NULL THEN g.key || E'\\x01' ELSE g.key END,
                                coalesce(x.resources, '{}'))
                        \(first)) n
                    WHERE g.number < $9::integer)
                SELECT * FROM found) f
            """
    }

    /// The least list of resources, greater than that of the group `g`, that the streams could offer; NULL if there is
    /// none. If the streams offer the resources of `g`, the list is extended by an empty name. Otherwise, the rightmost
    /// possible name is replaced with the next greater name that the streams offer.
    private static let nextResources = """
        CASE WHEN g.resources <@ $7::text[] THEN g.resources || ''::text ELSE (
            SELECT g.resources[:j - 1] || o FROM generate_subscripts(g.resources, 1) j, unnest($7::text[]) o
            WHERE o > g.resources[j] AND g.resources[:j - 1] <@ $7::text[] ORDER BY j DESC, o LIMIT 1) END
        """

    /// Returns SQL for the oldest rows of each group in `taken`. The pattern `a.*` does not match the name `a.`.
    private static func rows(key: String, _ condition: String) -> String {
        """
        SELECT l.device, l.since FROM taken g, LATERAL (
            SELECT device, since FROM wakegate.ready
            WHERE topic = $1 AND kind = g.kind AND kind > 0 AND \(key) COLLATE "C" = g.key AND resources = g.resources
                AND (NOT g.is_stem OR name <> g.low)
            ORDER BY since LIMIT least(\(lanesMax),
                (16 * $8::integer + 1024) / (SELECT greatest(1, count(*)) FROM taken))) l
        WHERE \(condition)
        """
    }

    /// The rows that the streams accept among the topic's oldest rows and among the rows after a random time. They are
    /// read only if a range has more groups than the limit, so that each row is found eventually.
    private static let sample = """
        SELECT r.device, r.since FROM (
            (SELECT * FROM wakegate.ready WHERE topic = $1 ORDER BY since LIMIT 500)
            UNION ALL
            (SELECT * FROM wakegate.ready WHERE topic = $1 AND since >= (
                SELECT min(since) + (random() * (max(since) - min(since)))::bigint FROM wakegate.ready
                WHERE topic = $1) ORDER BY since LIMIT 500)) r
        WHERE (SELECT bool_or(number = $9::integer) FROM found) AND \(isTaken)
        """

    /// True if the streams accept the row `r`.
    private static let isTaken = """
        r.resources <@ $7::text[] AND (
            (r.kind = 0 AND $2::boolean)
            OR (r.kind BETWEEN 1 AND 3 AND (r.name = ANY($3::text[]) OR \(beginning("$4"))))
            OR (r.kind = 4 AND (r.name = ANY($5::text[]) OR \(beginning("$6")))))
        """

    /// Loads those of the given devices that are ready. The sum `r.topic + 0` prevents a scan of the topic's whole
    /// queue.
    private static let readyOfDevices = """
        \(row) JOIN (
            SELECT r.device, r.since FROM wakegate.ready r
            WHERE r.device = ANY($9::bytea[]) AND r.topic + 0 = $1 AND \(isTaken)
            ORDER BY r.since OFFSET 0) q ON q.device = d.token
        ORDER BY q.since LIMIT $8::integer
        """

    private static func beginning(_ parameter: String) -> String {
        """
        EXISTS (SELECT FROM unnest(\(parameter)::text[]) p
            WHERE starts_with(r.name, p) AND length(r.name) > length(p))
        """
    }

    private static let insertDevicesSQL = """
        INSERT INTO wakegate.device (token, topic, version, at, has_tasks, record, tasks, derived)
        SELECT token, topic, 1, $6::bigint, tasks <> '', record, tasks, derived
        FROM unnest($1::bytea[], $2::integer[], $3::bytea[], $4::bytea[], $5::bytea[])
            u(token, topic, record, tasks, derived)
        """

    /// Each row is found by its `ctid`, without an index. It cannot move, because the transaction has locked it.
    private static let updateDevicesSQL = """
        WITH changed AS (
            UPDATE wakegate.device d SET topic = u.topic, version = d.version + 1, at = $8::bigint,
                has_tasks = u.tasks <> '', record = u.record, tasks = u.tasks, derived = u.derived
            FROM unnest($1::bytea[], $2::integer[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bigint[], $7::tid[])
                u(token, topic, record, tasks, derived, version, place)
            WHERE d.ctid = u.place AND d.token = u.token AND d.version = u.version RETURNING 1)
        SELECT wakegate.expect((SELECT count(*) FROM changed), cardinality($1))
        """

    private static let upsertDueSQL = """
        INSERT INTO wakegate.due (device, at) SELECT * FROM unnest($1::bytea[], $2::bigint[])
        ON CONFLICT (device) DO UPDATE SET at = excluded.at
        """

    private static let insertReadySQL = """
        INSERT INTO wakegate.ready (device, kind, name, resources, topic, since)
        SELECT device, kind, name, string_to_array(resources, ','), topic, since
        FROM unnest($1::bytea[], $2::smallint[], $3::text[], $4::text[], $5::integer[], $6::bigint[])
            u(device, kind, name, resources, topic, since)
        """

    private static let insertWakesSQL = """
        INSERT INTO wakegate.wake (id, device, holder, deadline)
        SELECT id, device, $4::integer, deadline
        FROM unnest($1::uuid[], $2::bytea[], $3::bigint[]) u(id, device, deadline)
        """

    /// Each wake is found by its id. `coalesce` keeps the planner from scanning the whole index of wakes in flight.
    private static let endWakesSQL = """
        UPDATE wakegate.wake SET ended = $2::bigint WHERE id = ANY($1::uuid[]) AND coalesce(ended, 0) = 0
        RETURNING id, holder
        """

    private static let upsertCountersSQL = """
        INSERT INTO wakegate.books (gateway, connection, topic, counts)
        SELECT $1::integer, $2::smallint, topic, counts FROM unnest($3::integer[], $4::bytea[]) u(topic, counts)
        ON CONFLICT (gateway, connection, topic) DO UPDATE SET counts = excluded.counts
        """

    private static let upsertRejectionsSQL = """
        INSERT INTO wakegate.rejection (gateway, connection, number, topic, content)
        SELECT $1::integer, $2::smallint, $3::bigint, topic, content
        FROM unnest($4::integer[], $5::bytea[]) u(topic, content)
        ON CONFLICT (gateway, connection, topic)
        DO UPDATE SET number = excluded.number, content = excluded.content
        """

    private static let insertEventsSQL = """
        INSERT INTO wakegate.event (device, at, body) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])
        """

    private static let insertPushesSQL = """
        INSERT INTO wakegate.push (apns, device, at) SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[])
        """

    private static let insertBundlesSQL = """
        INSERT INTO wakegate.bundle (at, keys, body) SELECT $1::bigint, keys, body
        FROM unnest($2::bytea[], $3::bytea[]) u(keys, body)
        """

    private static let markSQL = """
        SELECT wakegate.mark($1::integer, $2::smallint, $3::bigint, $4::bigint, $5::bigint)
        """

    /// The holder's wakes in flight for the devices that this transaction has locked, and for one other device, if any.
    /// The `xmax` of a row that is locked for writing is the locking transaction.
    private static let wakesOfHolderSQL = """
        SELECT w.id, w.device FROM (
            (\(heldDevices("=")) LIMIT $2::integer) UNION ALL (\(heldDevices("<>")) LIMIT 1)) h, LATERAL (
            SELECT id, device FROM wakegate.wake
            WHERE holder = $1::integer AND device = h.device AND ended IS NULL OFFSET 0) w
        """

    private static func heldDevices(_ comparison: String) -> String {
        """
        SELECT h.device FROM (\(devicesOfHolder)) h JOIN wakegate.device d ON d.token = h.device
        WHERE d.xmax \(comparison) pg_current_xact_id()::xid
        """
    }

    /// The wakes in flight of dead gateways, of the requested devices.
    private static let lostWakesSQL = """
        SELECT w.id, w.device FROM wakegate.gateway g JOIN wakegate.wake w ON w.holder = g.number
        WHERE NOT g.alive AND NOT g.buried AND w.ended IS NULL AND w.device = ANY($1::bytea[] || ARRAY(
            SELECT r.device FROM wakegate.wake r WHERE r.id = ANY($2::uuid[])))
        """

    private static let holdersSQL =
        "SELECT id, holder FROM wakegate.wake WHERE id = ANY($1::uuid[]) AND holder <> $2::integer"

    private static let resolveSQL = """
        UPDATE wakegate.connection SET epoch = epoch + 1 WHERE gateway = $1 AND connection = $2
        RETURNING number, epoch, alive
        """

    /// The requested devices that exist, each with the session that has locked it. The `xmax` of a row that is locked
    /// for writing is the locking transaction.
    private static let passedOverSQL = """
        WITH holder AS MATERIALIZED (
            SELECT l.transactionid, \(holderColumns) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
            WHERE l.locktype = 'transactionid' AND l.granted)
        SELECT n.token, n.wake, h.pid, h.application_name, h.query_start FROM (
            SELECT token, NULL::uuid AS wake FROM unnest($1::bytea[]) u(token)
            UNION ALL
            SELECT w.device, w.id FROM wakegate.wake w WHERE w.id = ANY($2::uuid[])) n
        JOIN wakegate.device d ON d.token = n.token
        LEFT JOIN holder h ON h.transactionid = d.xmax
        """

    private static let holderColumns = """
        a.pid, a.application_name, (extract(epoch FROM a.query_start) * 1000)::bigint AS query_start
        """

    /// The session with a lock of the table `device` that conflicts with row locks.
    private static let tableHolderSQL = """
        SELECT \(holderColumns) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
        WHERE l.locktype = 'relation' AND l.granted AND l.relation = to_regclass('wakegate.device')
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND l.mode IN ('ExclusiveLock', 'AccessExclusiveLock') AND l.pid <> pg_backend_pid() LIMIT 1
        """

    private static let lockBurialSQL = """
        SELECT NOT EXISTS (SELECT FROM wakegate.wake w WHERE w.holder = g.number AND w.ended IS NULL)
        FROM wakegate.gateway g WHERE g.number = $1::integer AND NOT g.alive AND NOT g.buried
            AND pg_try_advisory_xact_lock(\(AdvisoryLock.others), \(AdvisoryLock.retirement))
        """

    /// The counters of a dead gateway, and the sums of earlier dead gateways (gateway 0).
    private static let burialRowsSQL = counts("gateway = 0 OR gateway = $1::integer")

    /// Returns SQL for the counters (0) and the refused pushes (1) that satisfy a condition, by topic. For refused
    /// pushes, only the last row of each gateway and topic is read, because it has the totals.
    static func counts(_ condition: String) -> String {
        """
        SELECT 0, topic, counts FROM wakegate.books WHERE \(condition)
        UNION ALL
        SELECT 1, topic, content FROM (
            SELECT DISTINCT ON (gateway, topic) topic, content FROM wakegate.rejection
            WHERE \(condition) ORDER BY gateway, topic, number DESC) r
        """
    }

    private static let foldCountersSQL = """
        WITH gone AS (DELETE FROM wakegate.books WHERE gateway = $1::integer)
        INSERT INTO wakegate.books (gateway, connection, topic, counts)
        SELECT 0, 0, topic, counts FROM unnest($2::integer[], $3::bytea[]) u(topic, counts)
        ON CONFLICT (gateway, connection, topic) DO UPDATE SET counts = excluded.counts
        """

    private static let foldRejectionsSQL = """
        WITH gone AS (DELETE FROM wakegate.rejection WHERE gateway = $1::integer)
        INSERT INTO wakegate.rejection (gateway, connection, number, topic, content)
        SELECT 0, 0, 0, topic, content FROM unnest($2::integer[], $3::bytea[]) u(topic, content)
        ON CONFLICT (gateway, connection, topic) DO UPDATE SET content = excluded.content
        """
}

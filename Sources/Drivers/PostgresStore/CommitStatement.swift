/// What committing connections run, prepared once a connection.
///
/// Rows of devices are locked in the order of their tokens, so that transactions wait in one direction; what is found
/// by something else than a device is locked where nobody has it. Everything that a transaction adds or changes in one
/// table is one statement over arrays, one element a row.
enum CommitStatement: Int, CaseIterable {
    case begin, commit, rollback, clock
    case lockTokens, lockTokensAndWakes, lockHolder, lockDue, lockReady, lockReadyDevices, lockTasks
    case readTokens, readTokensAndWakes, readHolder, readDue, readReady, readReadyDevices, readTasks, readInOrder
    case readTopicsInOrder
    case insertDevices, updateDevices, upsertDue, deleteDue, deleteReady, insertReady, insertWakes, endWakes
    case upsertBooks, upsertRejections, insertEvents, insertPushes, insertBundles, mark
    case wakesOfHolder, holders, resolve, count
    case lockBurial, burialRows, foldBooks, foldRejections, endBurial

    /// The names under which they are prepared, in the order of their numbers: made once, as each transaction names
    /// several.
    private static let names = Self.allCases.map { "wakegate_\($0)" }

    /// The name under which it is prepared.
    var name: String { Self.names[self.rawValue] }

    /// - Parameter clock: an expression for the primary's clock in milliseconds since 1970.
    func sql(clock: String) -> String {
        switch self {
        case .begin: "BEGIN"
        case .commit: "COMMIT"
        case .rollback: "ROLLBACK"
        case .clock: "SELECT \(clock), shift, oldest FROM wakegate.meta"
        case .lockTokens: Self.tokens + Self.inOrder
        case .lockTokensAndWakes: Self.tokensAndWakes + Self.inOrder
        case .lockHolder: Self.holder + Self.inOrder
        case .lockTasks: Self.tasks + Self.inOrder
        case .lockDue: Self.due(clock) + Self.skipping
        case .lockReady: Self.ready("r.topic = $1") + Self.skipping
        case .lockReadyDevices: Self.ready(Self.ofDevices) + Self.skipping
        case .readTokens: Self.tokens
        case .readTokensAndWakes: Self.tokensAndWakes
        case .readHolder: Self.holder
        case .readTasks: Self.tasks
        case .readInOrder: Self.behind()
        case .readTopicsInOrder: Self.behind(" AND d.topic = ANY($3::integer[])")
        case .readDue: Self.due(clock)
        case .readReady: Self.ready("r.topic = $1")
        case .readReadyDevices: Self.ready(Self.ofDevices)
        case .insertDevices: Self.insertDevicesSQL
        case .updateDevices: Self.updateDevicesSQL
        case .upsertDue: Self.upsertDueSQL
        case .deleteDue: Self.deleteDueSQL
        case .deleteReady: Self.deleteReadySQL
        case .insertReady: Self.insertReadySQL
        case .insertWakes: Self.insertWakesSQL
        case .endWakes: Self.endWakesSQL
        case .upsertBooks: Self.upsertBooksSQL
        case .upsertRejections: Self.upsertRejectionsSQL
        case .insertEvents: Self.insertEventsSQL
        case .insertPushes: Self.insertPushesSQL
        case .insertBundles: Self.insertBundlesSQL
        case .mark: Self.markSQL
        case .lockBurial: Self.lockBurialSQL
        case .burialRows: Self.burialRowsSQL
        case .foldBooks: Self.foldBooksSQL
        case .foldRejections: Self.foldRejectionsSQL
        case .endBurial: Self.endBurialSQL
        case .wakesOfHolder: Self.wakesOfHolderSQL
        case .holders: Self.holdersSQL
        case .resolve: Self.resolveSQL
        case .count: Self.countSQL
        }
    }

    private static let row = """
        SELECT d.token, d.version, d.at, d.record, d.tasks, d.derived, d.ctid FROM wakegate.device d
        """
    private static let inOrder = " FOR UPDATE"
    private static let skipping = " FOR UPDATE OF d SKIP LOCKED"

    private static let tokens = "\(row) WHERE d.token = ANY($1::bytea[]) ORDER BY d.token"

    private static let tokensAndWakes = """
        \(row) WHERE d.token = ANY($1::bytea[] || ARRAY(
            SELECT w.device FROM wakegate.wake w WHERE w.id = ANY($2::uuid[]))) ORDER BY d.token
        """

    private static let devicesOfHolder = """
        SELECT DISTINCT w.device FROM wakegate.wake w WHERE w.holder = $1::integer AND w.ended IS NULL
        ORDER BY w.device LIMIT $2::integer
        """

    private static let holder = "\(row) WHERE d.token = ANY(ARRAY(\(devicesOfHolder))) ORDER BY d.token"

    private static let tasks = """
        \(row) WHERE d.has_tasks AND d.token > $2::bytea AND ($1::integer IS NULL OR d.topic = $1)
        ORDER BY d.token LIMIT $3::integer
        """

    private static func behind(_ filter: String = "") -> String {
        "\(self.row) WHERE d.token > $1::bytea\(filter) ORDER BY d.token LIMIT $2::integer"
    }

    private static func due(_ clock: String) -> String {
        """
        \(self.row) JOIN (
            SELECT device, at FROM wakegate.due
            WHERE at <= (SELECT greatest(\(clock) + shift, $1::bigint) FROM wakegate.meta)
            ORDER BY at OFFSET 0) u ON u.device = d.token
        ORDER BY u.at LIMIT $2::integer
        """
    }

    /// Few devices are named, and found by their tokens: the sum keeps their topic's whole queue from being read.
    private static let ofDevices = "r.device = ANY($9::bytea[]) AND r.topic + 0 = $1"

    /// The rows that wait are read in the order of their index, each device looked up as it comes, until there are
    /// enough: a claim costs what it claims, however much waits. OFFSET 0 keeps PostgreSQL from joining first and
    /// sorting then, which seems cheap to it when it plans the statement for tables that are empty.
    private static func ready(_ place: String) -> String {
        """
        \(self.row) JOIN (
            SELECT r.device, r.since FROM wakegate.ready r
            WHERE \(place) AND r.resources <@ $7::text[] AND (
                (r.kind = 0 AND $2::boolean)
                OR (r.kind BETWEEN 1 AND 3 AND (r.name = ANY($3::text[]) OR \(self.beginning("$4"))))
                OR (r.kind = 4 AND (r.name = ANY($5::text[]) OR \(self.beginning("$6")))))
            ORDER BY r.since OFFSET 0) q ON q.device = d.token
        ORDER BY q.since LIMIT $8::integer
        """
    }

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

    /// Each row is found where it was read, which the transaction has locked, and not through the index again.
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

    private static let deleteDueSQL = "DELETE FROM wakegate.due WHERE device = ANY($1::bytea[])"

    private static let deleteReadySQL = "DELETE FROM wakegate.ready WHERE device = ANY($1::bytea[])"

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

    /// Written so that no index of the wakes in flight seems to serve, which would be read from its beginning to its
    /// end: each wake is found by its id.
    private static let endWakesSQL = """
        UPDATE wakegate.wake SET ended = $2::bigint WHERE id = ANY($1::uuid[]) AND coalesce(ended, 0) = 0
        RETURNING id, holder
        """

    private static let upsertBooksSQL = """
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

    private static let wakesOfHolderSQL = """
        SELECT w.id, w.device FROM wakegate.wake w
        WHERE w.holder = $1::integer AND w.ended IS NULL AND w.device = ANY(ARRAY(\(devicesOfHolder)))
        """

    private static let holdersSQL =
        "SELECT id, holder FROM wakegate.wake WHERE id = ANY($1::uuid[]) AND holder <> $2::integer"

    private static let resolveSQL = """
        UPDATE wakegate.connection SET epoch = epoch + 1 WHERE gateway = $1 AND connection = $2
        RETURNING number, epoch, alive
        """

    private static let countSQL = """
        SELECT 0, topic, counts FROM wakegate.books WHERE $1::integer[] IS NULL OR topic = ANY($1)
        UNION ALL
        SELECT 1, topic, content FROM (
            SELECT DISTINCT ON (gateway, topic) topic, content FROM wakegate.rejection
            WHERE $1::integer[] IS NULL OR topic = ANY($1) ORDER BY gateway, topic, number DESC) r
        """

    private static let lockBurialSQL = """
        SELECT NOT EXISTS (SELECT FROM wakegate.wake w WHERE w.holder = g.number AND w.ended IS NULL)
        FROM wakegate.gateway g WHERE g.number = $1::integer AND NOT g.alive AND NOT g.buried
            AND pg_try_advisory_xact_lock(\(AdvisoryLock.others), \(AdvisoryLock.burial))
        """

    /// Of the refused pushes the rows that were written last: each has what its gateway had refused by then.
    private static let burialRowsSQL = """
        SELECT 0, topic, counts FROM wakegate.books WHERE gateway = 0 OR gateway = $1::integer
        UNION ALL
        SELECT 1, topic, content FROM (
            SELECT DISTINCT ON (gateway, topic) topic, content FROM wakegate.rejection
            WHERE gateway = 0 OR gateway = $1::integer ORDER BY gateway, topic, number DESC) r
        """

    private static let foldBooksSQL = """
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

    private static let endBurialSQL = "UPDATE wakegate.gateway SET buried = true WHERE number = $1::integer"
}

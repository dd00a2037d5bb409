import Engine
import Platform
import Policy
import Wire

/// The connection that owns the gateway's number. It creates the tables, acquires a number, sends a heartbeat each
/// second, and reads the topics and values that all gateways share.
///
/// It writes no devices and waits only briefly for locks, because a gateway with a late heartbeat loses its number.
final class ControlLink: StoreLink {
    /// An event for the store.
    enum Event {
        /// The number was acquired, with the initial state of the gateway.
        case entered(Attachment)
        /// The connection is lost or unusable.
        case ended(StoreError)
        /// The number was released.
        case left
    }

    /// The maximum number of gateway numbers that one attempt tries.
    private static let numberAttemptsMax = 1000

    private let state: StoreState
    let connection: StoreConnection<ControlStatement>
    /// The number, from the end of attaching until it is released or lost; nil otherwise.
    private var number: GatewayNumber?
    private var gracePeriodMilliseconds = StoreSettings.answerMilliseconds
    private var nextBeat: Int64 = 0
    private(set) var topics: [String] = []
    /// The version and content that were last read of each shared value, by name.
    private var values: [String: (version: Int64, content: [UInt8])] = [:]
    private var isReporting = false
    private var isReadingNews = false
    /// True if topics or values have changed since the current read began.
    private var hasMoreNews = false
    private var events: [Event] = []
    /// The last value of synchronous_commit for new sessions, if commits are not durable under it; otherwise empty.
    private var durability = ""

    init(_ state: StoreState) {
        self.state = state
        self.connection = StoreConnection(state)
    }

    /// The contents of the shared values, by name.
    var contents: [String: [UInt8]] { self.values.mapValues(\.content) }

    var mayConnect: Bool { !self.state.isStopping }

    var nextWork: Int64? { self.number == nil ? nil : self.nextBeat }

    /// Returns the events since the last call, in order.
    func takeEvents() -> [Event] {
        defer { self.events = [] }
        return self.events
    }

    // MARK: Attaching

    var settings: [PostgresSetting] {
        SessionSetup.control(silenceMilliseconds: self.state.settings.silenceMilliseconds)
    }

    private var serverName: String { self.connection.server?.server ?? "the server" }

    func connected() {
        guard let server = self.connection.server else { return }
        guard server.version >= 150_000 else {
            let version = server.version / 10_000
            return self.endServer(
                " is version \(version), and WakeGate needs 15 or later. Upgrade the server, or name another one in "
                    + "`store`."
            )
        }
        self.connection.query(
            """
            SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean,
                current_setting('synchronous_standby_names') <> '' AND NOT EXISTS (SELECT FROM pg_stat_replication),
                pg_backend_pid(), current_setting('idle_session_timeout', true) IS NOT DISTINCT FROM '0'
            """
        )
        self.sendStep { self.greeted($0) }
    }

    /// Sends a step of attaching.
    ///
    /// - `locked`: called if a lock was not available; nil if this ends the connection, as any other failure does.
    /// - `next`: called with the results.
    private func sendStep(locked: (() -> Void)? = nil, _ next: @escaping (PostgresOutcome) -> Void) {
        self.connection.send { outcome in
            guard let failure = outcome.failure else { return next(outcome) }
            if let locked, failure.kind == .lockNotAvailable { return locked() }
            self.ended(failure)
        }
    }

    private func greeted(_ outcome: PostgresOutcome) {
        guard let server = self.connection.server, let row = outcome.results.last, row.count == 1 else {
            return self.ended(.unexpectedAnswer)
        }
        // A pool assigns its own backend numbers, and drops the settings that clients request.
        guard row.int32(0, 2) == server.backend, !row.flag(0, 3) else {
            return self.end(
                StoreError(
                    message: "A connection pool such as pgbouncer answers at \(self.serverName), and not PostgreSQL "
                        + "itself. A gateway's number, settings and notices belong to a session of its own: name "
                        + "PostgreSQL itself in `store`, with its own port (5432)."
                )
            )
        }
        guard !row.flag(0, 0) else {
            return self.endServer(
                " is read-only: it is a standby, or its default_transaction_read_only is on. Name every node in "
                    + "`store`, add target_session_attrs=read-write, and see that one of them is the primary."
            )
        }
        // A commit of the gateway would wait for a standby, even after this process has ended.
        guard !row.flag(0, 1) else {
            return self.endServer(
                " waits for a standby with each commit, and none is connected. See that a standby runs and reaches "
                    + "it (pg_stat_replication), or change synchronous_standby_names."
            )
        }
        self.state.firstHost = server.hostIndex
        self.connection.query(Self.hasSchema)
        self.sendStep { self.schemaFound($0, isLocked: false) }
    }

    // MARK: The tables

    private static let hasSchema = "SELECT to_regclass('wakegate.meta') IS NOT NULL"

    private func schemaFound(_ outcome: PostgresOutcome, isLocked: Bool) {
        guard outcome.results.last?.flag(0, 0) == true else { return self.makeSchema(from: 0, isLocked: isLocked) }
        self.connection.query("SELECT version, oldest FROM wakegate.meta")
        self.sendStep { self.schemaRead($0, isLocked: isLocked) }
    }

    private func schemaRead(_ outcome: PostgresOutcome, isLocked: Bool) {
        guard let row = outcome.results.last, row.count == 1 else { return self.ended(.unexpectedAnswer) }
        switch Schema.verdict(found: row.int32(0, 0), oldest: row.int32(0, 1)) {
        case .newer(let found):
            self.endServer(
                " has schema version \(found) of WakeGate, and this program works with version \(Schema.version). "
                    + "Start the newer WakeGate that made it.",
                isOfServer: false
            )
        case .older(let found): self.makeSchema(from: found, isLocked: isLocked)
        case .current: self.checkRights(isLocked: isLocked)
        }
    }

    /// Takes the lock under which one gateway at a time creates or upgrades the tables. A gateway that finds current
    /// tables takes no lock, because any role that may connect could hold it.
    private func lockSchema() {
        self.gracePeriodMilliseconds = StoreSettings.schemaMilliseconds
        self.connection.query("BEGIN")
        self.connection.query("SET LOCAL lock_timeout = \(self.state.settings.schemaLockMilliseconds)")
        self.connection.query("SELECT pg_advisory_xact_lock(\(AdvisoryLock.others), \(AdvisoryLock.schema))")
        self.connection.query(Self.hasSchema)
        self.sendStep(locked: self.findSchemaLockHolder) { self.schemaFound($0, isLocked: true) }
    }

    /// Queries the session that has held the lock for too long.
    private func findSchemaLockHolder() {
        self.gracePeriodMilliseconds = StoreSettings.answerMilliseconds
        self.connection.query("ROLLBACK")
        self.connection.query(
            """
            SELECT format('pid %s, role %s, application %L', a.pid, a.usename, a.application_name)
            FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
            WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
                AND l.classid = \(AdvisoryLock.others)::oid AND l.objid = \(AdvisoryLock.schema)::oid
                AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1
            """
        )
        self.sendStep { outcome in
            let holder = outcome.results.last.flatMap { $0.count > 0 ? $0.text(0, 0) : nil }
            self.endServer(
                ": another session holds the lock under which tables are made (\(holder ?? "it has ended since")). "
                    + "Wait if it is a gateway that upgrades the tables; otherwise end it with pg_terminate_backend, "
                    + "and let only gateways connect."
            )
        }
    }

    /// Creates or upgrades the tables under the lock. Takes the lock first, and reads the version again, if it is not
    /// held yet.
    ///
    /// - Parameters:
    ///   - found: the version of the existing tables; 0 for none.
    ///   - isLocked: true if the transaction with the lock is in progress.
    private func makeSchema(from found: Int32, isLocked: Bool) {
        guard isLocked else { return self.lockSchema() }
        // A schema change that is waiting for a lock blocks all writers of the table, so it gives up soon.
        if found > 0 { self.connection.query("SET LOCAL lock_timeout = '1s'") }
        for statement in Schema.statements(from: found) { self.connection.query(statement) }
        self.checkRights(isLocked: true)
    }

    /// - Parameter isLocked: true if the transaction with the lock is in progress, which this commits.
    private func checkRights(isLocked: Bool) {
        if isLocked { self.connection.query("COMMIT") }
        self.connection.query(Self.rights)
        let locked = {
            self.end(
                StoreError(
                    message: "Another session has locked a table that this version of WakeGate changes. End its "
                        + "transaction (pg_stat_activity), and start the gateway again."
                ),
                isOfServer: false
            )
        }
        self.sendStep(locked: locked) { self.rightsRead($0) }
    }

    /// A query for the role, and for the tables that it may not read and write.
    private static let rights = """
        SELECT current_user::text, coalesce(string_agg(c.relname, ', '), '')::text FROM pg_class c
        WHERE c.relnamespace = 'wakegate'::regnamespace AND c.relkind = 'r' AND NOT (
            has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
            AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))
        """

    private func rightsRead(_ outcome: PostgresOutcome) {
        self.gracePeriodMilliseconds = StoreSettings.answerMilliseconds
        guard let rights = outcome.results.last, rights.count == 1 else {
            return self.ended(.unexpectedAnswer)
        }
        guard rights.text(0, 1).isEmpty else {
            let (role, tables) = (rights.text(0, 0), rights.text(0, 1))
            return self.endServer(
                ": the role \(role) may not read and write \(tables) of schema wakegate. GRANT SELECT, INSERT, UPDATE, "
                    + "DELETE ON ALL TABLES IN SCHEMA wakegate TO it, and USAGE ON ALL SEQUENCES and on the schema.",
                isOfServer: false
            )
        }
        self.connection.prepareAll()
        self.connection.run(.durable)
        self.connection.query("SELECT FROM wakegate.meta FOR UPDATE")
        self.connection.run(.keepTime, self.state.time.last.milliseconds)
        // Any role that may connect can lock future numbers, so skip locked numbers.
        self.connection.query(
            """
            SELECT n FROM (SELECT nextval('wakegate.gateway_number')::integer AS n
                FROM generate_series(1, \(Self.numberAttemptsMax)) OFFSET 0) numbers
            WHERE pg_try_advisory_lock(\(AdvisoryLock.gateways), n) LIMIT 1
            """
        )
        self.sendStep { self.register($0) }
    }

    private func register(_ outcome: PostgresOutcome) {
        guard let row = outcome.results.last, row.count == 1 else {
            return self.endServer(
                ": other sessions hold the advisory locks of the next \(Self.numberAttemptsMax) gateway numbers. Find "
                    + "them in pg_locks (classid \(AdvisoryLock.gateways)), end them, and let only gateways connect to "
                    + "the database."
            )
        }
        let number = row.int32(0, 0)
        let clock = self.state.settings.clock
        self.connection.run(.durable)
        self.connection.query(
            """
            INSERT INTO wakegate.gateway (number, schema, since, reported_at, report, alive)
            SELECT \(number), \(Schema.version), c, c, '', true FROM (SELECT \(clock) AS c) clock
            """
        )
        self.connection.query(
            """
            INSERT INTO wakegate.connection (gateway, connection, alive)
            SELECT \(number), i, true FROM generate_series(1, \(self.state.settings.connections)) i
            """
        )
        if !self.topics.isEmpty {
            // A server that replaced the primary without a synchronous standby may lack the latest topics. The
            // engine still uses their numbers, so they must stay free of other topics.
            self.connection.run(.lockTopics)
            self.connection.run(.addTopics, PostgresList(self.topics))
        }
        self.connection.run(.topicsFrom, Int32(0))
        self.connection.run(.valuesChanged, PostgresList([String]()), PostgresList([Int64]()))
        self.connection.query("SELECT coalesce(max(moment), 0)::bigint FROM wakegate.connection")
        self.connection.run(.clock)
        self.sendStep { self.registered(GatewayNumber(rawValue: number), $0) }
    }

    private func registered(_ number: GatewayNumber, _ outcome: PostgresOutcome) {
        let results = outcome.results.suffix(4)
        guard results.count == 4, let clock = results.last, clock.count == 1 else {
            return self.ended(.unexpectedAnswer)
        }
        let first = results.startIndex
        self.topics = []
        self.values = [:]
        _ = self.takeTopics(results[first])
        _ = self.takeValues(results[first + 1])
        self.state.time.reached(results[first + 2].int64(0, 0))
        let now = self.state.time.moment(wall: clock.int64(0, 0), shift: clock.int64(0, 1), rows: 0)
        self.number = number
        self.nextBeat = 0
        let attachment = Attachment(
            number: number,
            topics: self.topics,
            values: self.contents,
            now: now,
            wall: PolicyTime.wall(now, shift: clock.int64(0, 1))
        )
        self.events.append(.entered(attachment))
    }

    // MARK: Working

    /// Sends a heartbeat if one is due, and ends the connection if an answer is overdue.
    func workIfDue(_ now: Int64) {
        if let since = self.connection.waitsSince, now - since >= self.gracePeriodMilliseconds {
            return self.endServer(
                " answered nothing for \(self.gracePeriodMilliseconds / 1000) s. See that the server runs and can be "
                    + "reached."
            )
        }
        guard let number = self.number, now >= self.nextBeat else { return }
        self.nextBeat = now + StoreSettings.heartbeatMilliseconds
        self.beat(number)
    }

    private func beat(_ number: GatewayNumber) {
        self.connection.run(.durability)
        self.connection.run(.light)
        self.connection.run(.fence, number.rawValue)
        self.connection.run(.keepTime, self.state.time.last.milliseconds)
        self.connection.run(.raiseOldest)
        self.connection.run(.forget)
        self.connection.send { self.beatAnswered($0) }
        self.sweep()
        self.readNews()
    }

    /// Deletes wakes that ended long ago, in small batches.
    private func sweep() {
        let end = self.state.time.last.milliseconds - StoreSettings.wakeMemoryMilliseconds
        self.connection.run(.light)
        self.connection.run(.sweepWakes, end, StoreSettings.sweepCountMax)
        self.connection.send { outcome in
            let count = outcome.failure == nil ? outcome.results.last?.affectedCount ?? 0 : 0
            if self.number != nil, count == StoreSettings.sweepCountMax { self.sweep() }
        }
    }

    /// Reads topics and values that other gateways have added.
    func readNews() {
        guard self.number != nil else { return }
        guard !self.isReadingNews else {
            self.hasMoreNews = true
            return
        }
        self.isReadingNews = true
        let known = Array(self.values)
        self.connection.run(.topicsFrom, Int32(self.topics.count))
        self.connection.run(.valuesChanged, PostgresList(known.map(\.key)), PostgresList(known.map(\.value.version)))
        self.connection.send { self.newsRead($0) }
    }

    /// Writes the gateway's report, and reads the state of the cluster.
    func report(_ report: GatewayReport) {
        guard let number = self.number, !self.isReporting else { return }
        self.isReporting = true
        self.connection.run(.light)
        self.connection.run(.report, number.rawValue, report.stored())
        for statement in [ControlStatement.clock, .members, .dead, .ready, .nextDue, .totals] {
            self.connection.run(statement)
        }
        self.connection.send { self.reported($0) }
    }

    /// Reads the table of topics after this gateway has added some.
    func topicsMade(_ rows: PostgresRows) {
        guard self.number != nil else { return }
        _ = self.takeTopics(rows)
        self.state.replies.append(.topics(self.topics))
    }

    /// Records a shared value that this gateway has stored.
    func valueStored(_ name: String, _ content: [UInt8], version: Int64) {
        guard self.number != nil else { return }
        self.state.replies.append(.value(name: name, content))
        guard let known = self.values[name], known.version > version else {
            self.values[name] = (version, content)
            return
        }
        // Another gateway has stored a later version, which was already read.
        self.state.replies.append(.value(name: name, known.content))
    }

    /// Marks as dead the gateways whose locks are held by sessions of roles that may not write the tables.
    private func fenceMasked() {
        guard let number = self.number else { return }
        self.connection.run(.light)
        self.connection.query("SELECT set_config('lock_timeout', '300', true)")
        self.connection.run(.fenceMasked, number.rawValue)
        self.connection.send { _ in }
    }

    /// Releases the number.
    func leave() {
        guard let number = self.number else {
            self.events.append(.left)
            return
        }
        self.number = nil
        self.connection.run(.leave, number.rawValue)
        self.connection.send { _ in self.events.append(.left) }
    }

    // MARK: Reading

    private func beatAnswered(_ outcome: PostgresOutcome) {
        if let row = outcome.results.first, row.count == 1 { self.durabilityRead(row.text(0, 0), row.flag(0, 1)) }
        if let failure = outcome.failure, !failure.isConflict { self.ended(failure) }
    }

    /// Warns if the setting lets a commit be confirmed before it is durable. Warns again only after the setting has
    /// changed.
    private func durabilityRead(_ value: String, _ hasStandbys: Bool) {
        let isWeak = ["off", "false", "no", "0"].contains(value) || (value == "local" && hasStandbys)
        let durability = isWeak ? value : ""
        guard durability != self.durability else { return }
        self.durability = durability
        guard isWeak else { return }
        self.state.warnings.append(
            "PostgreSQL at \(self.serverName): synchronous_commit is \(value) for new sessions of this gateway's role, "
                + "so that a commit would be answered before it is safe. The gateway has its own sessions wait for "
                + "durable commits. Set it to on for the role, the database and the server."
        )
    }

    private func newsRead(_ outcome: PostgresOutcome) {
        self.isReadingNews = false
        defer {
            if self.hasMoreNews {
                self.hasMoreNews = false
                self.readNews()
            }
        }
        guard outcome.failure == nil, outcome.results.count == 2 else { return }
        if self.takeTopics(outcome.results[0]) { self.state.replies.append(.topics(self.topics)) }
        for (name, content) in self.takeValues(outcome.results[1]) {
            self.state.replies.append(.value(name: name, content))
        }
    }

    /// - Returns: true if topics were added.
    private func takeTopics(_ rows: PostgresRows) -> Bool {
        var isLonger = false
        for row in 0..<rows.count where Int(rows.int32(row, 0)) == self.topics.count {
            self.topics.append(rows.text(row, 1))
            isLonger = true
        }
        return isLonger
    }

    /// - Returns: the values read.
    private func takeValues(_ rows: PostgresRows) -> [(name: String, content: [UInt8])] {
        (0..<rows.count).map { row in
            let (name, content) = (rows.text(row, 0), rows.bytes(row, 2).array)
            self.values[name] = (rows.int64(row, 1), content)
            return (name, content)
        }
    }

    private func reported(_ outcome: PostgresOutcome) {
        self.isReporting = false
        if let failure = outcome.failure {
            // If another session has locked this gateway's row, the report is repeated in a second.
            if !failure.isConflict { self.ended(failure) }
            return
        }
        guard outcome.results.count == 8, outcome.results[2].count == 1 else { return }
        guard outcome.results[1].count == 1 else { return self.ended(.fenced) }
        let view = ClusterView(results: outcome.results, time: &self.state.time)
        self.state.replies.append(.view(view))
        let isAnySilent = view.members.contains {
            $0.number != self.number && view.wall - $0.reportedAt > self.state.settings.silenceMilliseconds
        }
        if isAnySilent { self.fenceMasked() }
    }

    // MARK: Ending

    func ended(_ failure: PostgresError) { self.end(StoreError(failure), isOfServer: failure.isOfServer) }

    /// - `problem`: the text after the name of the server, with the remedy.
    private func endServer(_ problem: String, isOfServer: Bool = true) {
        self.end(StoreError(message: "PostgreSQL at \(self.serverName)\(problem)"), isOfServer: isOfServer)
    }

    /// - `isOfServer`: true if another server may succeed.
    private func end(_ error: StoreError, isOfServer: Bool = true) {
        // Try a server that has just failed last, because each dead server costs a timeout.
        if isOfServer, self.connection.isReady, let server = self.connection.server {
            self.state.firstHost = server.hostIndex + 1
        }
        self.close()
        self.events.append(.ended(error))
    }

    /// Closes the connection, which releases the number.
    func close() {
        self.connection.close()
        self.gracePeriodMilliseconds = StoreSettings.answerMilliseconds
        self.number = nil
        self.isReporting = false
        self.isReadingNews = false
        self.hasMoreNews = false
    }
}

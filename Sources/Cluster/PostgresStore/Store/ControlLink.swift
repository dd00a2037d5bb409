import Engine
import Platform
import Policy
import Wire

/// The connection that owns the gateway's number. It creates the tables, acquires a number, sends a heartbeat each
/// second, and reads the topics and values that all gateways share.
///
/// It writes no devices and waits only briefly for locks, because a gateway with a late heartbeat loses its number.
final class ControlLink: StoreLink {
    enum Purpose {
        case greet, schemaFind, schemaRead, schemaLock, schemaReadLocked, schemaLockHolder, schemaMake, enter, register
        case beat, sweep, report, fenceMasked, news, leave
    }

    private enum State {
        /// Not connected. Can move to: connecting.
        case closed
        /// Connecting, and acquiring the number. Can move to: working, closed.
        case attaching
        /// Can move to: leaving, closed.
        case working
        /// Can move to: closed.
        case leaving
    }

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
    private(set) var session: Session<Purpose, ControlStatement>?
    private var phase = State.closed
    private var number: GatewayNumber?
    private var gracePeriodMilliseconds = StoreSettings.answerMilliseconds
    private var nextBeat: Int64 = 0
    private(set) var topics: [String] = []
    /// The version that was last read of each shared value, by name.
    private var valueVersions: [String: Int64] = [:]
    private(set) var values: [String: [UInt8]] = [:]
    private var isReporting = false
    private var isReadingNews = false
    /// True if topics or values have changed since the current read began.
    private var hasMoreNews = false
    private var events: [Event] = []
    /// The last value of synchronous_commit for new sessions, if commits are not durable under it; otherwise empty.
    private var durability = ""

    init(_ state: StoreState) {
        self.state = state
    }

    var isClosed: Bool { if case .closed = self.phase { true } else { false } }
    private var isWorking: Bool { if case .working = self.phase { true } else { false } }

    var nextMoment: Int64? {
        switch self.phase {
        case .closed: nil
        case .working: self.nextBeat
        case .attaching, .leaving: self.session?.server.deadline
        }
    }

    /// Returns the events since the last call, in order.
    func takeEvents() -> [Event] {
        defer { self.events = [] }
        return self.events
    }

    // MARK: Attaching

    /// Starts to attach the store.
    func connect() {
        self.gracePeriodMilliseconds = StoreSettings.answerMilliseconds
        self.session = Session(
            self.state,
            SessionSetup.control(silenceMilliseconds: self.state.settings.silenceMilliseconds)
        )
        self.phase = .attaching
    }

    private var serverName: String { self.session?.server.server ?? "the server" }

    func connected() {
        guard let session = self.session else { return }
        guard session.server.version >= 150_000 else {
            return self.end(StoreError(server: self.serverName, oldServer: session.server.version))
        }
        session.exchange(.greet) { sender in
            sender.query(
                """
                SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean,
                    current_setting('synchronous_standby_names') <> '' AND NOT EXISTS (SELECT FROM pg_stat_replication),
                    pg_backend_pid(), current_setting('idle_session_timeout', true) IS NOT DISTINCT FROM '0'
                """
            )
        }
    }

    private func attachStepEnded(_ purpose: Purpose, _ outcome: ExchangeOutcome) {
        guard let session = self.session else { return }
        if let failure = outcome.failure {
            if case .schemaLock = purpose, failure.kind == .lockNotAvailable { return self.findSchemaLockHolder() }
            if case .schemaMake = purpose, failure.kind == .lockNotAvailable {
                return self.end(
                    StoreError(
                        message: "Another session has locked a table that this version of WakeGate changes. End its "
                            + "transaction (pg_stat_activity), and start the gateway again."
                    ),
                    isOfServer: false
                )
            }
            return self.ended(failure)
        }
        switch purpose {
        case .greet: self.greeted(outcome)
        case .schemaFind:
            guard outcome.results.last?.flag(0, 0) == true else { return self.lockSchema() }
            session.exchange(.schemaRead) { $0.query("SELECT version, oldest FROM wakegate.meta") }
        case .schemaRead: self.schemaRead(outcome, isLocked: false)
        case .schemaLock:
            guard outcome.results.last?.flag(0, 0) == true else { return self.makeSchema(from: 0) }
            session.exchange(.schemaReadLocked) { $0.query("SELECT version, oldest FROM wakegate.meta") }
        case .schemaReadLocked: self.schemaRead(outcome, isLocked: true)
        case .schemaLockHolder:
            let holder = outcome.results.last.flatMap { $0.count > 0 ? $0.text(0, 0) : nil }
            self.end(StoreError(server: self.serverName, schemaLockedBy: holder ?? "it has ended since"))
        case .schemaMake: self.schemaMade(outcome)
        case .enter: self.register(outcome)
        case .register: self.registered(outcome)
        default: ()
        }
    }

    private func greeted(_ outcome: ExchangeOutcome) {
        guard let session = self.session, let row = outcome.results.last, row.count == 1 else {
            return self.ended(.unexpectedAnswer)
        }
        // A pool assigns its own backend numbers, and drops the settings that clients request.
        guard row.int32(0, 2) == session.server.backend, !row.flag(0, 3) else {
            return self.end(StoreError(poolAt: self.serverName))
        }
        guard !row.flag(0, 0) else { return self.end(StoreError(readOnlyServer: self.serverName)) }
        // A commit of the gateway would wait for a standby, even after this process has ended.
        guard !row.flag(0, 1) else { return self.end(StoreError(serverWithoutStandby: self.serverName)) }
        self.state.firstHost = session.server.hostIndex
        session.exchange(.schemaFind) { $0.query("SELECT to_regclass('wakegate.meta') IS NOT NULL") }
    }

    // MARK: The tables

    private func schemaRead(_ outcome: ExchangeOutcome, isLocked: Bool) {
        guard let row = outcome.results.last, row.count == 1 else { return self.ended(.unexpectedAnswer) }
        switch Schema.verdict(found: row.int32(0, 0), oldest: row.int32(0, 1)) {
        case .newer(let found): self.end(StoreError(server: self.serverName, newerSchema: found), isOfServer: false)
        case .older(let found): if isLocked { self.makeSchema(from: found) } else { self.lockSchema() }
        case .current: self.checkRights(isLocked: isLocked)
        }
    }

    /// Takes the lock under which one gateway at a time creates or upgrades the tables. A gateway that finds current
    /// tables takes no lock, because any role that may connect could hold it.
    private func lockSchema() {
        self.gracePeriodMilliseconds = StoreSettings.schemaMilliseconds
        self.session?.exchange(.schemaLock) { sender in
            sender.query("BEGIN")
            sender.query("SET LOCAL lock_timeout = \(self.state.settings.schemaLockMilliseconds)")
            sender.query("SELECT pg_advisory_xact_lock(\(AdvisoryLock.others), \(AdvisoryLock.schema))")
            sender.query("SELECT to_regclass('wakegate.meta') IS NOT NULL")
        }
    }

    /// Queries the session that has held the lock for too long.
    private func findSchemaLockHolder() {
        self.gracePeriodMilliseconds = StoreSettings.answerMilliseconds
        self.session?.exchange(.schemaLockHolder) { sender in
            sender.query("ROLLBACK")
            sender.query(
                """
                SELECT format('pid %s, role %s, application %L', a.pid, a.usename, a.application_name)
                FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
                WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
                    AND l.classid = \(AdvisoryLock.others)::oid AND l.objid = \(AdvisoryLock.schema)::oid
                    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1
                """
            )
        }
    }

    /// - Parameter found: the version of the existing tables; 0 for none.
    private func makeSchema(from found: Int32) {
        self.session?.exchange(.schemaMake) { sender in
            // A schema change that is waiting for a lock blocks all writers of the table, so it gives up soon.
            if found > 0 { sender.query("SET LOCAL lock_timeout = '1s'") }
            for statement in Schema.statements(from: found) { sender.query(statement) }
            sender.query("COMMIT")
            sender.query(Self.rights)
        }
    }

    private func checkRights(isLocked: Bool) {
        self.session?.exchange(.schemaMake) { sender in
            if isLocked { sender.query("COMMIT") }
            sender.query(Self.rights)
        }
    }

    /// A query for the role, and for the tables that it may not read and write.
    private static let rights = """
        SELECT current_user::text, coalesce(string_agg(c.relname, ', '), '')::text FROM pg_class c
        WHERE c.relnamespace = 'wakegate'::regnamespace AND c.relkind = 'r' AND NOT (
            has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
            AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))
        """

    private func schemaMade(_ outcome: ExchangeOutcome) {
        self.gracePeriodMilliseconds = StoreSettings.answerMilliseconds
        guard let rights = outcome.results.last, rights.count == 1 else {
            return self.ended(.unexpectedAnswer)
        }
        guard rights.text(0, 1).isEmpty else {
            let (role, tables) = (rights.text(0, 0), rights.text(0, 1))
            return self.end(
                StoreError(server: self.serverName, role: role, withoutRightsOn: tables),
                isOfServer: false
            )
        }
        self.session?.exchange(.enter) { sender in
            sender.prepareAll(clock: self.state.settings.clock)
            sender.run(.durable)
            sender.query("SELECT FROM wakegate.meta FOR UPDATE")
            sender.run(.keepTime, self.state.time.last.milliseconds)
            // Any role that may connect can lock future numbers, so skip locked numbers.
            sender.query(
                """
                SELECT n FROM (SELECT nextval('wakegate.gateway_number')::integer AS n
                    FROM generate_series(1, \(Self.numberAttemptsMax)) OFFSET 0) numbers
                WHERE pg_try_advisory_lock(\(AdvisoryLock.gateways), n) LIMIT 1
                """
            )
        }
    }

    private func register(_ outcome: ExchangeOutcome) {
        guard let row = outcome.results.last, row.count == 1 else {
            return self.end(StoreError(server: self.serverName, lockedNumbers: Self.numberAttemptsMax))
        }
        let number = row.int32(0, 0)
        self.number = GatewayNumber(rawValue: number)
        let clock = self.state.settings.clock
        self.session?.exchange(.register) { sender in
            sender.run(.durable)
            sender.query(
                """
                INSERT INTO wakegate.gateway (number, schema, since, reported_at, report, alive)
                SELECT \(number), \(Schema.version), c, c, '', true FROM (SELECT \(clock) AS c) clock
                """
            )
            sender.query(
                """
                INSERT INTO wakegate.connection (gateway, connection, alive)
                SELECT \(number), i, true FROM generate_series(1, \(self.state.settings.connections)) i
                """
            )
            if !self.topics.isEmpty {
                // A server that replaced the primary without a synchronous standby may lack the latest topics. The
                // engine still uses their numbers, so they must stay free of other topics.
                sender.run(.lockTopics)
                sender.run(.addTopics, PostgresList(self.topics))
            }
            sender.run(.topicsFrom, Int32(0))
            sender.run(.valuesChanged, PostgresList([String]()), PostgresList([Int64]()))
            sender.query("SELECT coalesce(max(moment), 0)::bigint FROM wakegate.connection")
            sender.run(.clock)
        }
    }

    private func registered(_ outcome: ExchangeOutcome) {
        let results = outcome.results.suffix(4)
        guard results.count == 4, let clock = results.last, clock.count == 1, let number = self.number else {
            return self.ended(.unexpectedAnswer)
        }
        let first = results.startIndex
        self.topics = []
        self.values = [:]
        self.valueVersions = [:]
        _ = self.takeTopics(results[first])
        _ = self.takeValues(results[first + 1])
        self.state.time.reached(results[first + 2].int64(0, 0))
        let now = self.state.time.moment(wall: clock.int64(0, 0), shift: clock.int64(0, 1), rows: 0)
        self.phase = .working
        self.nextBeat = 0
        let attachment = Attachment(
            number: number,
            topics: self.topics,
            values: self.values,
            now: now,
            wall: PolicyTime.wall(now, shift: clock.int64(0, 1))
        )
        self.events.append(.entered(attachment))
    }

    // MARK: Working

    /// Sends a heartbeat if one is due, and ends the connection if an answer is overdue.
    func timePassed(_ now: Int64) {
        guard let session = self.session else { return }
        if let since = session.waitsSince, now - since >= self.gracePeriodMilliseconds {
            return self.end(StoreError(silentServer: self.serverName, seconds: self.gracePeriodMilliseconds / 1000))
        }
        guard self.isWorking, now >= self.nextBeat else { return }
        self.nextBeat = now + StoreSettings.heartbeatMilliseconds
        self.beat()
    }

    private func beat() {
        guard let number = self.number else { return }
        self.session?.exchange(.beat) { sender in
            sender.run(.durability)
            sender.run(.light)
            sender.run(.fence, number.rawValue)
            sender.run(.keepTime, self.state.time.last.milliseconds)
            sender.run(.raiseOldest)
            sender.run(.forget)
        }
        self.sweep()
        self.readNews()
    }

    /// Deletes wakes that ended long ago, in small batches.
    private func sweep() {
        self.session?.exchange(.sweep) { sender in
            sender.run(.light)
            let end = self.state.time.last.milliseconds - StoreSettings.wakeMemoryMilliseconds
            sender.run(.sweepWakes, end, StoreSettings.sweepCountMax)
        }
    }

    /// Reads topics and values that other gateways have added.
    func readNews() {
        guard self.isWorking else { return }
        guard !self.isReadingNews else {
            self.hasMoreNews = true
            return
        }
        self.isReadingNews = true
        self.session?.exchange(.news) { sender in
            sender.run(.topicsFrom, Int32(self.topics.count))
            let known = Array(self.valueVersions)
            sender.run(.valuesChanged, PostgresList(known.map(\.key)), PostgresList(known.map(\.value)))
        }
    }

    /// Writes the gateway's report, and reads the state of the cluster.
    func report(_ report: GatewayReport) {
        guard self.isWorking, !self.isReporting, let number = self.number else { return }
        self.isReporting = true
        self.session?.exchange(.report) { sender in
            sender.run(.light)
            sender.run(.report, number.rawValue, report.stored())
            for statement in [ControlStatement.clock, .members, .dead, .ready, .nextDue, .totals] {
                sender.run(statement)
            }
        }
    }

    /// Reads the table of topics after this gateway has added some.
    func topicsMade(_ rows: PostgresRows) {
        guard self.isWorking else { return }
        _ = self.takeTopics(rows)
        self.state.replies.append(.topics(self.topics))
    }

    /// Records a shared value that this gateway has stored.
    func valueStored(_ name: String, _ content: [UInt8], version: Int64) {
        guard self.isWorking else { return }
        self.state.replies.append(.value(name: name, content))
        guard let known = self.valueVersions[name], known > version else {
            self.valueVersions[name] = version
            self.values[name] = content
            return
        }
        // Another gateway has stored a later version, which was already read.
        self.state.replies.append(.value(name: name, self.values[name] ?? []))
    }

    /// Marks as dead the gateways whose locks are held by sessions of roles that may not write the tables.
    private func fenceMasked() {
        guard let number = self.number else { return }
        self.session?.exchange(.fenceMasked) { sender in
            sender.run(.light)
            sender.query("SELECT set_config('lock_timeout', '300', true)")
            sender.run(.fenceMasked, number.rawValue)
        }
    }

    /// Releases the number.
    func leave() {
        guard self.isWorking, let number = self.number else {
            self.events.append(.left)
            return
        }
        self.phase = .leaving
        self.session?.exchange(.leave) { sender in sender.run(.leave, number.rawValue) }
    }

    // MARK: Reading

    func answered(_ purpose: Purpose, _ outcome: ExchangeOutcome) {
        if case .attaching = self.phase { return self.attachStepEnded(purpose, outcome) }
        switch purpose {
        case .beat: self.beatAnswered(outcome)
        case .sweep:
            let count = outcome.failure == nil ? outcome.results.last?.affectedCount ?? 0 : 0
            if self.isWorking, count == StoreSettings.sweepCountMax { self.sweep() }
        case .report:
            self.isReporting = false
            self.reported(outcome)
        case .news: self.newsRead(outcome)
        case .leave: self.events.append(.left)
        default: ()
        }
    }

    private func beatAnswered(_ outcome: ExchangeOutcome) {
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

    private func newsRead(_ outcome: ExchangeOutcome) {
        self.isReadingNews = false
        defer {
            if self.hasMoreNews {
                self.hasMoreNews = false
                self.readNews()
            }
        }
        guard outcome.failure == nil, outcome.results.count == 2 else { return }
        if self.takeTopics(outcome.results[0]) { self.state.replies.append(.topics(self.topics)) }
        for name in self.takeValues(outcome.results[1]) {
            self.state.replies.append(.value(name: name, self.values[name] ?? []))
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

    /// - Returns: the names of the values read.
    private func takeValues(_ rows: PostgresRows) -> [String] {
        (0..<rows.count).map { row in
            let name = rows.text(row, 0)
            self.valueVersions[name] = rows.int64(row, 1)
            self.values[name] = rows.bytes(row, 2).array
            return name
        }
    }

    private func reported(_ outcome: ExchangeOutcome) {
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

    /// - `isOfServer`: true if another server may succeed.
    private func end(_ error: StoreError, isOfServer: Bool = true) {
        // Try a server that has just failed last, because each dead server costs a timeout.
        if isOfServer, let session = self.session, session.isReady {
            self.state.firstHost = session.server.hostIndex + 1
        }
        self.close()
        self.events.append(.ended(error))
    }

    /// Closes the connection, which releases the number.
    func close() {
        self.session = nil
        self.phase = .closed
        self.number = nil
        self.isReporting = false
        self.isReadingNews = false
        self.hasMoreNews = false
    }
}

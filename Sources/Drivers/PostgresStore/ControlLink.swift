import Bytes
import ClusterStore
import DeviceEngine
import LaunchPolicy
import Platform
import PostgreSQL

/// The connection that holds the gateway's number: it makes the tables, takes the number, says each second that the
/// gateway lives, and tells and hears what gateways tell one another.
final class ControlLink {
    private enum Purpose {
        case greet, schemaLock, schemaRead, schemaMake, enter, register
        case beat, sweep, report, notify, topics, values, leave
        case keep(name: String, content: [UInt8])
    }

    private enum State {
        /// Can move to: connecting.
        case closed
        /// A connection is made, and the number taken. Can move to: working, closed.
        case attaching
        /// Can move to: leaving, closed.
        case working
        /// Can move to: closed.
        case leaving
    }

    /// What the store is to know.
    enum Event {
        /// The number is taken; what a gateway begins with.
        case entered(Attachment)
        /// The connection is gone, or of no use.
        case ended(StoreError)
        /// The number was let go of.
        case left
    }

    private let state: StoreState
    private var session: Session<Purpose>?
    private var phase = State.closed
    private var number: GatewayNumber?
    private var patienceMilliseconds = StoreSettings.answerMilliseconds
    private var nextBeat: Int64 = 0
    private(set) var topics: [String] = []
    /// By name: the version that was read.
    private var valueVersions: [String: Int64] = [:]
    private(set) var values: [String: [UInt8]] = [:]
    private var notices = NoticeQueue()
    private var isNotifying = false
    private var isReporting = false
    private var isReadingValues = false
    private var events: [Event] = []
    /// What is to be kept, and is not yet.
    private var keeps: [(name: String, content: [UInt8])] = []
    /// Topics that are to be made, and are not yet.
    private var newTopics: [String] = []

    init(_ state: StoreState) {
        self.state = state
    }

    var waits: [Descriptor.Wait] { self.session?.waits ?? [] }
    var isClosed: Bool { if case .closed = self.phase { true } else { false } }
    private var isWorking: Bool { if case .working = self.phase { true } else { false } }

    /// When it does something by itself, on the clock that never steps; nil when it need not.
    var nextMoment: Int64? {
        switch self.phase {
        case .closed: nil
        case .working: self.nextBeat
        case .attaching, .leaving: self.session?.server.deadline
        }
    }

    /// What has come of the last calls, in its order.
    func takeEvents() -> [Event] {
        defer { self.events = [] }
        return self.events
    }

    // MARK: Attaching

    /// Begins to attach the store.
    func connect() {
        self.patienceMilliseconds = StoreSettings.answerMilliseconds
        let link = PostgresLink(
            self.state.settings.address,
            application: "wakegate",
            settings: SessionSetup.control(silenceMilliseconds: self.state.settings.silenceMilliseconds),
            firstHost: self.state.firstHost,
            hostMilliseconds: StoreSettings.connectMilliseconds
        )
        self.session = Session(link)
        self.phase = .attaching
    }

    private var serverName: String { self.session?.server.server ?? "the server" }

    private func greet() {
        guard let session = self.session else { return }
        guard session.server.version >= 150_000 else {
            return self.end(StoreError(server: self.serverName, oldServer: session.server.version))
        }
        session.exchange(.greet) { sender in
            sender.query(
                """
                SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean,
                    current_setting('synchronous_standby_names') <> ''
                    AND current_setting('synchronous_commit') NOT IN ('off', 'local')
                    AND NOT EXISTS (SELECT FROM pg_stat_replication)
                """
            )
        }
    }

    private func attachStepEnded(_ purpose: Purpose, _ outcome: Session<Purpose>.Outcome) {
        guard let session = self.session else { return }
        if let failure = outcome.failure { return self.end(failure) }
        switch purpose {
        case .greet:
            guard outcome.results.last?.flag(0, 0) == false else {
                return self.end(StoreError(readOnlyServer: self.serverName))
            }
            // Its sessions would wait for a standby one after the other, and outlive this program's patience.
            guard outcome.results.last?.flag(0, 1) == false else {
                return self.end(StoreError(serverWithoutStandby: self.serverName))
            }
            self.state.firstHost = session.server.hostIndex
            // Whoever makes the tables may take long.
            self.patienceMilliseconds = StoreSettings.schemaMilliseconds
            session.exchange(.schemaLock) { sender in
                sender.query("BEGIN")
                sender.query("SELECT pg_advisory_xact_lock(\(AdvisoryLock.others), \(AdvisoryLock.schema))")
                sender.query("SELECT to_regclass('wakegate.meta') IS NOT NULL")
            }
        case .schemaLock:
            guard outcome.results.last?.flag(0, 0) == true else { return self.makeSchema(from: 0) }
            session.exchange(.schemaRead) { $0.query("SELECT version, oldest FROM wakegate.meta") }
        case .schemaRead:
            guard let row = outcome.results.last, row.count == 1 else {
                return self.end(.odd)
            }
            switch Schema.verdict(found: row.int32(0, 0), oldest: row.int32(0, 1)) {
            case .newer(let found):
                self.end(StoreError(server: self.serverName, newerSchema: found), isOfServer: false)
            case .older(let found): self.makeSchema(from: found)
            case .current: self.makeSchema(from: Schema.version)
            }
        case .schemaMake: self.schemaMade(outcome)
        case .enter: self.register(outcome)
        case .register: self.registered(outcome)
        case .beat, .sweep, .report, .notify, .topics, .values, .leave, .keep: ()
        }
    }

    /// - Parameter found: the version of the tables there are; 0 for none.
    private func makeSchema(from found: Int32) {
        self.session?.exchange(.schemaMake) { sender in
            if found < Schema.version {
                for statement in Schema.statements(from: found) { sender.query(statement) }
            }
            sender.query("COMMIT")
            sender.query(
                """
                SELECT current_user::text, coalesce(string_agg(c.relname, ', '), '')::text FROM pg_class c
                WHERE c.relnamespace = 'wakegate'::regnamespace AND c.relkind = 'r' AND NOT (
                    has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
                    AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))
                """
            )
        }
    }

    private func schemaMade(_ outcome: Session<Purpose>.Outcome) {
        self.patienceMilliseconds = StoreSettings.answerMilliseconds
        guard let rights = outcome.results.last, rights.count == 1 else {
            return self.end(.odd)
        }
        guard rights.text(0, 1).isEmpty else {
            let (role, tables) = (rights.text(0, 0), rights.text(0, 1))
            return self.end(
                StoreError(server: self.serverName, role: role, withoutRightsOn: tables),
                isOfServer: false
            )
        }
        self.session?.exchange(.enter) { sender in
            for statement in ControlStatement.allCases {
                sender.prepare(statement.name, statement.sql(clock: self.state.settings.clock))
            }
            sender.query("SELECT FROM wakegate.meta FOR UPDATE")
            sender.run(.keepTime)
            sender.query(
                """
                SELECT n::integer, pg_try_advisory_lock(\(AdvisoryLock.gateways), n::integer)
                FROM nextval('wakegate.gateway_number') n
                """
            )
        }
    }

    private func register(_ outcome: Session<Purpose>.Outcome) {
        guard let row = outcome.results.last, row.count == 1, row.flag(0, 1) else {
            return self.end(.odd)
        }
        let number = row.int32(0, 0)
        self.number = GatewayNumber(rawValue: number)
        let clock = self.state.settings.clock
        self.session?.exchange(.register) { sender in
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
            sender.query("LISTEN wakegate")
            sender.run(.topicsFrom, Self.parameters(Int32(0)))
            sender.run(.valuesChanged, self.knownValues([:]))
            sender.query("SELECT coalesce(max(moment), 0)::bigint FROM wakegate.connection")
            sender.run(ControlStatement.clock)
        }
    }

    private func registered(_ outcome: Session<Purpose>.Outcome) {
        let results = outcome.results.suffix(4)
        guard results.count == 4, let clock = results.last, clock.count == 1, let number = self.number else {
            return self.end(.odd)
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
        self.notices.removeAll()
        let attachment = Attachment(
            number: number,
            topics: self.topics,
            values: self.values,
            now: now,
            wall: PolicyTime.wall(now, shift: clock.int64(0, 1))
        )
        self.events.append(.entered(attachment))
        // What was asked for under the number before, and not answered.
        if !self.newTopics.isEmpty { self.sendTopics() }
        for keep in self.keeps { self.send(keep) }
    }

    private static func parameters(_ value: Int32) -> PostgresParameters {
        var parameters = PostgresParameters()
        parameters.append(value)
        return parameters
    }

    // MARK: Working

    /// Does what is due.
    func timePassed(_ now: Int64) {
        guard let session = self.session else { return }
        if let deadline = session.server.deadline, now >= deadline { return self.advance() }
        if let since = session.waitsSince, now - since >= self.patienceMilliseconds {
            return self.end(StoreError(silentServer: self.serverName, seconds: self.patienceMilliseconds / 1000))
        }
        guard self.isWorking, now >= self.nextBeat else { return }
        self.nextBeat = now + StoreSettings.heartbeatMilliseconds
        self.beat()
    }

    private func beat() {
        guard let number = self.number else { return }
        self.session?.exchange(.beat) { sender in
            sender.run(.light)
            sender.run(.fence, Self.parameters(number.rawValue))
            sender.run(.keepTime)
            sender.run(.raiseOldest)
            sender.run(.forget)
        }
        self.sweep()
        self.readNews()
    }

    /// Forgets wakes that ended long ago, a few at a time.
    private func sweep() {
        self.session?.exchange(.sweep) { sender in
            sender.run(.light)
            var parameters = PostgresParameters()
            parameters.append(self.state.time.last.milliseconds - StoreSettings.wakeMemoryMilliseconds)
            parameters.append(StoreSettings.sweepCountMax)
            sender.run(.sweepWakes, parameters)
        }
    }

    /// Reads topics and values that other gateways have made.
    private func readNews() {
        guard !self.isReadingValues else { return }
        self.isReadingValues = true
        self.session?.exchange(.values) { sender in
            sender.run(.topicsFrom, Self.parameters(Int32(self.topics.count)))
            sender.run(.valuesChanged, self.knownValues(self.valueVersions))
        }
    }

    private func knownValues(_ versions: [String: Int64]) -> PostgresParameters {
        var names = PostgresArray(.text)
        var numbers = PostgresArray(.int8)
        for (name, version) in versions {
            names.append(name)
            numbers.append(version)
        }
        var parameters = PostgresParameters()
        parameters.append(names)
        parameters.append(numbers)
        return parameters
    }

    /// Says how the gateway is, and looks at what there is besides.
    func report(_ report: GatewayReport) {
        guard self.isWorking, !self.isReporting, let number = self.number else { return }
        self.isReporting = true
        self.session?.exchange(.report) { sender in
            sender.run(.light)
            var parameters = PostgresParameters()
            parameters.append(number.rawValue)
            parameters.append(report.stored())
            sender.run(.report, parameters)
            for statement in [ControlStatement.clock, .members, .dead, .ready, .nextDue, .totals] {
                sender.run(statement)
            }
        }
    }

    /// Tells other gateways something.
    func tell(_ notices: [ClusterNotice]) {
        guard self.isWorking else { return }
        for notice in notices { self.notices.append(.notice(notice)) }
        self.notify()
    }

    private func notify() {
        guard !self.isNotifying, let number = self.number, let payload = self.notices.takePayload(sender: number)
        else { return }
        self.isNotifying = true
        self.session?.exchange(.notify) { sender in
            sender.run(.light)
            var parameters = PostgresParameters()
            parameters.append(payload)
            sender.run(.notify, parameters)
        }
    }

    /// Makes topics; those that are asked for while the store is not attached are made when it is.
    func addTopics(_ names: [String]) {
        for name in names where !self.newTopics.contains(name) { self.newTopics.append(name) }
        if self.isWorking { self.sendTopics() }
    }

    private func sendTopics() {
        self.session?.exchange(.topics) { sender in
            sender.run(.lockTopics)
            var parameters = PostgresParameters()
            parameters.append(self.newTopics)
            sender.run(.addTopics, parameters)
            sender.run(.topicsFrom, Self.parameters(Int32(self.topics.count)))
        }
    }

    /// Keeps something under a name; what is given while the store is not attached is kept when it is.
    func keep(_ name: String, _ content: [UInt8]) {
        self.keeps.append((name, content))
        if self.isWorking { self.send((name, content)) }
    }

    private func send(_ keep: (name: String, content: [UInt8])) {
        self.session?.exchange(.keep(name: keep.name, content: keep.content)) { sender in
            var parameters = PostgresParameters()
            parameters.append(keep.name)
            parameters.append(keep.content)
            sender.run(.keep, parameters)
        }
    }

    /// Lets go of the number.
    func leave() {
        guard self.isWorking, let number = self.number else {
            self.events.append(.left)
            return
        }
        self.phase = .leaving
        self.session?.exchange(.leave) { sender in sender.run(.leave, Self.parameters(number.rawValue)) }
    }

    // MARK: Reading

    /// Goes on as far as it does without waiting.
    func advance() {
        guard let session = self.session else { return }
        var answered: [(purpose: Purpose, outcome: Session<Purpose>.Outcome)] = []
        let turn = session.advance(into: &answered)
        for (purpose, outcome) in answered where self.session === session {
            if case .attaching = self.phase {
                self.attachStepEnded(purpose, outcome)
            } else {
                self.answered(purpose, outcome)
            }
        }
        guard self.session === session else { return }
        for payload in session.takeNotifications() { self.hear(payload) }
        switch turn {
        case .goesOn: ()
        case .connected: self.greet()
        case .ended(let failure): self.end(failure)
        }
    }

    private func hear(_ payload: String) {
        guard let number = self.number else { return }
        for item in NoticePayload.read(payload, receiver: number) {
            switch item {
            case .notice(let notice): self.state.replies.append(.told(notice))
            case .topics, .values: if self.isWorking { self.readNews() }
            }
        }
    }

    private func answered(_ purpose: Purpose, _ outcome: Session<Purpose>.Outcome) {
        switch purpose {
        case .beat: ()
        case .sweep:
            let count = outcome.failure == nil ? outcome.results.last?.affectedCount ?? 0 : 0
            if self.isWorking, count == StoreSettings.sweepCountMax { self.sweep() }
        case .report:
            self.isReporting = false
            self.reported(outcome)
        case .notify:
            self.isNotifying = false
            self.notify()
        case .topics: self.topicsAdded(outcome)
        case .values: self.newsRead(outcome)
        case .keep(let name, let content): self.kept(name, content, outcome)
        case .leave: self.events.append(.left)
        case .greet, .schemaLock, .schemaRead, .schemaMake, .enter, .register: ()
        }
        if let failure = outcome.failure, case .beat = purpose, !failure.isConflict {
            self.end(failure)
        }
    }

    private func topicsAdded(_ outcome: Session<Purpose>.Outcome) {
        guard outcome.failure == nil, outcome.results.count == 3 else {
            if let failure = outcome.failure { self.end(failure) }
            return
        }
        _ = self.takeTopics(outcome.results[2])
        let known = Set(self.topics)
        self.newTopics.removeAll { known.contains($0) }
        self.state.replies.append(.topics(self.topics))
        self.notices.append(.topics)
        self.notify()
    }

    private func newsRead(_ outcome: Session<Purpose>.Outcome) {
        self.isReadingValues = false
        guard outcome.failure == nil, outcome.results.count == 2 else { return }
        if self.takeTopics(outcome.results[0]) { self.state.replies.append(.topics(self.topics)) }
        for name in self.takeValues(outcome.results[1]) {
            self.state.replies.append(.value(name: name, self.values[name] ?? []))
        }
    }

    /// - Returns: whether there are more topics than before.
    private func takeTopics(_ rows: PostgresRows) -> Bool {
        var isLonger = false
        for row in 0..<rows.count where Int(rows.int32(row, 0)) == self.topics.count {
            self.topics.append(rows.text(row, 1))
            isLonger = true
        }
        return isLonger
    }

    /// - Returns: the names of the values that were read.
    private func takeValues(_ rows: PostgresRows) -> [String] {
        (0..<rows.count).map { row in
            let name = rows.text(row, 0)
            self.valueVersions[name] = rows.int64(row, 1)
            self.values[name] = rows.bytes(row, 2).array
            return name
        }
    }

    private func kept(_ name: String, _ content: [UInt8], _ outcome: Session<Purpose>.Outcome) {
        if let failure = outcome.failure { return self.end(failure) }
        if let warning = outcome.unreplicated {
            return self.end(warning)
        }
        if let place = self.keeps.firstIndex(where: { $0.name == name && $0.content == content }) {
            self.keeps.remove(at: place)
        }
        if let row = outcome.results.first, row.count == 1 { self.valueVersions[name] = row.int64(0, 0) }
        self.values[name] = content
        self.state.replies.append(.value(name: name, content))
        self.notices.append(.values)
        self.notify()
    }

    private func reported(_ outcome: Session<Purpose>.Outcome) {
        if let failure = outcome.failure { return self.end(failure) }
        guard outcome.results.count == 8, outcome.results[2].count == 1 else { return }
        guard outcome.results[1].count == 1 else { return self.end(.fenced) }
        self.state.replies.append(.view(ClusterView(results: outcome.results, time: &self.state.time)))
    }

    // MARK: Ending

    private func end(_ failure: PostgresError) { self.end(StoreError(failure), isOfServer: failure.isOfServer) }

    /// - Parameter isOfServer: whether another server may do what this one did not.
    private func end(_ error: StoreError, isOfServer: Bool = true) {
        // Whoever has just gone, or stands still, is asked last: each one that is dead costs a time-out.
        if isOfServer, let session = self.session, session.isReady {
            self.state.firstHost = session.server.hostIndex + 1
        }
        self.close()
        self.events.append(.ended(error))
    }

    /// Ends the connection; the number is let go of with it.
    func close() {
        self.session = nil
        self.phase = .closed
        self.number = nil
        self.isNotifying = false
        self.isReporting = false
        self.isReadingValues = false
    }
}

extension ClusterView {
    /// - Parameter results: of the statements of a report: its own two, clock, members, dead, ready, due, totals.
    fileprivate init(results: [PostgresRows], time: inout PolicyTime) {
        let (clock, members, dead) = (results[2], results[3], results[4])
        let (ready, due, totals) = (results[5], results[6], results[7])
        var total = Books()
        for row in 0..<totals.count {
            if let books = Books(stored: totals.bytes(row, 0)) { total += books }
        }
        let now = time.moment(wall: clock.int64(0, 0), shift: clock.int64(0, 1), rows: 0)
        self.init(
            now: now,
            wall: PolicyTime.wall(now, shift: clock.int64(0, 1)),
            members: (0..<members.count).map { row in
                let report = GatewayReport(stored: members.bytes(row, 3)) ?? GatewayReport(name: "", version: "")
                return Member(
                    number: GatewayNumber(rawValue: members.int32(row, 0)),
                    since: members.int64(row, 1),
                    reportedAt: members.int64(row, 2),
                    report: report
                )
            },
            dead: (0..<dead.count).map { GatewayNumber(rawValue: dead.int32($0, 0)) },
            ready: (0..<ready.count).map { row in
                let topic = TopicIndex(rawValue: UInt32(bitPattern: ready.int32(row, 0)))
                return (topic, Instant(milliseconds: ready.int64(row, 1)))
            },
            nextDue: due.count == 1 ? Instant(milliseconds: due.int64(0, 0)) : nil,
            deviceCount: Int(clamping: total.stock.devices)
        )
    }
}

package import Engine
package import Policy
import Wire

/// Imports the state of another store into the tables, in separate transactions. Running an interrupted import again
/// resumes it. Gateways may use the database at the same time.
///
/// The counters of a state are stored under a negative number that no gateway has.
package final class DatabaseImport {
    /// The maximum number of devices of one transaction.
    package static let devicesMax = 1000

    private let client: PostgresClient
    /// The identifier of the state, which never changes.
    private let id: String
    /// The state's topics. The index of a topic is its number in the state.
    private let topics: [String]
    private var progress: ImportProgress
    /// The database's topic number for each of the state's topics.
    package private(set) var topicNumbers: [Int32] = []

    /// The policy time of all imported rows.
    package var now: Instant { self.progress.now }
    /// The number of devices written.
    package var next: Int { self.progress.next }
    /// True if everything except the delivery log is written.
    package var isDone: Bool { self.progress.isDone }
    /// The number of devices whose delivery log is written.
    package var nextLogged: Int { self.progress.nextLogged }

    /// Starts or resumes the import; creates missing tables.
    ///
    /// - `id`: the identifier of the state, which never changes.
    /// - `fingerprint`: a fingerprint of the state's content.
    /// - `topics`: the state's topics, by number.
    /// - `now`: the policy time of the rows if the import starts now.
    /// - Throws: `StoreError` in one of these cases, or if the database fails: the state was already imported; it has
    ///   changed since an interruption; the database already has one of its topics; another import is in progress.
    package init(
        _ id: String,
        fingerprint: UInt64,
        topics: [String],
        at now: Instant,
        _ settings: StoreSettings
    ) throws(StoreError) {
        // Attaching a store creates the tables or upgrades them to this version.
        try PostgresStore(settings) {}.stop()
        (self.id, self.topics) = (id, topics)
        self.progress = ImportProgress(fingerprint: fingerprint, now: now, number: 0)
        do throws(PostgresError) {
            self.client = try PostgresClient(settings.address, application: "wakegate import")
            try self.client.query(SessionSetup.durable)
        } catch { throw StoreError(error) }
        try self.transaction { () throws(PostgresError) in try self.begin() }
    }

    // MARK: Beginning

    private func begin() throws(PostgresError) -> StoreError? {
        // The first lock belongs to the session, and lasts until the connection closes.
        let lock = try self.client.query(
            """
            SELECT pg_try_advisory_lock(\(AdvisoryLock.others), \(AdvisoryLock.imports)),
                pg_try_advisory_xact_lock(\(AdvisoryLock.others), \(AdvisoryLock.topics))
            """
        )
        guard lock.flag(0, 0) else {
            return Self.error("Another import into this database is under way.", "Wait until it has ended.")
        }
        if let progress = try self.storedProgress() { return try self.resume(progress) }
        let names = PostgresList(self.topics)
        let known = try self.client.query(
            """
            SELECT coalesce(string_agg(name, ', ' ORDER BY name), '')::text FROM wakegate.topic
            WHERE name = ANY($1::text[])
            """,
            names
        )
        let taken = known.text(0, 0)
        guard taken.isEmpty else {
            return Self.error(
                "The database has topics of this state already: \(taken).",
                "Import into an empty database, or one that has no gateway of these topics yet."
            )
        }
        self.progress.number = try self.client.query(
            """
            SELECT least(0, (SELECT min(gateway) FROM wakegate.books),
                (SELECT min(split_part(convert_from(content, 'UTF8'), ' ', 6)::integer) FROM wakegate.value
                    WHERE starts_with(name, 'import.'))) - 1
            """
        ).int32(0, 0)
        try self.client.query(ControlStatement.addTopics.sql(clock: ""), names)
        try self.findTopics()
        try self.saveProgress()
        return nil
    }

    /// Resumes an earlier import of this state.
    private func resume(_ progress: ImportProgress) throws(PostgresError) -> StoreError? {
        guard !progress.isLogDone else {
            return Self.error(
                "This state was moved into this database before.",
                "Start the gateway with store: \"postgresql://...\"; the state folder keeps token.key and certificates."
            )
        }
        guard progress.fingerprint == self.progress.fingerprint else {
            return Self.error(
                "A gateway ran on this state since its import was cut off, or another configuration counts it.",
                "Make the database anew (DROP SCHEMA wakegate CASCADE, if nothing else is in it), and import again."
            )
        }
        self.progress = progress
        try self.findTopics()
        return nil
    }

    private func storedProgress() throws(PostgresError) -> ImportProgress? {
        let rows = try self.value(ImportProgress.name(self.id))
        return rows.count == 1 ? ImportProgress(rows.bytes(0, 0)) : nil
    }

    private func value(_ name: String) throws(PostgresError) -> PostgresRows {
        try self.client.query("SELECT content FROM wakegate.value WHERE name = $1::text", name)
    }

    private func findTopics() throws(PostgresError) {
        let rows = try self.client.query(
            """
            SELECT t.id FROM unnest($1::text[]) WITH ORDINALITY n(name, place)
            JOIN wakegate.topic t ON t.name = n.name ORDER BY n.place
            """,
            PostgresList(self.topics)
        )
        guard rows.count == self.topics.count else { throw .unexpectedAnswer }
        self.topicNumbers = (0..<rows.count).map { rows.int32($0, 0) }
    }

    // MARK: Writing

    /// Writes the next devices and the progress.
    ///
    /// - Parameter rows: the next devices, at most `devicesMax`, with topic numbers of the tables.
    package func write(_ rows: [SharedDeviceChange]) throws(StoreError) {
        try self.transaction { () throws(PostgresError) in
            try ImportRows(client: self.client, now: self.progress.now).write(rows)
            self.progress.next += rows.count
            try self.saveProgress()
            return nil
        }
    }

    /// Writes the counters and the shared values, and records that only the delivery log remains.
    ///
    /// - `counters`: the total, and the counters of each topic by number.
    /// - `rejections`: the refused pushes in the format of `Rejections`. The total has the topic
    ///   `RecordKey.everyTopic`.
    /// - `values`: the shared values by name; a value that the database already has is not replaced.
    /// - `countingSince`: the start of the counters, in milliseconds since 1970; an earlier start in the database
    ///   remains.
    /// - Returns: the names of the values that the database already had.
    package func finish(
        _ counters: (total: ActivityCounters, topics: [ActivityCounters]),
        rejections: [(topic: UInt32, content: [UInt8])],
        values: [String: [UInt8]],
        countingSince: (name: String, milliseconds: Int64)?
    ) throws(StoreError) -> [String] {
        var kept: [String] = []
        try self.transaction { () throws(PostgresError) in
            let rows = [(ConnectionCounters.everyTopic, counters.total)] + zip(self.topicNumbers, counters.topics)
            for (topic, counters) in rows {
                try self.count("books (gateway, connection, topic, counts)", topic, counters)
            }
            try self.write(rejections)
            for (name, content) in values.sorted(by: { $0.key < $1.key }) {
                let answer = try self.client.query(
                    "INSERT INTO wakegate.value (name, content) VALUES ($1::text, $2::bytea) ON CONFLICT DO NOTHING",
                    name,
                    content
                )
                if answer.affectedCount == 0 { kept.append(name) }
            }
            if let countingSince { try self.writeCountingStart(countingSince.name, countingSince.milliseconds) }
            // Policy time continues from here for the next gateway that attaches.
            try self.client.query(
                "UPDATE wakegate.connection SET moment = greatest(moment, $1::bigint) WHERE gateway = 0",
                self.progress.now.milliseconds
            )
            self.progress.isDone = true
            try self.saveProgress()
            return nil
        }
        return kept
    }

    private func write(_ rejections: [(topic: UInt32, content: [UInt8])]) throws(PostgresError) {
        for (topic, content) in rejections {
            let isAll = topic == RecordKey.everyTopic
            guard isAll || Int(topic) < self.topicNumbers.count else { continue }
            try self.count(
                "rejection (gateway, connection, number, topic, content)",
                isAll ? ConnectionCounters.everyTopic : self.topicNumbers[Int(topic)],
                content
            )
        }
    }

    private func count(_ table: String, _ topic: Int32, _ content: some PostgresValue) throws(PostgresError) {
        let number = table.hasPrefix("rejection") ? "1, " : ""
        try self.client.query(
            "INSERT INTO wakegate.\(table) VALUES ($1::integer, 1, \(number)$2::integer, $3::bytea)",
            self.progress.number,
            topic,
            content
        )
    }

    private func writeCountingStart(_ name: String, _ milliseconds: Int64) throws(PostgresError) {
        let rows = try self.value(name)
        if rows.count == 1, rows.bytes(0, 0).count == 8 {
            let stored = Int64(littleEndian: rows.bytes(0, 0).load(Int64.self, at: 0))
            guard milliseconds < stored else { return }
        }
        var buffer = ByteBuffer()
        buffer.append(memoryOf: milliseconds.littleEndian)
        try self.storeValue(name, buffer.view.array)
    }

    private func saveProgress() throws(PostgresError) {
        try self.storeValue(ImportProgress.name(self.id), self.progress.content)
    }

    private func storeValue(_ name: String, _ content: [UInt8]) throws(PostgresError) {
        try self.client.query(ControlStatement.storeValue.sql(clock: ""), name, content)
    }

    // MARK: Delivery log

    /// Writes the events of the next devices and the progress. These events sort before events that running gateways
    /// have written for the same devices.
    ///
    /// - Parameter logs: the events of each device, the newest first.
    package func write(logs: [[HistoryEvent]]) throws(StoreError) {
        var rows = ImportedEvents()
        for events in logs { rows.append(events) }
        try self.transaction { () throws(PostgresError) in
            try rows.write(to: self.client)
            self.progress.nextLogged += logs.count
            try self.saveProgress()
            return nil
        }
    }

    /// Marks the delivery log as written.
    package func finishLog() throws(StoreError) {
        try self.transaction { () throws(PostgresError) in
            self.progress.isLogDone = true
            try self.saveProgress()
            return nil
        }
    }

    // MARK: Transactions

    /// Runs `body` in a transaction, which is rolled back if it throws or returns an error.
    private func transaction(_ body: () throws(PostgresError) -> StoreError?) throws(StoreError) {
        let progress = self.progress
        let refusal: StoreError?
        do throws(PostgresError) {
            try self.client.query("BEGIN")
            refusal = try body()
            try self.client.query(refusal == nil ? "COMMIT" : "ROLLBACK")
        } catch {
            self.progress = progress
            _ = try? self.client.query("ROLLBACK")
            throw StoreError(error)
        }
        if let refusal { throw refusal }
    }

    private static func error(_ problem: String, _ remedy: String) -> StoreError {
        StoreError(message: "\(problem) \(remedy)")
    }
}

/// The progress of an import, which the database stores together with the imported rows.
struct ImportProgress: Hashable {
    /// Returns the name of the shared value with the progress of a source.
    static func name(_ source: String) -> String { "import.\(source)" }

    /// The fingerprint of the state when it was read.
    var fingerprint: UInt64
    /// The policy time of every row, also after a resumption.
    var now: Instant
    /// The number of devices written.
    var next = 0
    /// True if the counters and shared values are written as well.
    var isDone = false
    /// The number of devices whose delivery log is written, in the order of their numbers.
    var nextLogged = 0
    /// True if the whole delivery log is written.
    var isLogDone = false
    /// The negative gateway number of the rows with counters.
    var number: Int32

    /// The fields as words separated by spaces.
    var content: [UInt8] {
        let state = "1 \(self.fingerprint) \(self.now.milliseconds)"
        let rows = "\(self.next) \(self.isDone ? 1 : 0) \(self.number)"
        return Array("\(state) \(rows) \(self.nextLogged) \(self.isLogDone ? 1 : 0)".utf8)
    }
}

extension ImportProgress {
    /// Parses the fields; nil if they are invalid.
    init?(_ content: ByteView) {
        let words = content.string.split(separator: " ")
        guard words.count == 8, words[0] == "1", let fingerprint = UInt64(words[1]), let now = Int64(words[2]),
            let next = Int(words[3]), next >= 0, let number = Int32(words[5]), let nextLogged = Int(words[6]),
            nextLogged >= 0
        else { return nil }
        self.init(
            fingerprint: fingerprint,
            now: Instant(milliseconds: now),
            next: next,
            isDone: words[4] == "1",
            nextLogged: nextLogged,
            isLogDone: words[7] == "1",
            number: number
        )
    }
}

/// Writes new devices as rows of the tables, with one statement per table.
struct ImportRows: StatementRunner {
    let client: PostgresClient
    let now: Instant

    /// Writes the rows. The caller has begun a transaction.
    func write(_ rows: [SharedDeviceChange]) throws(PostgresError) {
        _ = try WriteStep(devices: rows, versions: RowVersions(), now: self.now, self)
        try self.writeWakes(rows)
    }

    func run(_ statement: CommitStatement, _ parameters: borrowing PostgresParameters) throws(PostgresError) {
        try self.client.query(statement.sql(clock: ""), parameters)
    }

    /// Writes the ended wakes, so that late results find their device. No imported wake is in flight. The holder is 0,
    /// because no gateway of this database has launched these wakes.
    private func writeWakes(_ rows: [SharedDeviceChange]) throws(PostgresError) {
        let wakes = SharedDeviceChange.launched(rows)
        guard !wakes.isEmpty else { return }
        var parameters = PostgresParameters()
        parameters.append(wakes) { $0.wake }
        parameters.append(wakes) { $0.token }
        parameters.append(wakes) { $0.deadline.milliseconds }
        parameters.append(self.now.milliseconds)
        try self.client.query(
            """
            INSERT INTO wakegate.wake (id, device, holder, deadline, ended)
            SELECT id, device, 0, deadline, $4::bigint FROM unnest($1::uuid[], $2::bytea[], $3::bigint[])
                u(id, device, deadline)
            """,
            parameters
        )
    }
}

import Engine
import Policy
package import Wire

/// The SQLite file of the history. It stores chunks of about one page, and runs, each with a list of its chunks.
///
/// A chunk changes one page for 270 events. A row for each event, with two indexes over random keys, would change three
/// pages per event.
final class RunTable {
    /// The reason why a file cannot be opened.
    enum OpeningFault: Error {
        /// The file can never be opened: it is damaged, belongs to another program, or has another format.
        case unusable(String)
        /// Opening failed, but may succeed later.
        case failed(SQLiteError)
    }

    /// The state of a run, as stored in its row.
    enum RunState: Int64 {
        case live = 0
        /// The incomplete result of a merge.
        case unfinished = 1
        /// A run whose chunks are being deleted.
        case dead = 2
    }

    /// "WGHi", which identifies the file as a history of WakeGate.
    static let applicationID: Int64 = 0x5747_4869
    /// The format version that this build reads and writes.
    static let version: Int64 = 2
    static let pageBytes = 8192
    /// The size at which a chunk and its row's header exactly fill one page, without overflow pages.
    static let chunkBytesMax = pageBytes - 48

    let database: SQLiteDatabase
    /// The key that hashes devices and pushes to numbers.
    let key: HashKey
    /// True if `init` created the file.
    let isNew: Bool
    private let insertChunk: SQLiteStatement
    private let selectChunk: SQLiteStatement
    private let deleteChunk: SQLiteStatement
    private let saveRun: SQLiteStatement
    /// The row of the next chunk. The rows of any run in the file, live or dead, are never reused. A restart may delete
    /// the chunks of a dead run again, and it must not delete those of another run.
    private var nextRow: Int64 = 1
    /// True if the whole log has been copied into the file.
    private var isLogCopied = false

    /// - Parameters:
    ///   - path: the file; nil for a database in memory.
    ///   - key: the key that hashes devices and pushes; a file with another key is unusable.
    ///   - vfs: the name of the file system layer; nil for the default one.
    init(path: String?, key: HashKey, vfs: String?) throws(OpeningFault) {
        self.key = key
        do {
            let database = try SQLiteDatabase(path: path ?? ":memory:", mode: .create, vfs: vfs)
            // No other process opens the file while the gateway runs. The exclusive mode saves a lock per transaction.
            // It is set before the first read, because this also saves the shared memory file.
            try database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self.isNew = try !Self.checkOrigin(database)
            try Self.prepare(database, isInMemory: path == nil)
            try Self.check(key, database)
            // A failed sync of an earlier process may have left log pages that are not on the disk.
            if path != nil { try database.syncRecoveredCommits() }
            self.database = database
            self.insertChunk = try database.prepare("INSERT INTO chunk (id, content) VALUES (?, ?)")
            self.selectChunk = try database.prepare("SELECT content FROM chunk WHERE id = ?")
            self.deleteChunk = try database.prepare("DELETE FROM chunk WHERE id = ?")
            self.saveRun = try database.prepare("REPLACE INTO run (id, state, content) VALUES (?, ?, ?)")
        } catch let fault as OpeningFault {
            throw fault
        } catch let error as SQLiteError {
            throw Self.isDamage(error) ? .unusable(error.message) : .failed(error)
        } catch {
            throw .unusable("\(error)")
        }
    }

    static func isDamage(_ error: SQLiteError) -> Bool {
        error.kind == .corrupt || error.kind == .notDatabase
    }

    static func damage(_ message: String) -> SQLiteError {
        SQLiteError(kind: .corrupt, message: message)
    }

    /// - Returns: true if the file already contains a history.
    private static func checkOrigin(_ database: SQLiteDatabase) throws -> Bool {
        if try database.integer("SELECT count(*) FROM sqlite_schema") == 0 { return false }
        guard try database.integer("PRAGMA application_id") == self.applicationID else {
            throw OpeningFault.unusable("it is a file of another program")
        }
        let version = try database.integer("PRAGMA user_version") ?? 0
        guard version == self.version else {
            throw OpeningFault.unusable("its format is \(version), and this program knows format \(self.version)")
        }
        return true
    }

    /// Stores a fingerprint of the key in a new file, and refuses a file with another fingerprint.
    private static func check(_ key: HashKey, _ database: SQLiteDatabase) throws {
        let mark = Int64(bitPattern: HistoryEvent.mark(of: key))
        guard let known = try database.integer("SELECT mark FROM key WHERE id = 1") else {
            return try database.execute("INSERT INTO key (id, mark) VALUES (1, \(mark))")
        }
        guard known == mark else { throw OpeningFault.unusable("it was written under another key than history.key") }
    }

    private static func prepare(_ database: SQLiteDatabase, isInMemory: Bool) throws(SQLiteError) {
        try database.execute("PRAGMA page_size = \(self.pageBytes)")
        // With this mode, free pages can be returned to the file system when the history shrinks.
        try database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        // Commits are not synced. The end of the process loses nothing; a power failure loses the commits since the
        // last `sync`. SQLite still syncs when it copies or restarts the log, which keeps the file consistent.
        try database.execute("PRAGMA journal_mode = \(isInMemory ? "MEMORY" : "WAL")")
        try database.execute("PRAGMA synchronous = \(isInMemory ? "OFF" : "NORMAL")")
        // Debian's build overwrites deleted data with zeros by default, which would double the writes for deletions.
        try database.execute("PRAGMA secure_delete = OFF")
        try database.execute("PRAGMA cache_size = -1024")
        try database.execute("PRAGMA temp_store = MEMORY")
        try database.execute(
            """
            BEGIN IMMEDIATE;
            PRAGMA application_id = \(self.applicationID);
            PRAGMA user_version = \(self.version);
            CREATE TABLE IF NOT EXISTS chunk (id INTEGER PRIMARY KEY, content BLOB NOT NULL);
            CREATE TABLE IF NOT EXISTS key (id INTEGER PRIMARY KEY, mark INTEGER NOT NULL);
            CREATE TABLE IF NOT EXISTS run (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, content BLOB NOT NULL);
            CREATE TABLE IF NOT EXISTS written (id INTEGER PRIMARY KEY, sequence INTEGER NOT NULL);
            CREATE TABLE IF NOT EXISTS void (after INTEGER PRIMARY KEY, until INTEGER NOT NULL);
            COMMIT;
            """
        )
    }

    /// Runs `body` in a transaction, which is rolled back if it throws.
    func transaction<Result>(_ body: () throws(SQLiteError) -> Result) throws(SQLiteError) -> Result {
        try self.database.execute("BEGIN IMMEDIATE")
        self.isLogCopied = false
        do {
            let result = try body()
            try self.database.execute("COMMIT")
            return result
        } catch {
            // SQLite rolls back on its own after some errors. `ROLLBACK` then fails.
            try? self.database.execute("ROLLBACK")
            throw error
        }
    }

    /// The number of pages in the write-ahead log that are not yet copied into the file.
    var logPages: Int { self.isLogCopied ? 0 : self.database.logPages }

    /// Copies the log into the file and syncs both. The next transaction then restarts the log.
    func copyLog() throws(SQLiteError) {
        let (logPages, copiedPages) = try self.database.checkpoint(.passive)
        self.isLogCopied = logPages == copiedPages
    }

    /// Returns at most `count` free pages to the file system.
    func giveBack(_ count: Int) throws(SQLiteError) {
        try self.transaction { () throws(SQLiteError) in
            try self.database.execute("PRAGMA incremental_vacuum(\(count))")
        }
    }

    /// Returns the number of pages of the file, and the number of free pages.
    func pages() throws(SQLiteError) -> (all: Int, free: Int) {
        let all = try self.database.integer("PRAGMA page_count") ?? 0
        return (Int(all), Int(try self.database.integer("PRAGMA freelist_count") ?? 0))
    }

    /// - Returns: the chunk's row.
    func addChunk(_ content: ByteView) throws(SQLiteError) -> Int64 {
        let row = self.nextRow
        self.nextRow += 1
        try self.insertChunk.bind(1, row)
        try self.insertChunk.bind(2, content)
        try self.insertChunk.run()
        return row
    }

    /// Calls `body` with the chunk's bytes, which are valid during the call.
    func readChunk<Result>(
        _ row: Int64,
        _ body: (ByteView) throws(SQLiteError) -> Result
    ) throws(SQLiteError) -> Result {
        defer { self.selectChunk.reset() }
        try self.selectChunk.bind(1, row)
        guard try self.selectChunk.step() else { throw Self.damage("a chunk is missing") }
        return try body(self.selectChunk.bytes(0))
    }

    func removeChunk(_ row: Int64) throws(SQLiteError) {
        try self.deleteChunk.bind(1, row)
        try self.deleteChunk.run()
    }

    /// Writes the run's row. A run without an id gets one.
    func save(_ run: inout HistoryRun, _ state: RunState) throws(SQLiteError) {
        var content = ByteBuffer()
        run.write(to: &content)
        // Without a bound id, SQLite chooses one.
        self.saveRun.reset()
        if run.id != 0 { try self.saveRun.bind(1, run.id) }
        try self.saveRun.bind(2, state.rawValue)
        try self.saveRun.bind(3, content.view)
        try self.saveRun.run()
        run.id = self.database.lastInsertedRow
    }

    func removeRun(_ id: Int64) throws(SQLiteError) {
        try self.database.execute("DELETE FROM run WHERE id = \(id)")
    }

    /// Returns the positions of the event records in the file.
    func positions() throws(SQLiteError) -> RecordPositions {
        let select = try self.database.prepare("SELECT id, sequence FROM written ORDER BY id != 1, sequence")
        var newest: UInt64 = 0
        var leftOff: [UInt64] = []
        while try select.step() {
            let number = select.integer(1)
            guard let sequence = UInt64(exactly: number), sequence <= EventRecord.sequenceMax else {
                throw Self.damage("its newest record has number \(number)")
            }
            if select.integer(0) == 1 { newest = sequence } else { leftOff.append(sequence) }
        }
        return RecordPositions(newest: newest, leftOff: leftOff.filter { $0 > 0 && $0 < newest })
    }

    /// Stores the positions of the event records in the file. `former` is the value that is stored now.
    ///
    /// Row 1 has the number of the newest record; the other rows have the last records of earlier numberings.
    func save(_ positions: RecordPositions, after former: RecordPositions) throws(SQLiteError) {
        try self.save(positions.newest, row: 1)
        guard positions.leftOff != former.leftOff else { return }
        try self.database.execute("DELETE FROM written WHERE id != 1")
        for (place, sequence) in positions.leftOff.enumerated() { try self.save(sequence, row: Int64(place) + 2) }
    }

    /// Returns the spans whose events are void, in ascending order of time.
    func voids() throws(SQLiteError) -> [VoidSpan] {
        let select = try self.database.prepare("SELECT after, until FROM void ORDER BY after")
        var voids: [VoidSpan] = []
        while try select.step() {
            let (after, until) = (select.integer(0), select.integer(1))
            voids.append(VoidSpan(after: Instant(milliseconds: after), until: Instant(milliseconds: until)))
        }
        return voids
    }

    func save(_ voids: [VoidSpan]) throws(SQLiteError) {
        try self.database.execute("DELETE FROM void")
        for void in voids {
            try self.database.execute(
                "INSERT INTO void (after, until) VALUES (\(void.after.milliseconds), \(void.until.milliseconds))"
            )
        }
    }

    private func save(_ sequence: UInt64, row: Int64) throws(SQLiteError) {
        let number = Int64(bitPattern: sequence)
        try self.database.execute("REPLACE INTO written (id, sequence) VALUES (\(row), \(number))")
    }

    /// Returns every run. Must be called before the first chunk is added.
    func runs() throws(SQLiteError) -> [(run: HistoryRun, state: RunState)] {
        let select = try self.database.prepare("SELECT id, state, content FROM run")
        var runs: [(HistoryRun, RunState)] = []
        while try select.step() {
            guard let state = RunState(rawValue: select.integer(1)),
                let run = HistoryRun(id: select.integer(0), select.bytes(2))
            else { throw Self.damage("the row of a run is damaged") }
            runs.append((run, state))
            self.nextRow = max(self.nextRow, (run.rows.max() ?? 0) + 1)
        }
        return runs
    }
}

/// A run: the events of a period, sorted by device, and an index to find them.
///
/// The first key and the row of each chunk are kept in memory: 16 bytes per chunk of 8 KiB.
package struct HistoryRun {
    /// A chunk of events and its first device.
    struct EventChunk: Hashable {
        let device: UInt64
        let row: Int64
    }

    /// A chunk of the index of pushes and its first hash.
    struct PushChunk: Hashable {
        let hash: UInt32
        let row: Int64
    }

    /// The id of the run's row; 0 before it has one.
    var id: Int64 = 0
    /// The ordinal number of the run among all runs, in order of time.
    var order: UInt64 = 0
    var oldest = Instant.distantFuture
    var newest = Instant.distantPast
    var events = 0
    /// The bytes of all chunks.
    var bytes = 0
    var eventChunks: [EventChunk] = []
    var pushChunks: [PushChunk] = []

    /// The rows of all chunks.
    package var rows: [Int64] { self.eventChunks.map(\.row) + self.pushChunks.map(\.row) }

    /// Returns the index of the last chunk that may contain events of `device`; nil if there is none.
    package func lastEventChunk(of device: UInt64) -> Int? {
        let end = self.eventChunks.boundary { $0.device > device }
        return end == 0 ? nil : end - 1
    }

    /// Returns the range of index chunks that may contain entries with this hash.
    package func pushChunks(of hash: UInt32) -> Range<Int> {
        let start = self.pushChunks.boundary { $0.hash >= hash }
        let end = self.pushChunks.boundary { $0.hash > hash }
        return max(start - 1, 0)..<end
    }
}

extension HistoryRun {
    /// Appends the content of the run's row: seal, order, times, counts, and the two lists of chunks.
    package func write(to buffer: inout ByteBuffer) {
        buffer.append(word: 0)
        buffer.append(word: self.order)
        buffer.append(word: UInt64(bitPattern: self.oldest.milliseconds))
        buffer.append(word: UInt64(bitPattern: self.newest.milliseconds))
        buffer.append(word: UInt64(self.events))
        buffer.append(word: UInt64(self.bytes))
        buffer.append(word: UInt64(self.eventChunks.count))
        for chunk in self.eventChunks {
            buffer.append(word: chunk.device)
            buffer.append(word: UInt64(bitPattern: chunk.row))
        }
        for chunk in self.pushChunks {
            buffer.append(halfWord: chunk.hash)
            buffer.append(word: UInt64(bitPattern: chunk.row))
        }
        ChunkSeal.close(&buffer)
    }

    /// Decodes a run's row; nil if it is damaged.
    package init?(id: Int64, _ row: ByteView) {
        guard let content = ChunkSeal.open(row) else { return nil }
        var reader = RecordReader(content)
        self.id = id
        self.order = reader.integer()
        self.oldest = Instant(milliseconds: reader.integer())
        self.newest = Instant(milliseconds: reader.integer())
        guard let events = Int(exactly: reader.integer(UInt64.self)),
            let bytes = Int(exactly: reader.integer(UInt64.self))
        else { return nil }
        self.events = events
        self.bytes = bytes
        var remaining: UInt64 = reader.integer()
        while remaining > 0, !reader.isShort {
            self.eventChunks.append(EventChunk(device: reader.integer(), row: reader.integer()))
            remaining -= 1
        }
        while reader.hasMore { self.pushChunks.append(PushChunk(hash: reader.integer(), row: reader.integer())) }
        if reader.isShort { return nil }
    }
}

extension Array {
    /// Returns the first index whose element satisfies `belongsBehind`. The predicate must also be true for all later
    /// elements.
    func boundary(_ belongsBehind: (Element) -> Bool) -> Int {
        var range = self.indices
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = belongsBehind(self[middle]) ? range.lowerBound..<middle : middle + 1..<range.upperBound
        }
        return range.lowerBound
    }
}

/// Writes sorted events as the chunks of one run, together with an index of the pushes that they name.
///
/// The caller must call it within transactions. The writer is unusable after an error.
final class RunWriter {
    private let table: RunTable
    private(set) var run = HistoryRun()
    private var chunk = EventChunkWriter()
    private var firstDevice: UInt64 = 0
    private var entries: [UInt64] = []

    init(_ table: RunTable, order: UInt64, eventsMax: Int) {
        self.table = table
        self.run.order = order
        self.entries.reserveCapacity(eventsMax)
    }

    /// Stores the run's row before the run is complete. A start after a crash can then find its chunks.
    func saveUnfinished() throws(SQLiteError) {
        try self.table.save(&self.run, .unfinished)
    }

    func append(_ event: HistoryEvent) throws(SQLiteError) {
        if !self.chunk.hasRoom { try self.endChunk() }
        if self.chunk.eventCount == 0 { self.firstDevice = event.device }
        let names = self.chunk.append(event)
        let number = self.run.eventChunks.count
        if names.apnsID, let apnsID = event.apnsID {
            self.entries.append(PushEntry(apnsID, chunk: number, self.table.key).word)
        }
        if names.related, let related = event.relatedPush {
            self.entries.append(PushEntry(related, chunk: number, self.table.key).word)
        }
        self.run.oldest = min(self.run.oldest, event.at)
        self.run.newest = max(self.run.newest, event.at)
        self.run.events += 1
    }

    /// Writes the remaining events, the index, and the run's row.
    func finish(_ sorter: inout HalfWordSorter) throws(SQLiteError) -> HistoryRun {
        if self.chunk.eventCount > 0 { try self.endChunk() }
        sorter.sort(&self.entries)
        var chunk = PushChunkWriter()
        var first: UInt32 = 0
        var previous: UInt64?
        for word in self.entries where word != previous {
            previous = word
            let entry = PushEntry(hash: UInt32(truncatingIfNeeded: word >> 32), chunk: word & 0xFFFF_FFFF)
            if !chunk.hasRoom { try self.end(&chunk, first) }
            if chunk.isEmpty { first = entry.hash }
            chunk.append(entry)
        }
        if !chunk.isEmpty { try self.end(&chunk, first) }
        try self.table.save(&self.run, .live)
        return self.run
    }

    private func endChunk() throws(SQLiteError) {
        self.chunk.close()
        let row = try self.table.addChunk(self.chunk.buffer.view)
        self.run.eventChunks.append(HistoryRun.EventChunk(device: self.firstDevice, row: row))
        self.run.bytes += self.chunk.buffer.count
        self.chunk.removeAll()
    }

    private func end(_ chunk: inout PushChunkWriter, _ first: UInt32) throws(SQLiteError) {
        chunk.close()
        let row = try self.table.addChunk(chunk.buffer.view)
        self.run.pushChunks.append(HistoryRun.PushChunk(hash: first, row: row))
        self.run.bytes += chunk.buffer.count
        chunk.removeAll()
    }
}

internal import CXXHash
package import Engine
import Platform
package import Wire

/// A journal of an engine's records in an SQLite file. A commit appends new rows with the changed records. It also
/// compacts: it copies the live records of the oldest rows, and deletes these rows.
///
/// One caller at a time may use it, on any thread. The caller must ensure that no other process uses the file.
package final class Journal: RecordStore {
    /// A function that a commit calls when a checkpoint is due. It must cause a call of
    /// `JournalCheckpointer.checkpoint` on another thread. If nil, commits make the checkpoints themselves.
    package var onCheckpointDue: (@Sendable () -> Void)?
    /// The progress of the history. The journal keeps rows until the history has made their events durable, up to
    /// `JournalLimits.heldBytesMax`. If nil, no row is kept for its events. Must be set before `load`.
    package var retention: EventRetention?
    /// The number of bytes of live records that the last commit copied from old rows.
    package private(set) var copiedBytesOfLastCommit = 0

    private let location: JournalLocation
    private let limits: JournalLimits
    /// The result of the inspection at the start; nil after `begin`.
    private var found: JournalInspection?
    /// The connection for reading an existing journal; nil if there is nothing to read.
    private var reader: SQLiteDatabase?
    /// The statements of the connection that commits; nil before `begin`.
    private var table: JournalTable?
    private var markFile: JournalMarkFile?
    /// The values for the header of the next row.
    private var stamp = JournalRow.Stamp()
    private let progress: CheckpointProgress
    /// The last checkpointer created.
    private var checkpointer: JournalCheckpointer?
    private var records = LiveRecords()
    private var pace: CompactionPace
    /// The id of the oldest row in the file. `droppedBytes` is the total size of the rows that have no live records and
    /// await deletion.
    private var firstInFile: Int64 = 1
    private var droppedBytes = 0
    /// The content of the row that is being filled.
    private var content = ByteBuffer()
    private var isLoaded: Bool

    /// Inspects the journal if it exists. Writes and creates nothing; `begin` does.
    ///
    /// - `vfs`: the name of SQLite's file system layer; nil for the default one.
    /// - `dependentFile`: the file of the delivery log, which is created after the journal. If it exists, the journal
    ///   must have existed.
    /// - `acceptsLoss`: true to continue with the existing records although the last commits are missing.
    /// - `syncFolder`: syncs the folder that contains a file; nil for the default implementation.
    /// - Throws: `StoreError` if the journal is unreadable or damaged, belongs to another program, has another format,
    ///   or lacks committed records. Its files are then unchanged.
    package init(
        path: String,
        vfs: String? = nil,
        dependentFile: String? = nil,
        limits: JournalLimits = JournalLimits(),
        acceptsLoss: Bool = false,
        syncFolder: ((String) throws(StoreError) -> Void)? = nil
    ) throws(StoreError) {
        self.location = try JournalLocation(path, vfs: vfs, dependentFile: dependentFile, syncFolder: syncFolder)
        if vfs == nil { try JournalAccess.check(self.location) }
        self.limits = limits
        self.progress = CheckpointProgress(limits: limits)
        self.pace = CompactionPace(limits: limits)
        let (found, reader) = try JournalInspection.of(self.location, acceptsLoss: acceptsLoss)
        self.found = found
        self.reader = reader
        self.isLoaded = found.newest == nil
    }

    /// Returns the error with which a start would refuse the journal at `path`; nil if it would accept it. Does not
    /// check every row.
    ///
    /// - `dependentFile`: as in `init`.
    ///
    /// Writes nothing. Another process may commit to the journal at the same time.
    package static func fault(path: String, dependentFile: String? = nil) -> StoreError? {
        do throws(StoreError) {
            let location = try JournalLocation(path, dependentFile: dependentFile)
            try JournalAccess.checkKinds(location)
            _ = try JournalInspection.of(location, acceptsLoss: false, isAlone: false)
            return nil
        } catch { return error }
    }

    /// The bytes of all rows in the file, and the bytes of their live records.
    package var bytes: (all: Int, live: Int) {
        (self.droppedBytes + self.records.rows.bytes, self.records.rows.liveBytes)
    }

    /// The reason why the store has failed; nil if it has not. May be read on any thread.
    package var failure: StoreError? { self.progress.failure }

    package func load(_ take: (RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError) {
        guard let reader = self.reader else { return }
        try JournalFile.checkPages(reader)
        self.records = try JournalLoader.load(reader, take)
        self.firstInFile = self.records.rows.first
        self.droppedBytes = 0
        self.isLoaded = true
    }

    package var loss: StoreLoss? { self.found?.loss }

    package var isFork: Bool { self.found?.isFork ?? false }

    package func begin() throws(StoreError) {
        guard let found = self.found, self.isLoaded else {
            preconditionFailure("a journal begins once, when what it holds was loaded")
        }
        self.found = nil
        // With an open reader, the log could not be copied into the file.
        self.reader = nil
        try self.open(
            found.isNew
                ? JournalFile.make(self.location, isInsteadOfLost: found.loss != nil)
                : JournalFile.takeOver(self.location, found)
        )
    }

    package func reload(_ take: (RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError) {
        precondition(self.failure != nil, "a store that has not failed is read once")
        // The first connection would return the writes of the failed commit, so this uses a separate one.
        try JournalLoader.load(path: self.location.path, vfs: self.location.vfs, take)
    }

    package func commit(_ batch: borrowing RecordBatch) throws(StoreError) {
        guard let table = self.table else { preconditionFailure("a journal has begun before something is added") }
        if let failure = self.progress.failure { throw failure }
        guard !batch.isEmpty else { return }
        do throws(StoreError) {
            try self.write(batch.bytes, to: table)
        } catch {
            // The transaction is neither rolled back nor retried, and the connection stays open, because closing it
            // would run a checkpoint. The files remain unchanged.
            self.progress.fail(error)
            throw error
        }
        self.noteCommit()
        self.makeRoomInLog()
    }

    /// Creates a second connection for checkpoints on another thread.
    package func makeCheckpointer() -> JournalCheckpointer {
        let checkpointer = JournalCheckpointer(self.location, self.progress)
        // A failure is not thrown here; the next commit throws it.
        if self.table != nil { _ = try? checkpointer.open() }
        self.checkpointer = checkpointer
        return checkpointer
    }

    // MARK: Opening

    private func open(
        _ opened: (database: SQLiteDatabase, markFile: JournalMarkFile, mark: JournalMark)
    ) throws(StoreError) {
        self.table = try JournalTable(opened.database)
        self.markFile = opened.markFile
        try self.checkpointer?.open()
        self.progress.begin(opened.markFile, pageBytes: try JournalFile.pageBytes(of: opened.database))
        self.progress.watch(JournalFileWatch(self.location))
        let mark = opened.mark
        self.stamp = JournalRow.Stamp(previous: mark.checksum, journal: mark.journal, commits: mark.commits)
    }

    // MARK: Commits

    /// Writes the mark of a durable commit.
    private func noteCommit() {
        // This commit is durable and succeeds. The next commit throws the failure.
        do throws(StoreError) {
            try self.markFile?.note(
                row: self.records.rows.next - 1,
                checksum: self.stamp.previous ?? 0,
                commits: self.stamp.commits,
                time: self.stamp.time ?? 0
            )
        } catch { self.progress.fail(error) }
    }

    private func write(_ batch: ByteView, to table: JournalTable) throws(StoreError) {
        try table.begin()
        self.stamp.commits += 1
        self.stamp.time = SystemClock.wall
        let newest = self.records.rows.next
        self.beginRow()
        try self.append(batch, to: table)
        try self.compact(own: batch.count, before: newest, table)
        if self.droppedBytes >= self.limits.deletionBytes {
            self.firstInFile = self.records.rows.first
            self.droppedBytes = 0
            try table.delete(before: self.firstInFile)
        }
        try self.endRow(table)
        try table.commit()
    }

    /// Splits the batch into rows, between records.
    private func append(_ batch: ByteView, to table: JournalTable) throws(StoreError) {
        var start = 0
        var offset = 0
        while let (key, count) = RecordBatch.header(of: batch, at: offset) {
            let bytes = RecordBatch.headerCount + count
            if offset > start, self.content.count + offset - start + bytes > self.limits.rowBytesMax {
                self.content.append(batch[start..<offset])
                try self.endRow(table)
                self.beginRow()
                start = offset
            }
            self.records.put(key, row: self.records.rows.next - 1, bytes: bytes)
            if key.isEvents { self.hold(batch[offset + RecordBatch.headerCount..<offset + bytes]) }
            offset += bytes
        }
        precondition(offset == batch.count, "a batch is made of whole records")
        self.content.append(batch[start..<offset])
    }

    /// Records that the newest row contains this event record.
    private func hold(_ content: ByteView) {
        guard let record = try? EventRecord(content) else { preconditionFailure("a record of events is one") }
        let row = self.records.rows.next - 1
        self.records.held.append(row: row, sequence: record.sequence, events: record.eventCount)
    }

    /// Releases the rows that the history no longer needs. If the history falls too far behind, also releases the
    /// oldest rows.
    ///
    /// - Returns: the first row that must be kept for the history.
    private func releaseHeldRows() -> Int64 {
        guard let retention = self.retention else {
            self.records.held.release(through: .max)
            return .max
        }
        self.records.held.release(through: retention.durableSequence)
        let givenUp = self.records.held.giveUp(toBytes: self.limits.heldBytesMax)
        if givenUp > 0 { retention.giveUp(events: givenUp) }
        let first = self.records.held.first?.row ?? .max
        retention.hold(bytes: self.records.held.bytes, from: first)
        return first
    }

    /// Copies live records from the oldest rows, within the budget that this commit has earned. The commit's own rows
    /// begin at `newest`.
    private func compact(own bytes: Int, before newest: Int64, _ table: JournalTable) throws(StoreError) {
        self.copiedBytesOfLastCommit = 0
        self.pace.earn(bytes, self.records.rows)
        let end = min(newest, self.releaseHeldRows())
        while self.records.rows.first < end, let row = self.records.rows.oldest, self.pace.spend(on: row) {
            if row.liveBytes > 0 { try self.copyLiveRecords(of: self.records.rows.first, table) }
            self.droppedBytes += Int(row.bytes)
            self.records.rows.dropOldest()
        }
    }

    private func copyLiveRecords(of row: Int64, _ table: JournalTable) throws(StoreError) {
        try table.read(row) { content throws(StoreError) in
            var offset = JournalRow.recordsOffset(of: content)
            while let (key, count) = RecordBatch.header(of: content, at: offset) {
                let bytes = RecordBatch.headerCount + count
                if try self.counts(key, content[offset + RecordBatch.headerCount..<offset + bytes], of: row) {
                    if self.content.count + bytes > self.limits.rowBytesMax {
                        try self.endRow(table)
                        self.beginRow()
                    }
                    self.content.append(content[offset..<offset + bytes])
                    self.records.put(key, row: self.records.rows.next - 1, bytes: bytes)
                    self.copiedBytesOfLastCommit += bytes
                }
                offset += bytes
            }
            if offset != content.count {
                throw StoreError(damaged: self.location.path, "a record of row \(row) is malformed")
            }
        }
    }

    /// Returns true if a record is the newest of its key. If a row has several event records, only the last can be the
    /// newest.
    private func counts(_ key: RecordKey, _ content: ByteView, of row: Int64) throws(StoreError) -> Bool {
        guard self.records.row(of: key) == row else { return false }
        guard key.isEvents else { return true }
        do throws(EventRecord.Fault) {
            return try EventRecord(content).sequence == self.records.held.newestSequence
        } catch {
            throw StoreError(damaged: self.location.path, "a record of events of row \(row) \(error.clause)")
        }
    }

    private func beginRow() {
        self.content.removeAll()
        JournalRow.appendHeader(self.stamp, to: &self.content)
        self.records.rows.append()
    }

    private func endRow(_ table: JournalTable) throws(StoreError) {
        JournalRow.setFirst(self.firstInFile, in: &self.content)
        self.records.setNewestRow(contentBytes: self.content.count)
        self.stamp.previous = try table.insert(self.records.rows.next - 1, self.content.view)
    }

    /// Makes or requests a checkpoint if it is due. The write-ahead log can then restart.
    private func makeRoomInLog() {
        guard let database = self.table?.database else { return }
        let step = self.progress.committed(logPages: database.logPages)
        switch step {
        case .nothing: return
        case .ask:
            if let onCheckpointDue {
                onCheckpointDue()
                return
            }
        case .copyRest: ()
        case .wait:
            self.progress.waitForPass()
            return
        }
        let generation = self.progress.generation
        // This commit is durable and succeeds. The next commit throws the failure.
        if let pages = try? JournalCheckpointer.copyLog(database, self.progress) {
            _ = self.progress.copied(pages, generation: generation)
        }
        guard step == .ask else { return }
        try? JournalCheckpointer.syncMark(self.progress)
        self.progress.finish()
    }
}

/// The rate of compaction: the number of bytes of the oldest rows that a commit copies and deletes. Compaction limits
/// the file to about twice the size of the live data. It lengthens a commit by at most a small factor.
///
/// Rows are compacted in order of age, so a record is copied again only after all others had their turn. One pass
/// over the file copies each live byte at most once. The next pass is due only after commits have added `deadShare`
/// dead bytes for each live byte, so a committed byte costs about 1.1 copied bytes at most.
struct CompactionPace {
    /// The ratio of dead to live bytes above which rows are compacted.
    private static let deadShare = 0.9
    /// The slope of the rate of bytes copied per byte committed. The rate is 1 at `deadShare` and increases with the
    /// ratio above it.
    ///
    /// For writes spread over all keys, a slope of 0.3 is enough. With a long sequence of old rows without dead bytes,
    /// 16 limits the file to 2.2 times the size of the live data.
    private static let rateIncrease = 16.0
    private static let rateMax = 6.0
    /// The bytes of rows that may be read or deleted per byte committed.
    private static let passRate = 12

    /// The bytes of live records that may be copied now.
    private var copyBytes = 0
    /// The bytes of rows that may be read and deleted now.
    private var passBytes = 0
    private var isDue = false
    private let limits: JournalLimits

    init(limits: JournalLimits) {
        self.limits = limits
    }

    /// Adds the budget that a commit of `bytes` earns. Unused budget carries over, up to about the
    /// size of one row, so that small commits can eventually afford one.
    mutating func earn(_ bytes: Int, _ rows: borrowing RowLedger) {
        let live = Double(rows.liveBytes)
        let excess = live > 0 ? Double(rows.deadBytes) / live - Self.deadShare : 1
        self.isDue = excess > 0 && rows.bytes > self.limits.compactionFloorBytes
        let rate = min(Self.rateMax, 1 + Self.rateIncrease * max(0, excess))
        self.copyBytes = min(self.copyBytes, self.limits.rowBytesMax) + Int(Double(bytes) * rate)
        self.passBytes = min(self.passBytes, 4 * self.limits.rowBytesMax) + bytes * Self.passRate
    }

    /// Returns true if the oldest row may be compacted now, and deducts its bytes from the budget.
    mutating func spend(on row: RowLedger.Row) -> Bool {
        let live = Int(row.liveBytes)
        guard live == 0 || self.isDue, live <= self.copyBytes, Int(row.bytes) <= self.passBytes else { return false }
        self.copyBytes -= live
        self.passBytes -= Int(row.bytes)
        return true
    }
}

/// The limits of the journal: the work of a commit, and the sizes at which maintenance is due.
package struct JournalLimits: Sendable {
    /// The maximum size of a row's content in bytes. Only a longer single record may exceed it.
    ///
    /// With pages of 8 KiB, a row of this size fills eight overflow pages and 2 KiB of a leaf. The file thus has almost
    /// no padding.
    package var rowBytesMax = 67_500
    /// The total size of rows, in bytes, above which rows are compacted. Compacting a smaller file is not worthwhile.
    package var compactionFloorBytes = 1 << 20
    /// The bytes of rows that are deleted together. Deleting rows in every commit would double the written pages,
    /// because each deletion makes SQLite rebalance three leaves.
    package var deletionBytes = 512 << 10
    /// The bytes of pages in the write-ahead log that trigger a checkpoint. Only pages that are not yet in the file
    /// count. Syncing so few pages delays a concurrent commit by a millisecond. With a lower limit, checkpoints are so
    /// frequent that more than 1% of commits coincide with one.
    package var checkpointBytes = 3 << 20
    /// The bytes of such pages above which commits wait for the running checkpoint.
    package var waitBytes = 32 << 20
    /// The bytes of the write-ahead log at which a commit copies the last pages itself. The next commit then restarts
    /// the log. Overwriting a log and syncing it is faster than extending it.
    package var restartBytes = 64 << 20
    /// The maximum number of bytes that a commit copies itself.
    package var restBytes = 3 << 19
    /// The bytes of the write-ahead log at which a commit waits until all are copied.
    package var logBytesMax = 128 << 20

    /// The maximum number of bytes of rows that are kept for the history: 256 MiB. If the history cannot be written and
    /// the rows exceed the limit, the oldest events are dropped.
    package var heldBytesMax = 256 << 20

    package init() {}
}

/// The format of a row's content: a header, then consecutive records.
///
/// Byte 0 is the version. The other bytes are little-endian numbers:
///
/// - 1...8: the id of the oldest row when this row was written.
/// - 9...16: the checksum of the previous row.
/// - 17...24: the journal's number.
/// - 25...32: the number of the row's commit.
/// - 33...40: the start of the commit in milliseconds since 1970.
///
/// Rows of version 1 have only bytes 0...8.
package enum JournalRow {
    static let version: UInt8 = 2
    /// The length of the header of this version in bytes.
    package static let headerBytes = 41
    private static let oldHeaderBytes = 9

    /// The position of a row in its journal, as stored in the row's header.
    package struct Stamp: Hashable {
        /// The checksum of the previous row, by which a row of another journal is detected; nil if it is not stored.
        package var previous: Int64?
        /// The journal's number; nil if it is not stored.
        var journal: UInt64?
        /// The number of commits since the journal began to count them, including this row's commit.
        var commits: Int64 = 0
        /// Milliseconds since 1970; nil if it is not stored.
        var time: Int64?

        /// Creates a stamp with the stored values.
        package init(previous: Int64? = nil, journal: UInt64? = nil, commits: Int64 = 0, time: Int64? = nil) {
            self.previous = previous
            self.journal = journal
            self.commits = commits
            self.time = time
        }
    }

    /// Appends the header of a row. `setFirst` later writes the oldest row into it.
    package static func appendHeader(_ stamp: Stamp, to buffer: inout ByteBuffer) {
        buffer.append(Self.version)
        buffer.append(memoryOf: UInt64(0))
        buffer.append(memoryOf: (stamp.previous ?? 0).littleEndian)
        buffer.append(memoryOf: (stamp.journal ?? 0).littleEndian)
        buffer.append(memoryOf: stamp.commits.littleEndian)
        buffer.append(memoryOf: (stamp.time ?? 0).littleEndian)
    }

    /// Writes the id of the oldest row into the header at the start of `buffer`.
    package static func setFirst(_ first: Int64, in buffer: inout ByteBuffer) {
        buffer.overwrite(memoryOf: first.littleEndian, at: 1)
    }

    /// Returns the id of the oldest row when this row was written.
    static func first(of content: ByteView) -> Int64 {
        Int64(littleEndian: content.load(Int64.self, at: 1))
    }

    static func stamp(of content: ByteView) -> Stamp {
        guard content[0] > 1 else { return Stamp() }
        return Stamp(
            previous: Int64(littleEndian: content.load(Int64.self, at: 9)),
            journal: UInt64(littleEndian: content.load(UInt64.self, at: 17)),
            commits: Int64(littleEndian: content.load(Int64.self, at: 25)),
            time: Int64(littleEndian: content.load(Int64.self, at: 33))
        )
    }

    /// Returns the offset of the first record of a row.
    static func recordsOffset(of content: ByteView) -> Int {
        content[0] > 1 ? Self.headerBytes : Self.oldHeaderBytes
    }

    /// Returns the fault of the row as a clause; nil if the row is valid.
    static func fault(_ content: ByteView, checksum: Int64, row: Int64) -> String? {
        guard RowChecksum.of(content, row: row) == checksum else { return "the checksum of row \(row) is wrong" }
        guard !content.isEmpty, content.count >= Self.recordsOffset(of: content) else {
            return "row \(row) is too short"
        }
        guard 1...Self.version ~= content[0] else {
            return "row \(row) has version \(content[0]), and this build reads versions up to \(Self.version)"
        }
        return nil
    }
}

/// The checksum of a row, which detects changed content and content moved to another row id.
package enum RowChecksum {
    /// Returns the checksum of a row with this content and the id `row`.
    package static func of(_ content: ByteView, row: Int64) -> Int64 {
        let hash = unsafe XXH3_64bits_withSeed(
            content.buffer.baseAddress,
            content.count,
            XXH64_hash_t(bitPattern: row)
        )
        return Int64(bitPattern: hash)
    }
}

/// The prepared statements of a journal.
struct JournalTable {
    let database: SQLiteDatabase
    private let beginning: SQLiteStatement
    private let insertion: SQLiteStatement
    private let selection: SQLiteStatement
    private let deletion: SQLiteStatement
    private let ending: SQLiteStatement

    init(_ database: SQLiteDatabase) throws(StoreError) {
        self.database = database
        do throws(SQLiteError) {
            self.beginning = try database.prepare("BEGIN IMMEDIATE")
            self.insertion = try database.prepare("INSERT INTO rows (id, checksum, content) VALUES (?1, ?2, ?3)")
            self.selection = try database.prepare("SELECT checksum, content FROM rows WHERE id = ?1")
            self.deletion = try database.prepare("DELETE FROM rows WHERE id < ?1")
            self.ending = try database.prepare("COMMIT")
        } catch { throw StoreError(journal: database.path, error) }
    }

    func begin() throws(StoreError) {
        try self.run(self.beginning)
    }

    /// - Returns: the row's checksum.
    func insert(_ row: Int64, _ content: ByteView) throws(StoreError) -> Int64 {
        let checksum = RowChecksum.of(content, row: row)
        do throws(SQLiteError) {
            try self.insertion.bind(1, row)
            try self.insertion.bind(2, checksum)
            try self.insertion.bind(3, content)
            try self.insertion.run()
        } catch { throw StoreError(journal: self.database.path, error) }
        return checksum
    }

    /// Verifies the checksum of a row and passes its content to `body`.
    func read(_ row: Int64, _ body: (ByteView) throws(StoreError) -> Void) throws(StoreError) {
        defer { self.selection.reset() }
        do throws(SQLiteError) {
            try self.selection.bind(1, row)
            if try !self.selection.step() { throw SQLiteError(kind: .corrupt, message: "row \(row) is gone") }
        } catch { throw StoreError(journal: self.database.path, error) }
        let content = self.selection.bytes(1)
        if let fault = JournalRow.fault(content, checksum: self.selection.integer(0), row: row) {
            throw StoreError(damaged: self.database.path, fault)
        }
        try body(content)
    }

    /// Deletes the rows older than `row`.
    func delete(before row: Int64) throws(StoreError) {
        do throws(SQLiteError) {
            try self.deletion.bind(1, row)
            try self.deletion.run()
        } catch { throw StoreError(journal: self.database.path, error) }
    }

    func commit() throws(StoreError) {
        try self.run(self.ending)
    }

    private func run(_ statement: SQLiteStatement) throws(StoreError) {
        do throws(SQLiteError) { try statement.run() } catch { throw StoreError(journal: self.database.path, error) }
    }
}

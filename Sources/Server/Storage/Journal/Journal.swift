internal import CXXHash
package import Engine
import Platform
package import Wire

/// Keeps an engine's records in an SQLite file, as a journal: a commit appends what changed in rows of its own, and
/// copies what still counts of the oldest rows, which it deletes.
///
/// It has one user at a time, on any thread. No other process may use the file: whoever opens it sees to that.
package final class Journal: RecordStore {
    /// Called by a commit when a checkpoint is due. It is to have `JournalCheckpointer.checkpoint` called on another
    /// thread. While it is nil, commits make the checkpoints themselves.
    package var onCheckpointDue: (@Sendable () -> Void)?
    /// What the history has made durable: rows with other events are kept, within `JournalLimits.heldBytesMax`. While
    /// it is nil, none is kept for its events. It is set before `load`.
    package var retention: EventRetention?
    /// The bytes of records that the last commit copied from old rows.
    package private(set) var copiedBytesOfLastCommit = 0

    private let place: JournalPlace
    private let limits: JournalLimits
    /// What is to be taken over, or made; nil when the journal has begun.
    private var found: JournalInspection?
    /// The connection that reads what was found; nil when there is nothing to be read.
    private var reader: SQLiteDatabase?
    /// Of the connection that commits; nil until the journal has begun.
    private var table: JournalTable?
    private var markFile: JournalMarkFile?
    /// What the header of the next row says.
    private var stamp = JournalRow.Stamp()
    private let progress: CheckpointProgress
    /// The checkpointer that was made last.
    private var checkpointer: JournalCheckpointer?
    private var records = LiveRecords()
    private var pace: CompactionPace
    /// The oldest row of the file, and the bytes of the rows from it on of which nothing counts.
    private var firstInFile: Int64 = 1
    private var droppedBytes = 0
    /// The content of the row that is being filled.
    private var content = ByteBuffer()
    private var isLoaded: Bool

    /// Looks at the journal, if there is one: nothing is written or made before `begin`.
    ///
    /// - `vfs`: the name of SQLite's file system layer; nil for the machine's own.
    /// - `follower`: a file that is first written when the journal has begun: where it is, the journal is not new.
    /// - `acceptsLoss`: goes on with what is there when what was committed last is missing.
    /// - `syncFolder`: makes the names in the folder of a file durable; nil for the machine's own way.
    /// - Throws: `StoreError` when it cannot, when it is another program's, of another format or damaged, or lacks what
    ///   was committed. Its files are then as they were.
    package init(
        path: String,
        vfs: String? = nil,
        follower: String? = nil,
        limits: JournalLimits = JournalLimits(),
        acceptsLoss: Bool = false,
        syncFolder: ((String) throws(StoreError) -> Void)? = nil
    ) throws(StoreError) {
        self.place = try JournalPlace(path, vfs: vfs, follower: follower, syncFolder: syncFolder)
        if vfs == nil { try JournalAccess.check(self.place) }
        self.limits = limits
        self.progress = CheckpointProgress(limits: limits)
        self.pace = CompactionPace(limits: limits)
        let (found, reader) = try JournalInspection.of(self.place, acceptsLoss: acceptsLoss)
        self.found = found
        self.reader = reader
        self.isLoaded = found.isEmpty
    }

    /// What a start would refuse of the journal at `path`; nil when nothing is found without reading all of it.
    ///
    /// - `follower`: as of `init`.
    ///
    /// Nothing is written, and another process may be committing to the journal.
    package static func fault(path: String, follower: String? = nil) -> StoreError? {
        do throws(StoreError) {
            let place = try JournalPlace(path, follower: follower)
            try JournalAccess.checkKinds(place)
            _ = try JournalInspection.of(place, acceptsLoss: false, isAlone: false)
            return nil
        } catch { return error }
    }

    /// The bytes that the rows take in the file, and how many of them still count.
    package var bytes: (all: Int, live: Int) {
        (self.droppedBytes + self.records.rows.bytes, self.records.rows.liveBytes)
    }

    /// Why the store has failed, if it has. Any thread.
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

    package var beginsAnother: Bool { self.found?.beginsAnother ?? false }

    package func begin() throws(StoreError) {
        guard let found = self.found, self.isLoaded else {
            preconditionFailure("a journal begins once, when what it holds was loaded")
        }
        self.found = nil
        switch found {
        case .new(let loss):
            self.reader = nil
            try self.open(try JournalFile.make(self.place, isInsteadOfLost: loss != nil))
        case .found(let journal):
            // It would keep the log from being copied into the file.
            self.reader = nil
            try self.open(try JournalFile.takeOver(self.place, journal))
        }
    }

    package func reload(_ take: (RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError) {
        precondition(self.failure != nil, "a store that has not failed is read once")
        // On a connection of its own: this one's sees what the failed commit has written.
        try JournalReader.load(path: self.place.path, vfs: self.place.vfs, take)
    }

    package func commit(_ batch: borrowing RecordBatch) throws(StoreError) {
        guard let table = self.table else { preconditionFailure("a journal has begun before something is added") }
        if let failure = self.progress.failure { throw failure }
        guard !batch.isEmpty else { return }
        do throws(StoreError) {
            try self.write(batch.bytes, to: table)
        } catch {
            // Nothing is rolled back, tried again or closed with a checkpoint: the file stays as it is.
            self.progress.fail(error)
            throw error
        }
        self.noteCommit()
        self.makeRoomInLog()
    }

    /// A second connection, for checkpoints on another thread.
    package func makeCheckpointer() -> JournalCheckpointer {
        let checkpointer = JournalCheckpointer(self.place, self.progress)
        // A failure is kept, and the next commit throws it.
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
        self.progress.markFile = opened.markFile
        self.progress.watch(JournalFileWatch(self.place))
        let mark = opened.mark
        self.stamp = JournalRow.Stamp(previous: mark.checksum, journal: mark.journal, commits: mark.commits)
    }

    // MARK: Commits

    /// The mark tells of a commit that is durable.
    private func noteCommit() {
        // A failure is kept, and the next commit throws it: this one is durable.
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

    /// Cuts the batch, at the borders of records, into rows.
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
            if key.kind == .events { self.hold(batch[offset + RecordBatch.headerCount..<offset + bytes]) }
            offset += bytes
        }
        precondition(offset == batch.count, "a batch is made of whole records")
        self.content.append(batch[start..<offset])
    }

    /// The newest row holds this record of events.
    private func hold(_ content: ByteView) {
        guard let record = try? EventRecord(content) else { preconditionFailure("a record of events is one") }
        let row = self.records.rows.next - 1
        self.records.held.append(row: row, sequence: record.sequence, events: record.eventCount)
    }

    /// Lets go of the rows that the history needs no more, and of the oldest when it does not keep up.
    ///
    /// - Returns: the first row that is kept for it.
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

    /// Copies what counts of the oldest rows, as far as this commit's turn goes; own rows begin at `newest`.
    private func compact(own bytes: Int, before newest: Int64, _ table: JournalTable) throws(StoreError) {
        self.copiedBytesOfLastCommit = 0
        self.pace.earn(bytes, self.records.rows)
        let end = min(newest, self.releaseHeldRows())
        while self.records.rows.first < end, let row = self.records.rows.oldest, self.pace.spend(on: row) {
            if row.liveBytes > 0 { try self.copyLiveRecords(of: self.records.rows.first, table) }
            self.droppedBytes += Int(row.bytes)
            self.records.dropOldestRow()
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
                throw StoreError(damaged: self.place.path, "a record of row \(row) is malformed")
            }
        }
    }

    /// Whether a record is the newest of its key; of those with events in one row the last may be.
    private func counts(_ key: RecordKey, _ content: ByteView, of row: Int64) throws(StoreError) -> Bool {
        guard self.records.row(of: key) == row else { return false }
        guard key.kind == .events else { return true }
        do throws(EventRecord.Fault) {
            return try EventRecord(content).sequence == self.records.held.newestSequence
        } catch {
            throw StoreError(damaged: self.place.path, "a record of events of row \(row) \(error.clause)")
        }
    }

    private func beginRow() {
        self.content.removeAll()
        JournalRow.appendHeader(self.stamp, to: &self.content)
        self.records.appendRow()
    }

    private func endRow(_ table: JournalTable) throws(StoreError) {
        JournalRow.setFirst(self.firstInFile, in: &self.content)
        self.records.setNewestRow(contentBytes: self.content.count)
        self.stamp.previous = try table.insert(self.records.rows.next - 1, self.content.view)
    }

    /// Sees to it that the log is copied into the file and begins anew, while commits go on.
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
        // A failure is kept, and the next commit throws it: this one is durable.
        if let pages = try? JournalCheckpointer.copyLog(database, self.progress) {
            _ = self.progress.copied(pages, generation: generation)
        }
        guard step == .ask else { return }
        try? JournalCheckpointer.syncMark(self.progress)
        self.progress.finish()
    }
}

/// How much of the oldest rows a commit writes again: enough to keep the file near twice the live data, and never so
/// much that a commit takes several times as long.
///
/// Rows go in the order of their age, and no record is copied twice before all others had their turn. So over one
/// turn at most the live bytes are copied while at least the dead bytes' worth is committed.
struct CompactionPace {
    /// Dead bytes, as a share of the live ones, from which on rows are compacted.
    private static let deadShare = 0.9
    /// Bytes copied for each byte committed: 1 at that share, and so much more as dead bytes exceed it.
    ///
    /// With writes all over the keys 0.3 is enough. A long run of old rows in which nothing is dead is the other
    /// extreme: passed at this rate, it makes the file 2.2 times as large as the live data at the worst moment.
    private static let rateIncrease = 16.0
    private static let rateMax = 6.0
    /// Bytes of rows read or deleted for each byte committed.
    private static let passRate = 12

    /// Bytes of live records that may be copied.
    private var copyBytes = 0
    /// Bytes of rows that may be read and deleted.
    private var passBytes = 0
    private var isDue = false
    private let limits: JournalLimits

    init(limits: JournalLimits) {
        self.limits = limits
    }

    /// A commit of `bytes` earns the right to so much work. What is not used is kept, up to a row's worth, so that
    /// small commits come to the row's turn too.
    mutating func earn(_ bytes: Int, _ rows: borrowing RowLedger) {
        let live = Double(rows.liveBytes)
        let excess = live > 0 ? Double(rows.deadBytes) / live - Self.deadShare : 1
        self.isDue = excess > 0 && rows.bytes > self.limits.compactionFloorBytes
        let rate = min(Self.rateMax, 1 + Self.rateIncrease * max(0, excess))
        self.copyBytes = min(self.copyBytes, self.limits.rowBytesMax) + Int(Double(bytes) * rate)
        self.passBytes = min(self.passBytes, 4 * self.limits.rowBytesMax) + bytes * Self.passRate
    }

    /// Whether the oldest row may go now; then it is paid for.
    mutating func spend(on row: RowLedger.Row) -> Bool {
        let live = Int(row.liveBytes)
        guard live == 0 || self.isDue, live <= self.copyBytes, Int(row.bytes) <= self.passBytes else { return false }
        self.copyBytes -= live
        self.passBytes -= Int(row.bytes)
        return true
    }
}

/// How much work the journal puts into one commit, and when.
package struct JournalLimits: Sendable {
    /// The content of a row, unless one record is longer.
    ///
    /// With pages of 16 KiB a row of this size is four full overflow pages and 2 KiB in a leaf, so that next to
    /// nothing of the file is padding.
    package var rowBytesMax = 67_500
    /// Rows of this many bytes in all are not compacted: the pages of a small file are not worth writing again.
    package var compactionFloorBytes = 1 << 20
    /// Bytes of rows that are deleted together. Deleting the rows of each commit with it dirties as many pages again as
    /// the commit's own records do, since SQLite evens out three leaves each time.
    package var deletionBytes = 512 << 10
    /// Pages in the write-ahead log that are not in the file yet, at which a checkpoint is asked for: 3 MiB. Syncing
    /// so few beside a commit makes it wait for a millisecond; asked for at fewer, more than one lone commit in a
    /// hundred would.
    package var checkpointPages = 192
    /// How many such pages make commits wait for the checkpoint that is being made: 32 MiB.
    package var waitPages = 2048
    /// Pages in the write-ahead log at which a commit copies the last of them itself, so that the next one begins the
    /// log anew: 64 MiB. A log that is written again and again is synced faster than one that grows.
    package var restartPages = 4096
    /// How many pages that may be.
    package var restPages = 96
    /// Pages in the write-ahead log at which a commit waits until all are copied: 128 MiB.
    package var logPagesMax = 8192

    /// The bytes of rows that are kept because the history has not made their events durable, which takes it seconds:
    /// 256 MiB. Beyond that it cannot be written, and the oldest events are given up.
    package var heldBytesMax = 256 << 20

    package init() {}
}

/// The content of a row: what this build writes first of all, and then records, one behind the other.
///
/// Byte 0 is the version, all numbers are little-endian: bytes 1...8 are the id of the oldest row when this one was
/// written, 9...16 the checksum of the row before it, 17...24 the journal's number, 25...32 the number of its commit,
/// 33...40 when that began, in milliseconds since 1970. Rows of version 1 have bytes 0...8 alone.
package enum JournalRow {
    static let version: UInt8 = 2
    /// The bytes before the first record of a row of this version.
    package static let headerBytes = 41
    private static let oldHeaderBytes = 9

    /// What the header of a row says of the row's place.
    package struct Stamp: Hashable {
        /// The checksum of the row before, so that rows of another journal, or of another past, do not fit; nil when it
        /// is not noted.
        package var previous: Int64?
        /// The journal's number; nil when it is not noted.
        var journal: UInt64?
        /// How many commits the journal has had since it counts them, this one included.
        var commits: Int64 = 0
        /// Milliseconds since 1970; nil when it is not noted.
        var time: Int64?

        /// A stamp of what is noted; nothing else is.
        package init(previous: Int64? = nil, journal: UInt64? = nil, commits: Int64 = 0, time: Int64? = nil) {
            self.previous = previous
            self.journal = journal
            self.commits = commits
            self.time = time
        }
    }

    /// Appends the header of a row whose oldest row is said later.
    package static func appendHeader(_ stamp: Stamp, to buffer: inout ByteBuffer) {
        buffer.append(Self.version)
        buffer.append(memoryOf: UInt64(0))
        buffer.append(memoryOf: (stamp.previous ?? 0).littleEndian)
        buffer.append(memoryOf: (stamp.journal ?? 0).littleEndian)
        buffer.append(memoryOf: stamp.commits.littleEndian)
        buffer.append(memoryOf: (stamp.time ?? 0).littleEndian)
    }

    /// Writes into the header that `buffer` begins with the id of the oldest row.
    package static func setFirst(_ first: Int64, in buffer: inout ByteBuffer) {
        buffer.overwrite(memoryOf: first.littleEndian, at: 1)
    }

    /// The id of the oldest row when this one was written.
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

    /// The place of the first record of a row.
    static func recordsOffset(of content: ByteView) -> Int {
        content[0] > 1 ? Self.headerBytes : Self.oldHeaderBytes
    }

    /// What is wrong with the row, as a clause; nil when nothing is.
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

/// The checksum of a row: its content cannot change, nor take another row's place, without being noticed.
package enum RowChecksum {
    /// The checksum of a row with this content at the place `row`.
    package static func of(_ content: ByteView, row: Int64) -> Int64 {
        let hash = unsafe XXH3_64bits_withSeed(
            content.buffer.baseAddress,
            content.count,
            XXH64_hash_t(bitPattern: row)
        )
        return Int64(bitPattern: hash)
    }
}

/// The statements a journal runs again and again.
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

    /// Hands over the content of a row, whose checksum is right.
    func read(_ row: Int64, _ body: (ByteView) throws(StoreError) -> Void) throws(StoreError) {
        defer { self.selection.reset() }
        do throws(SQLiteError) {
            try self.selection.bind(1, row)
            if try !self.selection.step() { throw SQLiteError(kind: .corrupt, code: 0, message: "row \(row) is gone") }
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

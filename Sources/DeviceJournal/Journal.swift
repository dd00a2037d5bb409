package import Bytes
package import DeviceEngine
import SQLite

/// Keeps an engine's records in an SQLite file, as a journal: a commit appends what changed in rows of its own, and
/// copies what still counts of the oldest rows, which it deletes.
///
/// It has one user at a time, on any thread. No other process may use the file: whoever opens it sees to that.
package final class Journal: RecordStore {
    /// Called by a commit when a checkpoint is due. It is to have `JournalCheckpointer.checkpoint` called on another
    /// thread. While it is nil, commits make the checkpoints themselves.
    package var onCheckpointDue: (@Sendable () -> Void)?
    /// The bytes of records that the last commit copied from old rows.
    package private(set) var copiedBytesOfLastCommit = 0

    private let path: String
    private let vfs: String?
    private let limits: JournalLimits
    private let table: JournalTable
    private let progress: CheckpointProgress
    private var records = LiveRecords()
    private var pace: CompactionPace
    /// The oldest row of the file, and the bytes of the rows from it on of which nothing counts.
    private var firstInFile: Int64 = 1
    private var droppedBytes = 0
    /// The content of the row that is being filled.
    private var content = ByteBuffer()
    private var isLoaded: Bool

    /// Opens the file, or makes it.
    ///
    /// - `vfs`: the name of SQLite's file system layer; nil for the machine's own.
    /// - `syncFolder`: makes the names in the folder of a file durable; nil for the machine's own way.
    /// - Throws: `StoreError` when it cannot, when it is another program's, of a newer format or damaged. The file is
    ///   then as it was.
    package init(
        path: String,
        vfs: String? = nil,
        limits: JournalLimits = JournalLimits(),
        syncFolder: ((String) throws(StoreError) -> Void)? = nil
    ) throws(StoreError) {
        self.path = path
        self.vfs = vfs
        self.limits = limits
        let database = try JournalFile.openForCommits(path, vfs: vfs, syncFolder: syncFolder)
        self.table = try JournalTable(database)
        self.progress = CheckpointProgress(limits: limits)
        self.pace = CompactionPace(limits: limits)
        let newest = try JournalFile.explain(path) { () throws(SQLiteError) in
            try database.integer("SELECT max(id) FROM rows")
        }
        self.isLoaded = newest == nil
    }

    /// The bytes that the rows take in the file, and how many of them still count.
    package var bytes: (all: Int, live: Int) {
        (self.droppedBytes + self.records.rows.bytes, self.records.rows.liveBytes)
    }

    /// Why the store has failed, if it has.
    package var failure: StoreError? { self.progress.failure }

    package func load(_ take: (RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError) {
        self.records = try JournalLoader.load(self.table.database, take)
        self.firstInFile = self.records.rows.first
        self.droppedBytes = 0
        self.isLoaded = true
    }

    package func reload(_ take: (RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError) {
        precondition(self.failure != nil, "a store that has not failed is read once")
        // On a connection of its own: this one's sees what the failed commit has written.
        try JournalReader.load(path: self.path, vfs: self.vfs, take)
    }

    package func commit(_ batch: borrowing RecordBatch) throws(StoreError) {
        precondition(self.isLoaded, "what a file holds is loaded before something is added")
        if let failure = self.progress.failure { throw failure }
        guard !batch.isEmpty else { return }
        do throws(StoreError) {
            try self.write(batch.bytes)
        } catch {
            // Nothing is rolled back, tried again or closed with a checkpoint: the file stays as it is.
            self.progress.fail(error)
            throw error
        }
        self.makeRoomInLog()
    }

    /// A second connection, for checkpoints on another thread.
    package func makeCheckpointer() throws(StoreError) -> JournalCheckpointer {
        let database = try JournalFile.open(self.path, mode: .readWrite, vfs: self.vfs)
        try JournalFile.explain(self.path) { () throws(SQLiteError) in
            // With FULL a checkpoint syncs the log before the file, and the file before the log may begin anew.
            try database.execute("PRAGMA synchronous = FULL")
        }
        return JournalCheckpointer(database, self.progress)
    }

    private func write(_ batch: ByteView) throws(StoreError) {
        try self.table.begin()
        let newest = self.records.rows.next
        self.beginRow()
        try self.append(batch)
        try self.compact(own: batch.count, before: newest)
        if self.droppedBytes >= self.limits.deletionBytes {
            self.firstInFile = self.records.rows.first
            self.droppedBytes = 0
            try self.table.delete(before: self.firstInFile)
        }
        try self.endRow()
        try self.table.commit()
    }

    /// Cuts the batch, at the borders of records, into rows.
    private func append(_ batch: ByteView) throws(StoreError) {
        var start = 0
        var offset = 0
        while let (key, count) = RecordBatch.header(of: batch, at: offset) {
            let bytes = RecordBatch.headerCount + count
            if offset > start, self.content.count + offset - start + bytes > self.limits.rowBytesMax {
                self.content.append(batch[start..<offset])
                try self.endRow()
                self.beginRow()
                start = offset
            }
            self.records.put(key, row: self.records.rows.next - 1, bytes: bytes)
            offset += bytes
        }
        precondition(offset == batch.count, "a batch is made of whole records")
        self.content.append(batch[start..<offset])
    }

    /// Copies what counts of the oldest rows, as far as this commit's turn goes; own rows begin at `newest`.
    private func compact(own bytes: Int, before newest: Int64) throws(StoreError) {
        self.copiedBytesOfLastCommit = 0
        self.pace.earn(bytes, self.records.rows)
        while self.records.rows.first < newest, let row = self.records.rows.oldest, self.pace.spend(on: row) {
            if row.liveBytes > 0 { try self.copyLiveRecords(of: self.records.rows.first) }
            self.droppedBytes += Int(row.bytes)
            self.records.dropOldestRow()
        }
    }

    private func copyLiveRecords(of row: Int64) throws(StoreError) {
        try self.table.read(row) { content throws(StoreError) in
            var offset = JournalRow.headerBytes
            while let (key, count) = RecordBatch.header(of: content, at: offset) {
                let bytes = RecordBatch.headerCount + count
                if self.records.row(of: key) == row {
                    if self.content.count + bytes > self.limits.rowBytesMax {
                        try self.endRow()
                        self.beginRow()
                    }
                    self.content.append(content[offset..<offset + bytes])
                    self.records.put(key, row: self.records.rows.next - 1, bytes: bytes)
                    self.copiedBytesOfLastCommit += bytes
                }
                offset += bytes
            }
            if offset != content.count {
                throw StoreError(damaged: self.path, "a record of row \(row) is malformed")
            }
        }
    }

    private func beginRow() {
        self.content.removeAll()
        JournalRow.appendHeader(to: &self.content)
        self.records.appendRow()
    }

    private func endRow() throws(StoreError) {
        JournalRow.setFirst(self.firstInFile, in: &self.content)
        self.records.setNewestRow(contentBytes: self.content.count)
        try self.table.insert(self.records.rows.next - 1, self.content.view)
    }

    /// Sees to it that the log is copied into the file and begins anew, while commits go on.
    private func makeRoomInLog() {
        let step = self.progress.committed(logPages: self.table.database.logPages)
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
        if let pages = try? JournalCheckpointer.copyLog(self.table.database, self.progress) {
            _ = self.progress.copied(pages, generation: generation)
        }
        if step == .ask { self.progress.finish() }
    }
}

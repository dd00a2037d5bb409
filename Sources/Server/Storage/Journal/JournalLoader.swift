package import Engine
import Synchronization
package import Wire

/// Reads a journal from its newest row to its oldest. The first record of a key is therefore its newest.
package struct JournalLoader: ~Copyable {
    private var records = LiveRecords()
    private let path: String
    /// The rows read so far, the newest first.
    private var rows: [RowLedger.Row] = []
    private var oldest: Int64 = 1
    /// The oldest row that must exist, as stored in the header of the newest row.
    private var first: Int64 = 1
    /// The expected checksum of the next, older row, as stored in the row read last; nil if it is not stored.
    private var next: Int64?

    private init(path: String) {
        self.path = path
    }

    /// Passes the newest record of each key to `take`, and returns the locations of these records.
    ///
    /// - Parameters:
    ///   - database: a journal.
    ///   - take: called with each key and its newest record, which is valid during the call. For events, it is called
    ///     with every record.
    /// - Throws: errors of `take`; `StoreError` with the file's name if a row is damaged or cannot be read.
    package static func load(
        _ database: SQLiteDatabase,
        _ take: (RecordKey, ByteView) throws(StoreError) -> Void
    ) throws(StoreError) -> LiveRecords {
        var loader = JournalLoader(path: database.path)
        let statement = try JournalFile.explain(database.path) { () throws(SQLiteError) in
            try database.prepare("SELECT id, checksum, content FROM rows ORDER BY id DESC")
        }
        while try JournalFile.explain(database.path, { () throws(SQLiteError) in try statement.step() }) {
            try loader.read(statement.integer(0), checksum: statement.integer(1), statement.bytes(2), take)
        }
        return try loader.finish()
    }

    /// Passes the newest record of each key of a journal's file, in the state of the last successful commit. It uses a
    /// separate connection, and does not change the file.
    ///
    /// The writes of a failed commit are not visible, even if the failed journal is still open.
    ///
    /// - Throws: `StoreError` if the file cannot be read completely. The caller must then discard the records passed so
    ///   far.
    package static func load(
        path: String,
        vfs: String? = nil,
        _ take: (RecordKey, ByteView) throws(StoreError) -> Void
    ) throws(StoreError) {
        _ = try self.load(try JournalFile.open(path, vfs: vfs), take)
    }

    private mutating func read(
        _ row: Int64,
        checksum: Int64,
        _ content: ByteView,
        _ take: (RecordKey, ByteView) throws(StoreError) -> Void
    ) throws(StoreError) {
        if let fault = JournalRow.fault(content, checksum: checksum, row: row) { throw self.damaged(fault) }
        if self.rows.isEmpty { self.first = JournalRow.first(of: content) }
        guard row > 0, self.rows.isEmpty || row == self.oldest - 1 else {
            throw self.damaged("row \(self.oldest - 1) is missing")
        }
        guard self.next ?? checksum == checksum else {
            throw self.damaged("row \(row) is not the one that row \(row + 1) was written behind")
        }
        self.next = JournalRow.stamp(of: content).previous
        var offset = JournalRow.recordsOffset(of: content)
        var liveBytes = 0
        while offset < content.count {
            guard let (key, count) = RecordBatch.header(of: content, at: offset) else {
                throw self.damaged("a record of row \(row) is malformed")
            }
            let bytes = RecordBatch.headerCount + count
            guard LiveRecords.canHold(key, bytes: bytes) else {
                throw self.damaged("a record of row \(row) is too large, or of no device there can be")
            }
            if key.isEvents {
                let content = content[offset + RecordBatch.headerCount..<offset + bytes]
                try self.noteEvents(key, content, of: row, &liveBytes)
                try take(key, content)
            } else if let known = self.records.row(of: key) {
                guard known > row else { throw self.damaged("row \(row) holds two records of one key") }
            } else {
                _ = self.records.exchange(key, row: row, bytes: bytes)
                liveBytes += bytes
                try take(key, content[offset + RecordBatch.headerCount..<offset + bytes])
            }
            offset += bytes
        }
        self.oldest = row
        self.rows.append(
            RowLedger.Row(bytes: UInt32(content.count + RowLedger.overheadBytes), liveBytes: UInt32(liveBytes))
        )
    }

    /// Records an event record. Only the newest one is live: the last record in the first row with event records.
    private mutating func noteEvents(
        _ key: RecordKey,
        _ content: ByteView,
        of row: Int64,
        _ liveBytes: inout Int
    ) throws(StoreError) {
        do throws(EventRecord.Fault) {
            let record = try EventRecord(content)
            try record.read { _ in }
            guard key == EventRecord.key(record.sequence) else { throw EventRecord.Fault(clause: "has another's key") }
            if let last = self.records.held.last, last.row == row, record.sequence <= last.sequence {
                throw EventRecord.Fault(clause: "has the number of another")
            }
            self.records.held.append(row: row, sequence: record.sequence, events: record.eventCount)
        } catch {
            throw self.damaged("a record of events of row \(row) \(error.clause)")
        }
        let known = self.records.row(of: key)
        guard known == nil || known == row else { return }
        let bytes = RecordBatch.headerCount + content.count
        let old = self.records.exchange(key, row: row, bytes: bytes)
        liveBytes += bytes - Int(old & 0xF_FFFF)
    }

    private consuming func finish() throws(StoreError) -> LiveRecords {
        guard self.rows.isEmpty || self.oldest == self.first else {
            throw self.damaged("its oldest row is \(self.oldest), and the newest one says it is \(self.first)")
        }
        self.rows.reverse()
        self.records.held.finishLoading(self.rows, oldest: self.oldest)
        self.records.rows = RowLedger(rows: self.rows, first: self.oldest)
        return self.records
    }

    private func damaged(_ fault: String) -> StoreError {
        StoreError(damaged: self.path, fault)
    }
}

/// Reads a journal's records of events on separate connections, while another connection commits to it.
package struct JournalEvents: Sendable {
    /// The position at which the next pass continues.
    package struct Position: Hashable, Sendable {
        /// The first row to read.
        package var row: Int64
        /// The number of the last record read. Records with this number or a lower one are skipped.
        package var sequence: UInt64

        package init(row: Int64, sequence: UInt64) {
            self.row = row
            self.sequence = sequence
        }
    }

    private let path: String

    package init(path: String) {
        self.path = path
    }

    /// Passes the records from `position` on to `take`, in the order of their numbers. Stops when `take` returns false
    /// or there are no more records. Moves `position` past the last record that `take` accepted.
    ///
    /// - `take`: returns false to refuse a record. The record is valid only during the call.
    /// - Returns: true if there are no more records.
    /// - Throws: `StoreError` if the journal cannot be read.
    package func read(
        from position: inout Position,
        _ take: (EventRecord) -> Bool
    ) throws(StoreError) -> Bool {
        let database = try JournalFile.open(self.path)
        let statement = try JournalFile.explain(self.path) { () throws(SQLiteError) in
            try database.prepare("SELECT id, checksum, content FROM rows WHERE id >= \(position.row) ORDER BY id")
        }
        while try JournalFile.explain(self.path, { () throws(SQLiteError) in try statement.step() }) {
            position.row = statement.integer(0)
            let content = statement.bytes(2)
            if let fault = JournalRow.fault(content, checksum: statement.integer(1), row: position.row) {
                throw StoreError(damaged: self.path, fault)
            }
            guard try self.read(content, &position.sequence, take) else { return false }
        }
        return true
    }

    /// - Returns: true if `take` accepted all records of the row.
    private func read(
        _ content: ByteView,
        _ sequence: inout UInt64,
        _ take: (EventRecord) -> Bool
    ) throws(StoreError) -> Bool {
        var offset = JournalRow.recordsOffset(of: content)
        while let (key, count) = RecordBatch.header(of: content, at: offset) {
            let start = offset + RecordBatch.headerCount
            offset = start + count
            guard key.isEvents else { continue }
            do throws(EventRecord.Fault) {
                let record = try EventRecord(content[start..<offset])
                guard record.sequence > sequence else { continue }
                guard take(record) else { return false }
                sequence = record.sequence
            } catch {
                throw StoreError(damaged: self.path, "a record of events \(error.clause)")
            }
        }
        return true
    }
}

/// The state that a store and the history share. The history sets the record up to which its events are durable. The
/// store sets the number of bytes that it keeps for later events. Any thread may use it.
package final class EventRetention: Sendable {
    private let durable: Atomic<UInt64>
    private let held = Atomic(0)
    private let firstRow = Atomic<Int64>(0)
    private let givenUp = Atomic(0)

    /// - Parameter durableSequence: the record up to which the history's events are durable at the start; 0 for none.
    package init(durableSequence: UInt64 = 0) {
        self.durable = Atomic(durableSequence)
    }

    /// The number of the record up to which all events are durable in the history. The store may delete them.
    package var durableSequence: UInt64 { self.durable.load(ordering: .acquiring) }

    /// Records that the events of all records up to `sequence` are durable in the history. A lower number has no
    /// effect.
    package func advance(to sequence: UInt64) {
        self.durable.max(sequence, ordering: .acquiringAndReleasing)
    }

    /// The number of bytes that the store keeps for the history.
    package var heldBytes: Int { self.held.load(ordering: .relaxed) }

    /// The first row that the store keeps for the history; 0 while it is unknown.
    package var firstHeldRow: Int64 { self.firstRow.load(ordering: .relaxed) }

    /// Records the number of bytes that the store keeps for the history, and the first row of them.
    package func hold(bytes: Int, from row: Int64) {
        self.held.store(bytes, ordering: .relaxed)
        self.firstRow.store(row, ordering: .relaxed)
    }

    /// Counts events that the store has deleted because of its limit, before they were durable in the history.
    package func giveUp(events: Int) { self.givenUp.add(events, ordering: .relaxed) }

    /// Returns the number of events counted by `giveUp` since the last call.
    package func takeGivenUp() -> Int { self.givenUp.exchange(0, ordering: .relaxed) }
}

package import Engine
import Synchronization
package import Wire

/// Reads a journal from its newest row to its oldest, so that the first record of a key is its newest.
package struct JournalLoader: ~Copyable {
    private(set) var records = LiveRecords()
    private let path: String
    /// From the newest to the oldest.
    private var rows: [RowLedger.Row] = []
    private var oldest: Int64 = 1
    /// The oldest row there must be, as the newest one says.
    private var first: Int64 = 1
    /// The checksum of the next row, as the one behind it says; nil when that does not say.
    private var next: Int64?

    private init(path: String) {
        self.path = path
    }

    /// Hands over the newest record of each key, and returns where they lie.
    ///
    /// - Parameters:
    ///   - database: a journal.
    ///   - take: called with each key and its newest record, which is valid during the call; of events with every
    ///     record.
    /// - Throws: what `take` throws, and `StoreError`, with the file's name, for rows that are damaged or cannot be
    ///   read.
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
            if key.kind == .events {
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

    /// Takes a record of events; of all of them the newest counts, the last one in the first row that has any.
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
        self.records.setRows(RowLedger(rows: self.rows, first: self.oldest))
        return self.records
    }

    private func damaged(_ fault: String) -> StoreError {
        StoreError(damaged: self.path, fault)
    }
}

/// Reads what a journal's file holds, on a connection of its own, and changes nothing.
package enum JournalReader {
    /// Hands over the newest record of every key, as of the last commit that returned; a view is valid during the call.
    ///
    /// While a journal that has failed still exists, nothing of the commit that failed is seen.
    ///
    /// - Throws: `StoreError` when the file cannot be read whole; then nothing that was handed over may be used.
    package static func load(
        path: String,
        vfs: String? = nil,
        _ take: (RecordKey, ByteView) throws(StoreError) -> Void
    ) throws(StoreError) {
        let database = try JournalFile.open(path, mode: .readOnly, vfs: vfs)
        _ = try JournalLoader.load(database, take)
    }
}

/// Reads the records of events that a journal has, on connections of its own, while another commits to it.
package struct JournalEvents: Sendable {
    /// Where a pass goes on.
    package struct Position: Hashable, Sendable {
        /// The first row to read.
        package var row: Int64
        /// The number of the last record that was read: those up to it are passed over.
        package var sequence: UInt64

        package init(row: Int64, sequence: UInt64) {
            self.row = row
            self.sequence = sequence
        }
    }

    private let path: String
    private let vfs: String?

    /// - `vfs`: the name of SQLite's file system layer; nil for the machine's own.
    package init(path: String, vfs: String? = nil) {
        self.path = path
        self.vfs = vfs
    }

    /// Hands over records from `position` on, in the order of their numbers, until `take` refuses one or there is none
    /// left, and moves `position` behind the last that was taken.
    ///
    /// - `take`: takes a record, which is valid during the call, or returns false.
    /// - Returns: whether there is none left.
    /// - Throws: `StoreError` when the journal cannot be read.
    package func read(
        from position: inout Position,
        _ take: (EventRecord) -> Bool
    ) throws(StoreError) -> Bool {
        let database = try JournalFile.open(self.path, mode: .readOnly, vfs: self.vfs)
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

    /// - Returns: whether all records of the row were taken.
    private func read(
        _ content: ByteView,
        _ sequence: inout UInt64,
        _ take: (EventRecord) -> Bool
    ) throws(StoreError) -> Bool {
        var offset = JournalRow.recordsOffset(of: content)
        while let (key, count) = RecordBatch.header(of: content, at: offset) {
            let start = offset + RecordBatch.headerCount
            offset = start + count
            guard key.kind == .events else { continue }
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

/// What a store and the history know of each other: up to which record the history has made events durable, and how
/// much the store keeps until it has. Safe to use from several threads.
package final class EventRetention: Sendable {
    private let durable: Atomic<UInt64>
    private let held = Atomic(0)
    private let firstRow = Atomic<Int64>(0)
    private let givenUp = Atomic(0)

    /// - Parameter durableSequence: the record up to which the history is durable at the start; 0 for none.
    package init(durableSequence: UInt64 = 0) {
        self.durable = Atomic(durableSequence)
    }

    /// The events of all records up to this one are durable in the history: the store may let go of them.
    package var durableSequence: UInt64 { self.durable.load(ordering: .acquiring) }

    /// The history has made the events durable of all records up to `sequence`; less than before changes nothing.
    package func advance(to sequence: UInt64) {
        self.durable.max(sequence, ordering: .acquiringAndReleasing)
    }

    /// The bytes that the store keeps for the history.
    package var heldBytes: Int { self.held.load(ordering: .relaxed) }

    /// The first row that the store keeps for the history; 0 while that is not known.
    package var firstHeldRow: Int64 { self.firstRow.load(ordering: .relaxed) }

    /// The store keeps so many bytes for the history, from a row on.
    package func hold(bytes: Int, from row: Int64) {
        self.held.store(bytes, ordering: .relaxed)
        self.firstRow.store(row, ordering: .relaxed)
    }

    /// The store has let go of so many events that are not durable in the history, as it keeps no more.
    package func giveUp(events: Int) { self.givenUp.add(events, ordering: .relaxed) }

    /// How many events were given up since the last call.
    package func takeGivenUp() -> Int { self.givenUp.exchange(0, ordering: .relaxed) }
}

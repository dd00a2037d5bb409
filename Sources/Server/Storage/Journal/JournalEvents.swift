package import Engine
import Wire

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

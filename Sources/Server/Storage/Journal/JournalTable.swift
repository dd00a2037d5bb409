import Engine
import Wire

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

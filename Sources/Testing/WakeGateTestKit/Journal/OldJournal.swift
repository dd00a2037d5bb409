import Foundation
package import Storage
import Wire

/// Journals as versions of WakeGate wrote them that knew format 1: rows do not name the ones before them, and there is
/// no mark beside the file.
package enum OldJournal {
    /// Where the records of a row begin in format 2.
    private static let headerBytes = 41

    /// Rewrites the journal at `path`, which nobody has open, in format 1. Its log is not copied into it, and holds the
    /// rows anew.
    ///
    /// - Throws: `SQLiteError` when it is no journal.
    package static func rewrite(_ path: String) throws(SQLiteError) {
        let database = try SQLiteDatabase(path: path, mode: .readWrite)
        try database.keepLogOnClose()
        try database.execute("BEGIN IMMEDIATE")
        let rows = try Self.rows(database)
        let update = try database.prepare("UPDATE rows SET checksum = ?2, content = ?3 WHERE id = ?1")
        for (row, content) in rows {
            var buffer = ByteBuffer()
            buffer.append(1)
            buffer.append(Array(content[1..<9] + content[Self.headerBytes...]))
            try update.bind(1, row)
            try update.bind(2, RowChecksum.of(buffer.view, row: row))
            try update.bind(3, buffer.view)
            try update.run()
        }
        try database.execute("PRAGMA user_version = 1; COMMIT")
        try? FileManager.default.removeItem(atPath: path + "-mark")
    }

    private static func rows(_ database: SQLiteDatabase) throws(SQLiteError) -> [(row: Int64, content: [UInt8])] {
        var rows: [(Int64, [UInt8])] = []
        let selection = try database.prepare("SELECT id, content FROM rows")
        while try selection.step() { rows.append((selection.integer(0), selection.bytes(1).array)) }
        return rows
    }
}

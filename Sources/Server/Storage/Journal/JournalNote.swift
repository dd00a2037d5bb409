import Engine
import Wire

/// The mark that a backup carries in itself: it is whole as one file, and what it must hold is in it.
///
/// The first start on it takes the note out, and makes the file beside it that goes on as the mark.
enum JournalNote {
    /// Notes `mark` in a copy that nobody uses, and leaves nothing beside it.
    ///
    /// - Throws: `StoreError` when the note is not found afterwards.
    static func write(_ mark: JournalMark, in place: JournalPlace) throws(StoreError) {
        try JournalFile.explain(place.path) { () throws(SQLiteError) in
            var buffer = ByteBuffer()
            mark.store(to: &buffer)
            // Closed, it copies the log into the file and removes it.
            let database = try SQLiteDatabase(path: place.path, mode: .readWrite, vfs: place.vfs)
            try database.execute("BEGIN IMMEDIATE; CREATE TABLE note (mark BLOB NOT NULL)")
            let insertion = try database.prepare("INSERT INTO note VALUES (?1)")
            try insertion.bind(1, buffer.view)
            try insertion.run()
            try database.execute("COMMIT")
        }
        guard Self.read(place) == mark else {
            throw StoreError(damaged: place.path, "what was written to it is not found in it")
        }
    }

    /// The mark that the file alone notes, without its log; nil when it has none.
    static func read(_ place: JournalPlace) -> JournalMark? {
        // Between two checkpoints the file's pages need not fit together, and the note is none of a copy.
        guard let database = try? SQLiteDatabase(path: place.path, mode: .fileAlone, vfs: place.vfs),
            let statement = try? database.prepare("SELECT mark FROM note"), (try? statement.step()) == true
        else { return nil }
        return JournalMark(stored: statement.bytes(0))
    }

    /// Takes the note out, in a transaction of its own.
    static func remove(_ database: SQLiteDatabase) throws(SQLiteError) {
        try database.execute("DROP TABLE IF EXISTS note")
    }
}

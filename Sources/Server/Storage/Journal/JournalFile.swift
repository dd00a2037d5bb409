import Engine
import Platform

/// The database file of a journal: its format, its identity, and the setup of each connection.
enum JournalFile {
    /// "WkGJ", by which the program `file` and SQLite's tools recognize a journal.
    static let applicationID: Int64 = 0x576B_474A
    /// The format version of new journals. This build also reads format 2, whose pages have 16 KiB. Builds that expect
    /// such pages refuse format 3. They would not find damage in its log.
    static let format: Int64 = 3
    private static let oldestFormat: Int64 = 2
    private static let formats = "\(oldestFormat) to \(format)"
    /// The page size of new journals, in bytes. Those of older builds have pages of 16 KiB, and keep them.
    static let pageBytes = 8_192
    /// The page size of journals of older builds, in bytes.
    static let pageBytesMax = 16_384

    /// Creates a journal without rows and its mark, or completes an interrupted creation.
    ///
    /// The mark becomes durable before the file is created. A file without rows is therefore recognized as new. If the
    /// journal replaces a lost journal, the old mark remains until the new journal is complete.
    static func make(
        _ location: JournalLocation,
        isInsteadOfLost: Bool
    ) throws(StoreError) -> (SQLiteDatabase, JournalMarkFile, JournalMark) {
        let number = try JournalMarkFile.read(location).map { $0.number + 1 } ?? 1
        let mark = JournalMark.first(number: number, nil)
        let early = isInsteadOfLost ? nil : try self.makeMark(mark, location)
        let database = try self.connect(location, .create)
        let isEmpty = try self.explain(location.path) { () throws(SQLiteError) in try self.isEmpty(database) }
        if isEmpty { try self.explain(location.path) { () throws(SQLiteError) in try self.create(database) } }
        try self.checkIdentity(database)
        try self.prepareForCommits(database, location)
        if let early { return (database, early, mark) }
        return (database, try self.makeMark(mark, location), mark)
    }

    private static func makeMark(_ mark: JournalMark, _ location: JournalLocation) throws(StoreError) -> JournalMarkFile
    {
        let file = try JournalMarkFile(location, mark, isNew: true)
        try location.syncFolder()
        return file
    }

    /// Opens the connection that commits to an existing, verified journal, and makes its content durable.
    static func takeOver(
        _ location: JournalLocation,
        _ found: JournalInspection
    ) throws(StoreError) -> (SQLiteDatabase, JournalMarkFile, JournalMark) {
        let database = try self.connect(location, .readWrite)
        try self.checkIdentity(database)
        try self.prepareForCommits(database, location)
        try self.explain(location.path) { () throws(SQLiteError) in
            // Commits of earlier processes may be readable although they are not on the disk. A power failure would
            // then also lose later commits in the log.
            try database.syncRecoveredCommits()
            _ = try database.checkpoint(.passive)
        }
        guard found.loss == nil, !found.isCopy, var mark = found.mark else {
            let mark = JournalMark.first(number: (found.mark?.number ?? 0) + 1, found.newest)
            // With a loss, the old mark remains until the end. A start after an interruption then reports the loss
            // again.
            let early = found.loss == nil ? try self.makeMark(mark, location) : nil
            try self.explain(location.path) { () throws(SQLiteError) in
                try JournalNote.remove(database)
                // Copies the log into the file. A later loss of both the log and the mark can then be detected. With a
                // loss, also truncates the log, because the next start would find the abandoned commits in it.
                let (logPages, copiedPages) = try database.checkpoint(found.loss == nil ? .passive : .truncate)
                guard copiedPages == logPages else {
                    throw SQLiteError(kind: .busy, message: "its log cannot be copied into it")
                }
            }
            if let early { return (database, early, mark) }
            return (database, try self.makeMark(mark, location), mark)
        }
        if let newest = found.newest {
            mark.row = newest.row
            mark.checksum = newest.checksum
            mark.commits = max(mark.commits, newest.stamp.commits)
            mark.time = newest.stamp.time ?? mark.time
        }
        return (database, try JournalMarkFile(location, mark, isNew: false), mark)
    }

    /// Reads and checks a whole journal that has no log and that no other connection uses.
    ///
    /// - Returns: the position of its newest row; nil if there is none.
    static func verify(_ location: JournalLocation) throws(StoreError) -> JournalPosition? {
        let database = try self.connect(location, .fileAlone)
        try self.checkIdentity(database)
        try self.checkPages(database)
        _ = try JournalLoader.load(database) { _, _ in }
        return try JournalPosition.newest(database)
    }

    /// Refuses a file in which a page has two uses, or is both used and free. Later writes would overwrite such a page.
    static func checkPages(_ database: SQLiteDatabase) throws(StoreError) {
        let verdict = try self.explain(database.path) { () throws(SQLiteError) in
            try database.text("PRAGMA quick_check(1)")
        }
        guard verdict == "ok" else {
            throw StoreError(damaged: database.path, "its pages do not fit together (\(verdict ?? "unknown"))")
        }
    }

    private static func prepareForCommits(_ database: SQLiteDatabase, _ location: JournalLocation) throws(StoreError) {
        let mode = try self.explain(location.path) { () throws(SQLiteError) in try database.text("PRAGMA journal_mode")
        }
        guard mode == "wal" else {
            throw StoreError(
                message:
                    "\(location.path) cannot have a write-ahead log (its mode is \(mode ?? "unknown")). Use a state "
                    + "folder on a local file system."
            )
        }
        // Without a durable name, the content of a file may be lost. SQLite syncs the folder only when it creates a
        // file, and an earlier process may have died before that sync.
        try location.syncFolder()
        try self.explain(location.path) { () throws(SQLiteError) in try self.setUpForCommits(database) }
    }

    /// Opens a connection to an existing file, or creates the file with `.create`. Does not check the file's identity.
    static func connect(_ location: JournalLocation, _ mode: SQLiteDatabase.Mode) throws(StoreError) -> SQLiteDatabase {
        try self.explain(location.path) { () throws(SQLiteError) in
            let database = try SQLiteDatabase(path: location.path, mode: mode, vfs: location.vfs)
            try self.setUp(database)
            return database
        }
    }

    /// Opens another connection, which only reads, to an existing journal.
    static func open(_ path: String, vfs: String? = nil) throws(StoreError) -> SQLiteDatabase {
        let database = try self.connect(try JournalLocation(path, vfs: vfs), .readOnly)
        try self.checkIdentity(database)
        return database
    }

    /// Returns the size of the pages of an open journal, in bytes.
    static func pageBytes(of database: SQLiteDatabase) throws(StoreError) -> Int {
        let bytes = try self.explain(database.path) { () throws(SQLiteError) in
            try database.integer("PRAGMA page_size")
        }
        return bytes.map(Int.init) ?? self.pageBytes
    }

    /// Syncs the folder that contains `path`.
    static func syncFolder(of path: String) throws(StoreError) {
        let end = path.lastIndex(of: "/")
        let folder = end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        do throws(SystemError) { try FileSystem.syncFolder(folder) } catch {
            throw StoreError(
                message: "The folder \(folder) cannot be synced (\(error.message)). Check the disk it lies on."
            )
        }
    }

    static func explain<Result>(
        _ path: String,
        _ body: () throws(SQLiteError) -> Result
    ) throws(StoreError) -> Result {
        do throws(SQLiteError) { return try body() } catch { throw StoreError(journal: path, error) }
    }

    private static func setUp(_ database: SQLiteDatabase) throws(SQLiteError) {
        // A commit should not fail while another program briefly reads the file.
        try database.execute("PRAGMA busy_timeout = 5000")
        // Without this, the last connection that closes would copy the whole log into the file, even after a failed
        // sync.
        try database.keepLogOnClose()
    }

    /// Returns a clause if a file without a log is shorter than its header says. Returns nil if the file is complete or
    /// the header has no valid size.
    static func cutClause(_ location: JournalLocation) -> String? {
        guard let size = location.size(location.path),
            let header = try? SQLiteFile(path: location.path, mode: .readOnly, vfs: location.vfs).read(100, at: 0)
        else { return nil }
        func word(_ offset: Int) -> Int { header[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) } }
        // SQLite's header has the page size, a power of two, in the upper half of the word at offset 16. Its page count
        // is valid if the word at 92 equals the change counter at 24.
        let pageBytes = word(16) >> 16
        let bytes = word(28) * pageBytes
        guard pageBytes.nonzeroBitCount == 1, word(24) == word(92), size < bytes else { return nil }
        return "it is cut off after \(size) of \(bytes) bytes"
    }

    /// Returns true if no program has stored anything in the file.
    static func isEmpty(_ database: SQLiteDatabase) throws(SQLiteError) -> Bool {
        for question in ["PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_schema"] {
            if try database.integer(question) != 0 { return false }
        }
        return true
    }

    private static func create(_ database: SQLiteDatabase) throws(SQLiteError) {
        // The commit of a single push writes one page and page 1. With pages of 16 KiB, commits write half as much
        // again at moderate rates, and a fifth more at full rate. With 4 KiB, large commits need more system calls, and
        // a push 2 % more instructions.
        try database.execute("PRAGMA page_size = \(self.pageBytes)")
        try database.execute("PRAGMA auto_vacuum = NONE")
        // WAL needs one sync per commit instead of three, and lets other connections read and copy the file. `execute`
        // runs the statement to its end. It therefore also reports a failed commit of the change.
        try database.execute("PRAGMA journal_mode = WAL")
        try database.execute(
            """
            BEGIN IMMEDIATE;
            CREATE TABLE rows (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, content BLOB NOT NULL);
            PRAGMA application_id = \(self.applicationID);
            PRAGMA user_version = \(self.format);
            COMMIT
            """
        )
    }

    /// - Throws: an error if the file is not a journal, or has a format that this build cannot read.
    static func checkIdentity(_ database: SQLiteDatabase) throws(StoreError) {
        let path = database.path
        let (id, format) = try self.explain(path) { () throws(SQLiteError) in
            (try database.integer("PRAGMA application_id"), try database.integer("PRAGMA user_version") ?? 0)
        }
        guard id == self.applicationID else { throw StoreError(foreign: path) }
        guard format <= self.format else {
            throw StoreError(
                message: "\(path) has format \(format), and this build reads formats \(self.formats). Install the "
                    + "version of WakeGate that wrote it, or a newer one."
            )
        }
        guard format > 0 else { throw StoreError(damaged: path, "format \(format) does not exist") }
        guard format >= self.oldestFormat else {
            throw StoreError(
                message: "\(path) has format \(format), and this build reads formats \(self.formats). Start commit "
                    + "50ad6a39 of WakeGate once on this state folder, which converts it, and then this version."
            )
        }
    }

    private static func setUpForCommits(_ database: SQLiteDatabase) throws(SQLiteError) {
        // A commit is durable when it returns.
        try database.execute("PRAGMA synchronous = FULL")
        // Debian's build enables `secure_delete`. It would write every page of a deleted row once more, filled with
        // zeros.
        try database.execute("PRAGMA secure_delete = OFF")
        // With spilling, a transaction larger than the cache would write some pages twice.
        try database.execute("PRAGMA cache_spill = OFF")
        // Rows are written once and read once, much later. A larger cache would not have more hits.
        try database.execute("PRAGMA cache_size = -4096")
        // A full /tmp must not fail a commit.
        try database.execute("PRAGMA temp_store = MEMORY")
    }
}

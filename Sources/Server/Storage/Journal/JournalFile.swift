import Engine
import Platform

/// The file of a journal: what marks it as one, and how each connection to it is set up.
enum JournalFile {
    /// "WkGJ", by which `file` and SQLite's tools tell it from other programs' databases.
    static let applicationID: Int64 = 0x576B_474A
    /// The format that this build reads and writes.
    static let format: Int64 = 2
    static let pageBytes = 16_384

    /// Makes a journal without rows, where there is none or one whose making was cut off, and its mark.
    ///
    /// The mark is durable before the file is made, so that a file without rows is known for a new one; but where the
    /// journal is made instead of one that is lost, the mark that misses it stays until all is done.
    static func make(
        _ place: JournalPlace,
        isInsteadOfLost: Bool
    ) throws(StoreError) -> (SQLiteDatabase, JournalMarkFile, JournalMark) {
        let number = try JournalMarkFile.read(place).map { $0.number + 1 } ?? 1
        let mark = JournalMark.first(number: number, nil)
        let early = isInsteadOfLost ? nil : try self.makeMark(mark, place)
        let database = try self.connect(place, .create)
        let isEmpty = try self.explain(place.path) { () throws(SQLiteError) in try self.isEmpty(database) }
        if isEmpty { try self.explain(place.path) { () throws(SQLiteError) in try self.create(database) } }
        try self.checkIdentity(database)
        try self.prepareForCommits(database, place)
        if let early { return (database, early, mark) }
        return (database, try self.makeMark(mark, place), mark)
    }

    private static func makeMark(_ mark: JournalMark, _ place: JournalPlace) throws(StoreError) -> JournalMarkFile {
        let file = try JournalMarkFile(place, mark, isNew: true)
        try place.syncFolder()
        return file
    }

    /// A connection that commits to a journal that was read and verified; makes durable what is there.
    static func takeOver(
        _ place: JournalPlace,
        _ found: FoundJournal
    ) throws(StoreError) -> (SQLiteDatabase, JournalMarkFile, JournalMark) {
        let database = try self.connect(place, .readWrite)
        try self.checkIdentity(database)
        try self.prepareForCommits(database, place)
        try self.explain(place.path) { () throws(SQLiteError) in try self.settle(database) }
        guard found.loss == nil, !found.isCopy, var mark = found.mark else {
            let mark = JournalMark.first(number: (found.mark?.number ?? 0) + 1, found.newest)
            // What is given up is missed until it is gone: whoever is cut off in between finds it missing again.
            let early = found.loss == nil ? try self.makeMark(mark, place) : nil
            try self.explain(place.path) { () throws(SQLiteError) in
                try JournalNote.remove(database)
                // In the file itself, so that a log that is missing together with its mark is missed. What was given up
                // in the log goes with it: the next start would find it there, and miss it again.
                let (logPages, copiedPages) = try database.checkpoint(found.loss == nil ? .passive : .truncate)
                guard copiedPages == logPages else {
                    throw SQLiteError(kind: .busy, code: 0, message: "its log cannot be copied into it")
                }
            }
            if let early { return (database, early, mark) }
            return (database, try self.makeMark(mark, place), mark)
        }
        if let newest = found.newest {
            mark.row = newest.row
            mark.checksum = newest.checksum
            mark.commits = max(mark.commits, newest.stamp.commits)
            mark.time = newest.stamp.time ?? mark.time
        }
        return (database, try JournalMarkFile(place, mark, isNew: false), mark)
    }

    /// Reads a journal whole that has no log and no user.
    ///
    /// - Returns: where its newest row lies; nil when there is none.
    static func verify(_ place: JournalPlace) throws(StoreError) -> JournalPosition? {
        let database = try self.connect(place, .fileAlone)
        try self.checkIdentity(database)
        try self.checkPages(database)
        _ = try JournalLoader.load(database) { _, _ in }
        return try JournalPosition.newest(database)
    }

    /// Refuses pages that are used twice, or are in use and count as free: they would be written over one day.
    static func checkPages(_ database: SQLiteDatabase) throws(StoreError) {
        let verdict = try self.explain(database.path) { () throws(SQLiteError) in
            try database.text("PRAGMA quick_check(1)")
        }
        guard verdict == "ok" else {
            throw StoreError(damaged: database.path, "its pages do not fit together (\(verdict ?? "unknown"))")
        }
    }

    private static func prepareForCommits(_ database: SQLiteDatabase, _ place: JournalPlace) throws(StoreError) {
        let mode = try self.explain(place.path) { () throws(SQLiteError) in try database.text("PRAGMA journal_mode") }
        guard mode == "wal" else {
            throw StoreError(
                message: "\(place.path) cannot have a write-ahead log (its mode is \(mode ?? "unknown")). Use a state "
                    + "folder on a local file system."
            )
        }
        // What is in a file is worth nothing while its name is not durable, and a process that died while it made the
        // file may have left that undone: SQLite syncs the folder only after making a file itself.
        try place.syncFolder()
        try self.explain(place.path) { () throws(SQLiteError) in try self.setUpForCommits(database) }
    }

    /// A connection to a file that is there, or is made with `.create`; whose it is was not looked at.
    static func connect(_ place: JournalPlace, _ mode: SQLiteDatabase.Mode) throws(StoreError) -> SQLiteDatabase {
        try self.explain(place.path) { () throws(SQLiteError) in
            let database = try SQLiteDatabase(path: place.path, mode: mode, vfs: place.vfs)
            try self.setUp(database)
            return database
        }
    }

    /// A further connection to a file that is there.
    static func open(_ path: String, mode: SQLiteDatabase.Mode, vfs: String?) throws(StoreError) -> SQLiteDatabase {
        let database = try self.connect(try JournalPlace(path, vfs: vfs), mode)
        try self.checkIdentity(database)
        return database
    }

    /// Syncs the folder `path` lies in.
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
        // Nobody else has business in the file; somebody who looks into it for a moment shall not fail a commit.
        try database.execute("PRAGMA busy_timeout = 5000")
        // Whoever closes last would copy the whole log into the file, even after a sync that failed.
        try database.keepLogOnClose()
    }

    /// Says, as a clause, that the file at a place, which has no log, is shorter than it says itself; nil when it is
    /// not, or does not say.
    static func cutClause(_ place: JournalPlace) -> String? {
        guard let size = place.size(place.path),
            let header = try? SQLiteFile(path: place.path, mode: .readOnly, vfs: place.vfs).read(100, at: 0)
        else { return nil }
        func word(_ offset: Int) -> Int { header[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) } }
        // Of SQLite's header: the size of a page is in the upper half of the word at 16; the count of pages is of the
        // change that the word at 92 names.
        let bytes = word(28) * self.pageBytes
        guard word(16) >> 16 == self.pageBytes, word(24) == word(92), size < bytes else { return nil }
        return "it is cut off after \(size) of \(bytes) bytes"
    }

    /// Whether the file holds nothing yet, of this program or another.
    static func isEmpty(_ database: SQLiteDatabase) throws(SQLiteError) -> Bool {
        for question in ["PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_schema"] {
            if try database.integer(question) != 0 { return false }
        }
        return true
    }

    private static func create(_ database: SQLiteDatabase) throws(SQLiteError) {
        // Half the system calls of 8 KiB pages in a large commit; a lone push writes one page and page 1.
        try database.execute("PRAGMA page_size = \(self.pageBytes)")
        try database.execute("PRAGMA auto_vacuum = NONE")
        // One sync a commit instead of three, and others may read and copy meanwhile. It runs to its end, where the
        // change is committed, so that a failure is seen.
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

    /// - Throws: when it is no journal, or of a format that this build does not read.
    static func checkIdentity(_ database: SQLiteDatabase) throws(StoreError) {
        let path = database.path
        let (id, format) = try self.explain(path) { () throws(SQLiteError) in
            (try database.integer("PRAGMA application_id"), try database.integer("PRAGMA user_version") ?? 0)
        }
        guard id == self.applicationID else { throw StoreError(foreign: path) }
        guard format <= self.format else {
            throw StoreError(
                message: "\(path) has format \(format), and this build reads format \(self.format). Install the "
                    + "version of WakeGate that wrote it, or a newer one."
            )
        }
        guard format > 0 else { throw StoreError(damaged: path, "format \(format) does not exist") }
        guard format == self.format else {
            throw StoreError(
                message: "\(path) has format \(format), and this build reads format \(self.format). Start commit "
                    + "50ad6a39 of WakeGate once on this state folder, which converts it, and then this version."
            )
        }
    }

    private static func setUpForCommits(_ database: SQLiteDatabase) throws(SQLiteError) {
        // A commit is on the disk when it returns: the promise itself.
        try database.execute("PRAGMA synchronous = FULL")
        // Debian compiles it in: every page of a deleted row would be written once more, full of zeros.
        try database.execute("PRAGMA secure_delete = OFF")
        // A transaction that outgrows the cache would write pages before its end, and then once more.
        try database.execute("PRAGMA cache_spill = OFF")
        // Rows are written once and read once, long after: a larger cache finds nothing more, a small one stays warm.
        try database.execute("PRAGMA cache_size = -4096")
        // Nothing needs temporary files; should a statement ever want one, a full /tmp shall not fail a commit.
        try database.execute("PRAGMA temp_store = MEMORY")
    }

    /// Makes what a former process left in the log durable in the file.
    ///
    /// A sync that failed may have left commits that can be read and are not on the disk. New commits behind them in
    /// the log would be lost with them.
    private static func settle(_ database: SQLiteDatabase) throws(SQLiteError) {
        try database.execute("BEGIN IMMEDIATE")
        _ = try database.integer("SELECT max(id) FROM rows")
        try database.rewriteLog()
        try database.execute("COMMIT")
        _ = try database.checkpoint(.passive)
    }
}

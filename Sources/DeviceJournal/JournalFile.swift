import DeviceEngine
import Glibc
import SQLite

/// The file of a journal: what marks it as one, and how each connection to it is set up.
enum JournalFile {
    /// "WkGJ", by which `file` and SQLite's tools tell it from other programs' databases.
    static let applicationID: Int64 = 0x576B_474A
    /// The format this build writes, and the newest it reads.
    static let format: Int64 = 1
    static let pageBytes = 16_384

    /// A connection that commits; the file is made when it is not there.
    ///
    /// - Parameter syncFolder: makes the names in the folder of a file durable; nil for the machine's own way.
    static func openForCommits(
        _ path: String,
        vfs: String?,
        syncFolder: ((String) throws(StoreError) -> Void)?
    ) throws(StoreError) -> SQLiteDatabase {
        if vfs == nil {
            try self.checkSizes(path)
            try JournalLog.check(path)
        }
        let database = try self.explain(path) { () throws(SQLiteError) in
            try SQLiteDatabase(path: path, mode: .create, vfs: vfs)
        }
        let isNew = try self.explain(path) { () throws(SQLiteError) in
            try self.setUp(database)
            return try self.isEmpty(database)
        }
        if isNew { try self.explain(path) { () throws(SQLiteError) in try self.create(database) } }
        try self.checkIdentity(database)
        // What is in a file is worth nothing while its name is not durable, and a process that died while it made the
        // file may have left that undone: SQLite syncs the folder only after making a file itself.
        if let syncFolder { try syncFolder(path) } else { try self.syncFolder(of: path) }
        try self.explain(path) { () throws(SQLiteError) in
            try self.setUpForCommits(database)
            if !isNew { try self.settle(database) }
        }
        return database
    }

    /// Refuses what SQLite would take for a file that is yet to be made: it would delete the log.
    private static func checkSizes(_ path: String) throws(StoreError) {
        let bytes = self.size(path)
        if let bytes, 1..<512 ~= bytes { throw StoreError(damaged: path, "it is cut off after \(bytes) bytes") }
        guard bytes ?? 0 == 0, self.size(path + "-wal") ?? 0 > 0 else { return }
        throw StoreError(damaged: path, "it is \(bytes == nil ? "missing" : "empty"), and its log \(path)-wal is not")
    }

    private static func size(_ path: String) -> Int? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? Int(status.st_size) : nil
    }

    /// A further connection to a file that is there.
    static func open(_ path: String, mode: SQLiteDatabase.Mode, vfs: String?) throws(StoreError) -> SQLiteDatabase {
        let database = try self.explain(path) { () throws(SQLiteError) in
            let database = try SQLiteDatabase(path: path, mode: mode, vfs: vfs)
            try self.setUp(database)
            return database
        }
        try self.checkIdentity(database)
        return database
    }

    /// Syncs the folder `path` lies in.
    static func syncFolder(of path: String) throws(StoreError) {
        let end = path.lastIndex(of: "/")
        let folder = end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let descriptor = unsafe Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        let isSynced = descriptor >= 0 && fsync(descriptor) == 0
        let cause = isSynced ? "" : unsafe String(cString: strerror(errno))
        if descriptor >= 0 { close(descriptor) }
        guard isSynced else {
            throw StoreError(message: "The folder \(folder) cannot be synced (\(cause)). Check the disk it lies on.")
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

    private static func isEmpty(_ database: SQLiteDatabase) throws(SQLiteError) -> Bool {
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

    private static func checkIdentity(_ database: SQLiteDatabase) throws(StoreError) {
        let path = database.path
        let (id, format) = try self.explain(path) { () throws(SQLiteError) in
            (try database.integer("PRAGMA application_id"), try database.integer("PRAGMA user_version") ?? 0)
        }
        guard id == self.applicationID else { throw StoreError(foreign: path) }
        guard format <= self.format else {
            throw StoreError(
                message: "\(path) has format \(format), and this build reads formats up to \(self.format). Install "
                    + "the version of WakeGate that wrote it, or a newer one."
            )
        }
        guard format == self.format else { throw StoreError(damaged: path, "there is no format \(format)") }
        let mode = try self.explain(path) { () throws(SQLiteError) in try database.text("PRAGMA journal_mode") }
        guard mode == "wal" else {
            throw StoreError(
                message: "\(path) cannot have a write-ahead log (its mode is \(mode ?? "unknown")). Use a state "
                    + "folder on a local file system."
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

internal import CSQLite
import Glibc
import Platform
package import Wire

/// A connection to an SQLite file. One caller at a time may use it, on any thread.
@safe
package final class SQLiteDatabase {
    package enum Mode: Sendable {
        case readOnly, readWrite
        /// Read only the file itself, without its log and without locks, and create no other file. No process may write
        /// to the file at the same time.
        case fileAlone
        /// Read and write; creates the file if it does not exist.
        case create

        fileprivate var flags: Int32 {
            switch self {
            case .readOnly, .fileAlone: SQLITE_OPEN_READONLY
            case .readWrite: SQLITE_OPEN_READWRITE
            case .create: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            }
        }
    }

    /// The extent of a checkpoint.
    package enum Checkpoint: Sendable {
        /// Copies as many pages as possible without waiting.
        case passive
        /// Copies all pages and truncates the log. Fails with `busy` instead of waiting.
        case truncate
    }

    package let path: String
    private let connection: OpaquePointer
    /// The number of pages in the write-ahead log after the last commit of this connection.
    package fileprivate(set) var logPages = 0

    /// Opens the file.
    ///
    /// - `path`: the file, or ":memory:".
    /// - `vfs`: the name of the file system layer; nil for the default one.
    package init(path: String, mode: Mode, vfs: String? = nil) throws(SQLiteError) {
        self.path = path
        let uri = mode == .fileAlone ? SQLITE_OPEN_URI : 0
        let flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | mode.flags | uri
        var connection: OpaquePointer?
        let name = mode == .fileAlone ? Self.immutableURI(path) : path
        let code = unsafe sqlite3_open_v2(name, &connection, flags, vfs)
        guard code == SQLITE_OK, let opened = unsafe connection else {
            let error = unsafe SQLiteError(code, connection)
            unsafe sqlite3_close_v2(connection)
            throw error
        }
        unsafe self.connection = opened
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        // The hook replaces SQLite's automatic checkpoints, which would run inside commits.
        unsafe sqlite3_wal_hook(
            self.connection,
            { context, _, _, pages in
                guard let context = unsafe context else { return SQLITE_OK }
                unsafe Unmanaged<SQLiteDatabase>.fromOpaque(context).takeUnretainedValue().logPages = Int(pages)
                return SQLITE_OK
            },
            context
        )
    }

    deinit {
        unsafe sqlite3_close_v2(self.connection)
    }

    /// Returns a URI for the path that makes SQLite treat the file as immutable.
    private static func immutableURI(_ path: String) -> String {
        (path.utf8.first == UInt8(ascii: "/") ? "file://" : "file:") + FileSystem.percentEncoded(path) + "?immutable=1"
    }

    /// Runs one or more statements whose rows are ignored.
    package func execute(_ sql: String) throws(SQLiteError) {
        try unsafe self.check(sqlite3_exec(self.connection, sql, nil, nil, nil))
    }

    /// Returns the first column of the first row; nil if no row exists or the value is NULL.
    package func integer(_ sql: String) throws(SQLiteError) -> Int64? {
        let statement = try self.prepare(sql)
        return try statement.step() ? statement.integerOrNil(0) : nil
    }

    /// Returns the first column of the first row as text; nil if no row exists or the value is NULL.
    package func text(_ sql: String) throws(SQLiteError) -> String? {
        let statement = try self.prepare(sql)
        return try statement.step() ? statement.bytes(0).string : nil
    }

    /// Prepares a statement for repeated use. The statement must not outlive the connection.
    package func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
        var statement: OpaquePointer?
        try unsafe self.check(
            sqlite3_prepare_v3(self.connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        )
        guard let prepared = unsafe statement else {
            throw SQLiteError(kind: .other, message: "no statement in \"\(sql)\"")
        }
        return unsafe SQLiteStatement(prepared, of: self)
    }

    /// The row id of the last INSERT.
    package var lastInsertedRow: Int64 {
        unsafe sqlite3_last_insert_rowid(self.connection)
    }

    /// Copies pages of the write-ahead log into the file, and syncs both.
    ///
    /// - Returns: the number of pages in the log, and the number of these that are now in the file.
    package func checkpoint(_ mode: Checkpoint) throws(SQLiteError) -> (logPages: Int, copiedPages: Int) {
        var logPages: Int32 = 0
        var copiedPages: Int32 = 0
        let mode = mode == .passive ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE
        try unsafe self.check(
            sqlite3_wal_checkpoint_v2(self.connection, nil, mode, &logPages, &copiedPages)
        )
        return (Int(logPages), Int(copiedPages))
    }

    /// Syncs the database file, but not the write-ahead log.
    ///
    /// A passive checkpoint syncs the file only if no commit is made during it. Without this call, the first such
    /// checkpoint would have to sync the writes of all earlier checkpoints.
    package func syncFile() throws(SQLiteError) {
        try self.sync(SQLITE_FCNTL_FILE_POINTER)
    }

    /// Syncs the write-ahead log. All commits are then durable.
    package func syncLog() throws(SQLiteError) {
        try self.sync(SQLITE_FCNTL_JOURNAL_POINTER)
    }

    private func sync(_ operation: Int32) throws(SQLiteError) {
        guard let file = try unsafe self.file(operation), let methods = unsafe file.pointee.pMethods else { return }
        try unsafe self.check(methods.pointee.xSync(file, SQLITE_SYNC_NORMAL))
    }

    /// Returns the file that an operation of `sqlite3_file_control` names. It has no methods if it does not exist.
    private func file(_ operation: Int32) throws(SQLiteError) -> UnsafeMutablePointer<sqlite3_file>? {
        var file: UnsafeMutablePointer<sqlite3_file>?
        try unsafe self.check(sqlite3_file_control(self.connection, nil, operation, &file))
        return unsafe file
    }

    /// Makes the connection leave the write-ahead log unchanged when it closes. By default, the last connection copies
    /// it into the file.
    package func keepLogOnClose() throws(SQLiteError) {
        try unsafe self.check(wakegate_sqlite_keep_log_on_close(self.connection))
    }

    /// Makes the commits of earlier processes in the log durable, in a separate transaction. They are readable, but a
    /// power failure could lose them.
    package func syncRecoveredCommits() throws(SQLiteError) {
        try self.execute("BEGIN IMMEDIATE")
        do throws(SQLiteError) {
            _ = try self.integer("SELECT count(*) FROM sqlite_schema")
            try self.rewriteLog()
            try self.execute("COMMIT")
        } catch {
            try? self.execute("ROLLBACK")
            throw error
        }
    }

    /// Rewrites the valid part of the write-ahead log unchanged, and syncs it. The caller must be in a transaction that
    /// has read.
    ///
    /// After a failed sync, the kernel may treat pages as written although they are not on the disk. It treats
    /// rewritten pages as new writes. The next sync therefore writes them or fails.
    private func rewriteLog() throws(SQLiteError) {
        guard let file = try unsafe self.file(SQLITE_FCNTL_JOURNAL_POINTER),
            let methods = unsafe file.pointee.pMethods
        else { return }
        let headerBytes = 32
        var header = [UInt8](repeating: 0, count: headerBytes)
        guard try unsafe self.check(read: methods.pointee.xRead(file, &header, Int32(headerBytes), 0)) else { return }
        let pageBytes = header[8..<12].reduce(0) { $0 << 8 | Int($1) }
        guard 512...65536 ~= pageBytes else { return }
        var frame = [UInt8](repeating: 0, count: 24 + pageBytes)
        var offset = Int64(headerBytes)
        // A frame belongs to the log if it repeats the two salts of the log's header.
        while try unsafe self.check(read: methods.pointee.xRead(file, &frame, Int32(frame.count), offset)),
            frame[8..<16] == header[16..<24]
        {
            try unsafe self.check(methods.pointee.xWrite(file, frame, Int32(frame.count), offset))
            offset += Int64(frame.count)
        }
        try unsafe self.check(methods.pointee.xWrite(file, header, Int32(headerBytes), 0))
        try unsafe self.check(methods.pointee.xSync(file, SQLITE_SYNC_NORMAL))
    }

    /// Checks the result of a read. Returns false at the end of the file.
    private func check(read code: Int32) throws(SQLiteError) -> Bool {
        // SQLITE_IOERR_SHORT_READ is a macro with an operator, which Swift does not import.
        if code == SQLITE_IOERR | (2 << 8) { return false }
        try self.check(code)
        return true
    }

    /// Copies the current state of the whole database into a new file. Other connections may write at the same time.
    package func backUp(to path: String) throws(SQLiteError) {
        let target = try SQLiteDatabase(path: path, mode: .create)
        guard let backup = unsafe sqlite3_backup_init(target.connection, "main", self.connection, "main") else {
            throw unsafe SQLiteError(sqlite3_extended_errcode(target.connection), target.connection)
        }
        let code = unsafe sqlite3_backup_step(backup, -1)
        unsafe sqlite3_backup_finish(backup)
        guard code == SQLITE_DONE else { throw unsafe SQLiteError(code, target.connection) }
    }

    fileprivate func check(_ code: Int32) throws(SQLiteError) {
        guard code == SQLITE_OK else { throw unsafe SQLiteError(code, self.connection) }
    }

    fileprivate func error(_ code: Int32) -> SQLiteError {
        unsafe SQLiteError(code, self.connection)
    }
}

/// A prepared statement. Parameters are numbered from 1, columns from 0.
@safe
package final class SQLiteStatement {
    private let statement: OpaquePointer
    private let database: SQLiteDatabase

    fileprivate init(_ statement: OpaquePointer, of database: SQLiteDatabase) {
        unsafe self.statement = statement
        self.database = database
    }

    deinit {
        unsafe sqlite3_finalize(self.statement)
    }

    package func bind(_ parameter: Int, _ value: Int64) throws(SQLiteError) {
        try unsafe self.database.check(sqlite3_bind_int64(self.statement, Int32(parameter), value))
    }

    /// Binds a blob. Its bytes must not change until the statement is reset.
    package func bind(_ parameter: Int, _ bytes: ByteView) throws(SQLiteError) {
        if bytes.isEmpty {
            try unsafe self.database.check(sqlite3_bind_zeroblob(self.statement, Int32(parameter), 0))
        } else {
            let base = unsafe bytes.buffer.baseAddress
            try unsafe self.database.check(
                sqlite3_bind_blob64(self.statement, Int32(parameter), base, UInt64(bytes.count), nil)
            )
        }
    }

    /// Advances to the next row.
    ///
    /// - Returns: false if there are no more rows. A statement that changes data is then complete.
    package func step() throws(SQLiteError) -> Bool {
        let code = unsafe sqlite3_step(self.statement)
        switch code {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw self.database.error(code)
        }
    }

    /// Prepares the statement to run again, and removes its bindings.
    package func reset() {
        unsafe sqlite3_reset(self.statement)
        unsafe sqlite3_clear_bindings(self.statement)
    }

    /// Runs the statement to its end and ignores its rows. Always resets the statement.
    package func run() throws(SQLiteError) {
        defer { self.reset() }
        while try self.step() {}
    }

    package func integer(_ column: Int) -> Int64 {
        unsafe sqlite3_column_int64(self.statement, Int32(column))
    }

    package func integerOrNil(_ column: Int) -> Int64? {
        let isNull = unsafe sqlite3_column_type(self.statement, Int32(column)) == SQLITE_NULL
        return isNull ? nil : self.integer(column)
    }

    /// Returns the bytes of a blob or a text. They are valid until the next step or reset.
    package func bytes(_ column: Int) -> ByteView {
        let base = unsafe sqlite3_column_blob(self.statement, Int32(column))
        let count = unsafe Int(sqlite3_column_bytes(self.statement, Int32(column)))
        return unsafe ByteView(UnsafeRawBufferPointer(start: base, count: count))
    }
}

/// A file next to a database that is accessed through the same file system layer. One caller at a time may use it, on
/// any thread.
@safe
package final class SQLiteFile {
    private let file: UnsafeMutablePointer<sqlite3_file>

    /// Returns true if the file exists and is not empty.
    package static func exists(_ path: String, vfs: String? = nil) -> Bool {
        guard let layer = unsafe sqlite3_vfs_find(vfs) else { return false }
        var isThere: Int32 = 0
        let code = unsafe layer.pointee.xAccess(layer, path, SQLITE_ACCESS_EXISTS, &isThere)
        return code == SQLITE_OK && isThere != 0
    }

    /// Opens the file.
    ///
    /// - `path`: the absolute path, not a symbolic link.
    /// - `mode`: with `create`, the first sync also makes the file's name durable.
    package init(path: String, mode: SQLiteDatabase.Mode, vfs: String? = nil) throws(SQLiteError) {
        guard let layer = unsafe sqlite3_vfs_find(vfs) else {
            throw SQLiteError(kind: .other, message: "no file system layer \(vfs ?? "")")
        }
        let bytes = unsafe Int(layer.pointee.szOsFile)
        let memory = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 16)
        unsafe memory.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
        unsafe self.file = memory.assumingMemoryBound(to: sqlite3_file.self)
        // With this file type, SQLite's layers take no locks and do not copy permissions from another file.
        let flags = SQLITE_OPEN_SUPER_JOURNAL | mode.flags
        var opened: Int32 = 0
        let code = unsafe layer.pointee.xOpen(layer, path, self.file, flags, &opened)
        guard code == SQLITE_OK else { throw unsafe SQLiteError(code, layer) }
        // SQLite's Unix layer opens a file without write permission as read-only.
        guard flags & SQLITE_OPEN_READWRITE == 0 || opened & SQLITE_OPEN_READONLY == 0 else {
            throw SQLiteError(kind: .readOnly, message: "it may not be written")
        }
    }

    deinit {
        if let methods = unsafe self.file.pointee.pMethods { _ = unsafe methods.pointee.xClose(self.file) }
        unsafe UnsafeMutableRawPointer(self.file).deallocate()
    }

    package func size() throws(SQLiteError) -> Int {
        var bytes: Int64 = 0
        try unsafe self.check(self.file.pointee.pMethods.pointee.xFileSize(self.file, &bytes))
        return Int(bytes)
    }

    /// Returns `count` bytes from `offset` on. Bytes beyond the file's end are zero.
    package func read(_ count: Int, at offset: Int) throws(SQLiteError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let code = unsafe self.file.pointee.pMethods.pointee.xRead(self.file, &bytes, Int32(count), Int64(offset))
        guard code != SQLITE_IOERR | (2 << 8) else { return bytes }
        try self.check(code)
        return bytes
    }

    package func write(_ bytes: ByteView, at offset: Int) throws(SQLiteError) {
        let methods = unsafe self.file.pointee.pMethods
        try unsafe self.check(
            methods!.pointee.xWrite(self.file, bytes.buffer.baseAddress, Int32(bytes.count), Int64(offset))
        )
    }

    package func sync() throws(SQLiteError) {
        try unsafe self.check(self.file.pointee.pMethods.pointee.xSync(self.file, SQLITE_SYNC_NORMAL))
    }

    private func check(_ code: Int32) throws(SQLiteError) {
        guard code == SQLITE_OK else { throw unsafe SQLiteError(code, nil as UnsafeMutablePointer<sqlite3_vfs>?) }
    }
}

extension SQLiteError {
    /// Creates the error of a file system layer, with the operating system's cause if `layer` provides it.
    fileprivate init(_ code: Int32, _ layer: UnsafeMutablePointer<sqlite3_vfs>?) {
        let plain = unsafe SQLiteError(code, nil as OpaquePointer?)
        var message = plain.message
        let cause = unsafe layer.map { unsafe $0.pointee.xGetLastError($0, 0, nil) } ?? 0
        if cause != 0 { message += unsafe " (\(String(cString: strerror(cause))))" }
        self.init(kind: plain.kind, message: message)
    }

    fileprivate init(_ code: Int32, _ connection: OpaquePointer?) {
        var kind: Kind
        switch code & 0xFF {
        case SQLITE_FULL: kind = .full
        case SQLITE_READONLY, SQLITE_PERM: kind = .readOnly
        case SQLITE_CANTOPEN: kind = .cannotOpen
        case SQLITE_NOTADB: kind = .notDatabase
        case SQLITE_CORRUPT: kind = .corrupt
        case SQLITE_BUSY, SQLITE_LOCKED: kind = .busy
        case SQLITE_IOERR: kind = .io
        case SQLITE_ERROR where code == SQLITE_ERROR: kind = .content
        default: kind = .other
        }
        var message = unsafe connection.flatMap { unsafe sqlite3_errmsg($0) }.map { unsafe String(cString: $0) } ?? ""
        if message.isEmpty || message == "not an error" { message = unsafe String(cString: sqlite3_errstr(code)) }
        let cause = unsafe connection.map { unsafe sqlite3_system_errno($0) } ?? 0
        if cause == EFBIG, kind == .io || kind == .full { kind = .tooLarge }
        if cause == ENOSPC || cause == EDQUOT, kind == .io { kind = .full }
        if cause != 0 { message += unsafe " (\(String(cString: strerror(cause))))" }
        self.init(kind: kind, message: message)
    }
}

/// An error of SQLite.
package struct SQLiteError: Error, Hashable, Sendable {
    /// The kinds of failure that callers distinguish.
    package enum Kind: Hashable, Sendable {
        /// The disk or the process's quota is full.
        case full
        /// The file would exceed the process's limit of file sizes.
        case tooLarge
        /// The file or its folder is not writable.
        case readOnly
        /// The file cannot be opened.
        case cannotOpen
        /// The file is not an SQLite database.
        case notDatabase
        /// The file is damaged.
        case corrupt
        /// The file's content does not fit, such as a missing table.
        case content
        /// Another connection holds a lock.
        case busy
        /// Reading, writing or syncing failed.
        case io
        case other
    }

    package let kind: Kind
    /// The messages of SQLite and the operating system, as a clause without a period.
    package let message: String

    package init(kind: Kind, message: String) {
        self.kind = kind
        self.message = message
    }
}

package import Engine
import Glibc
import Platform
package import Storage
import Wire

/// A change of the stored state.
package enum StoreWrite: Sendable {
    case putSession(Int32, [UInt8])
    case deleteSession(Int32)
    case insertTransfer(Transfer, TransferSpec, TransferDetails)
    /// An update of a transfer. Without new data, the stored data remains unchanged.
    case updateTransfer(Transfer, TransferDetails?)
    case changeSpec(sequence: Int64, TransferSpec)
    case deleteTransfer(sequence: Int64)
    case putOutbox(OutboxEntry)
    case deleteOutbox(sequence: Int64)
    case putResumablePart(ResumablePart)
    case deleteResumablePart(file: String)
    /// The state of the clocks.
    case putClock(ClockRecord)
}

extension StoreWrite {
    /// True if the change deletes values that may be secrets: the header fields and URLs of requests.
    package var deletesSecrets: Bool {
        switch self {
        case .changeSpec, .deleteTransfer, .deleteResumablePart: true
        case .putSession, .deleteSession, .insertTransfer, .updateTransfer, .putOutbox, .deleteOutbox,
            .putResumablePart,
            .putClock:
            false
        }
    }
}

/// The received bytes of a cancelled download. They are kept for a later download of the same URL.
package struct ResumablePart: Hashable, Sendable {
    package let session: Int32
    package let url: String
    package let part: PartFile
    package let keptAt: Int64

    package init(session: Int32, url: String, part: PartFile, keptAt: Int64) {
        self.session = session
        self.url = url
        self.part = part
        self.keptAt = keptAt
    }
}

/// The durable state of an agent, in SQLite. A commit is durable when it returns.
package final class TransferStore {
    /// The version of the tables.
    private static let version: Int64 = 1

    private static let tables = """
        CREATE TABLE sessions (number INTEGER PRIMARY KEY, facts BLOB NOT NULL) STRICT;
        CREATE TABLE transfers (
            sequence INTEGER PRIMARY KEY, first INTEGER NOT NULL, second INTEGER NOT NULL, session INTEGER NOT NULL,
            kind INTEGER NOT NULL, host BLOB NOT NULL, createdAt INTEGER NOT NULL, deadline INTEGER NOT NULL,
            state INTEGER NOT NULL, notBefore INTEGER NOT NULL, backsOff INTEGER NOT NULL, attempts INTEGER NOT NULL,
            failures INTEGER NOT NULL, bytes INTEGER NOT NULL, total INTEGER NOT NULL, status INTEGER NOT NULL,
            endedAt INTEGER NOT NULL, taken INTEGER NOT NULL, hasFile INTEGER NOT NULL, spec BLOB NOT NULL,
            facts BLOB NOT NULL) STRICT;
        CREATE INDEX transfersOfSession ON transfers (session, sequence);
        CREATE TABLE outbox (sequence INTEGER PRIMARY KEY, facts BLOB NOT NULL) STRICT;
        CREATE TABLE kept (file BLOB PRIMARY KEY, session INTEGER NOT NULL, url BLOB NOT NULL, keptAt INTEGER NOT NULL,
            facts BLOB NOT NULL) STRICT, WITHOUT ROWID;
        """

    /// The tables that files from earlier builds do not have.
    private static let addedTables =
        "CREATE TABLE IF NOT EXISTS clock (one INTEGER PRIMARY KEY, facts BLOB NOT NULL) STRICT;"

    private static let insert =
        "INSERT INTO transfers VALUES (\(Array(repeating: "?", count: 21).joined(separator: ", ")))"
    private static let set = """
        UPDATE transfers SET state = ?2, notBefore = ?3, backsOff = ?4, attempts = ?5, failures = ?6, bytes = ?7,
        total = ?8, status = ?9, endedAt = ?10, taken = ?11, deadline = ?12
        """
    private static let update = "\(set) WHERE sequence = ?1"
    private static let updateDetails = "\(set), hasFile = ?13, facts = ?14 WHERE sequence = ?1"

    private let database: SQLiteDatabase
    private let reserve: CommitReserve?
    /// The statements that were used before, by their text.
    private var statements: [String: SQLiteStatement] = [:]

    /// - Parameters:
    ///   - path: the path of the database.
    ///   - hasTransferFiles: true if the state folder has files of transfers. A missing database is then an error.
    ///   - reserve: the space that is released when the disk is full; nil for none.
    ///   - vfs: the name of SQLite's file system layer; nil for the default one.
    ///   - syncFolder: syncs a folder; nil for the default implementation.
    package init(
        path: String,
        hasTransferFiles: Bool = false,
        reserve: CommitReserve? = nil,
        vfs: String? = nil,
        syncFolder: ((String) throws(SQLiteError) -> Void)? = nil
    ) throws(SQLiteError) {
        reserve?.releaseIfDiskIsFull()
        let database = try SQLiteDatabase(path: path, mode: .create, vfs: vfs)
        // Each commit is durable before it returns. A power failure therefore loses no state that was reported.
        try database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -2048;")
        // Secrets of ended transfers must not remain in the file.
        try database.execute("PRAGMA secure_delete = ON;")
        let found = try database.integer("PRAGMA user_version") ?? 0
        if found == 0, hasTransferFiles {
            let message =
                "it is new, and there are files of transfers that it does not know: put the one back that "
                + "knew them, or move the files away"
            throw SQLiteError(kind: .other, message: message)
        } else if found == 0 {
            try database.execute("BEGIN IMMEDIATE; \(Self.tables) PRAGMA user_version = \(Self.version); COMMIT;")
        } else if found != Self.version {
            let message = "\(path) was written by another version (\(found)); run that, or name another state folder"
            throw SQLiteError(kind: .other, message: message)
        }
        try database.execute(Self.addedTables)
        let slash = path.lastIndex(of: "/")
        let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        if let syncFolder { try syncFolder(folder) } else { try Self.sync(folder) }
        try database.syncRecoveredCommits()
        reserve?.allocate()
        self.database = database
        self.reserve = reserve
    }

    /// Syncs the folder of the files. SQLite syncs it when it creates a file, but an earlier process may have died
    /// before that sync.
    private static func sync(_ folder: String) throws(SQLiteError) {
        do throws(SystemError) {
            try FileSystem.syncFolderIfPossible(folder)
        } catch {
            throw SQLiteError(kind: .io, message: "\(folder) cannot be synced (\(error.message))")
        }
    }

    /// Stores all writes atomically. If the disk is full, releases the reserve and tries again.
    package func commit(_ writes: [StoreWrite]) throws(SQLiteError) {
        guard !writes.isEmpty else { return }
        do throws(SQLiteError) {
            try self.store(writes)
        } catch {
            guard error.kind == .full, self.reserve?.release() == true else { throw error }
            try self.store(writes)
        }
        self.reserve?.allocate()
        if self.database.logPages > Self.logPagesMax { _ = try? self.database.checkpoint(.passive) }
    }

    private func store(_ writes: [StoreWrite]) throws(SQLiteError) {
        try self.database.execute("BEGIN IMMEDIATE")
        do throws(SQLiteError) {
            for write in writes { try self.perform(write) }
            try self.database.execute("COMMIT")
        } catch {
            try? self.database.execute("ROLLBACK")
            throw error
        }
    }

    /// Copies the log into the database file and truncates the log. After that, neither file contains deleted values.
    ///
    /// - Returns: false if this failed, for example because the disk is full.
    package func truncateLog() -> Bool {
        (try? self.database.checkpoint(.truncate)) != nil
    }

    /// The number of log pages after which a commit copies them into the database file.
    private static let logPagesMax = 1000

    private func perform(_ write: StoreWrite) throws(SQLiteError) {
        switch write {
        case .putSession(let number, let details):
            try self.run("INSERT OR REPLACE INTO sessions VALUES (?, ?)", [Int64(number)], [2: details])
        case .deleteSession(let number): try self.run("DELETE FROM sessions WHERE number = ?", [Int64(number)])
        case .insertTransfer(let transfer, let spec, let details):
            let storedState = transfer.storedState
            try self.run(
                Self.insert,
                [
                    transfer.sequence, Int64(bitPattern: transfer.id.first), Int64(bitPattern: transfer.id.second),
                    Int64(transfer.session), Int64(transfer.kind.rawValue), 0, transfer.createdAt, transfer.deadline,
                ] + Self.columns(storedState) + [details.part == nil ? 0 : 1],
                [6: Array(transfer.host.utf8), 20: spec.stored, 21: details.stored]
            )
        case .updateTransfer(let transfer, let details):
            let values = [transfer.sequence] + Self.columns(transfer.storedState) + [transfer.deadline]
            if let details {
                let hasFile: Int64 = details.part == nil ? 0 : 1
                try self.run(Self.updateDetails, values + [hasFile], [14: details.stored])
            } else {
                try self.run(Self.update, values)
            }
        case .changeSpec(let sequence, let spec):
            try self.run("UPDATE transfers SET spec = ?2 WHERE sequence = ?1", [sequence], [2: spec.stored])
        case .deleteTransfer(let sequence): try self.run("DELETE FROM transfers WHERE sequence = ?", [sequence])
        case .putOutbox(let entry):
            try self.run("INSERT OR REPLACE INTO outbox VALUES (?, ?)", [entry.sequence], [2: entry.stored])
        case .deleteOutbox(let sequence): try self.run("DELETE FROM outbox WHERE sequence = ?", [sequence])
        case .putResumablePart(let resumable):
            var details = TransferDetails()
            details.part = resumable.part
            try self.run(
                "INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?)",
                [0, Int64(resumable.session), 0, resumable.keptAt],
                [1: Array(resumable.part.file.utf8), 3: Array(resumable.url.utf8), 5: details.stored]
            )
        case .deleteResumablePart(let file):
            try self.run("DELETE FROM kept WHERE file = ?", [0], [1: Array(file.utf8)])
        case .putClock(let record):
            var buffer = ByteBuffer()
            record.store(to: &buffer)
            try self.run("INSERT OR REPLACE INTO clock VALUES (1, ?1)", [], [1: buffer.view.array])
        }
    }

    private static func columns(_ storedState: Transfer.StoredState) -> [Int64] {
        [
            Int64(storedState.state.rawValue), storedState.notBefore, storedState.isBackingOff ? 1 : 0,
            Int64(storedState.attempts),
            Int64(storedState.failures), storedState.bytes, storedState.total, Int64(storedState.status),
            storedState.endedAt,
            storedState.isTaken ? 1 : 0,
        ]
    }

    /// Returns the statement with a text, which is prepared once.
    private func statement(_ text: String) throws(SQLiteError) -> SQLiteStatement {
        if let statement = self.statements[text] { return statement }
        let statement = try self.database.prepare(text)
        self.statements[text] = statement
        return statement
    }

    /// Runs a statement. The numbers are its parameters in order; blobs replace the numbers at their positions.
    private func run(_ text: String, _ numbers: [Int64], _ blobs: [Int: [UInt8]] = [:]) throws(SQLiteError) {
        let statement = try self.statement(text)
        for (index, number) in numbers.enumerated() where blobs[index + 1] == nil {
            try statement.bind(index + 1, number)
        }
        try Self.bind(statement, blobs.sorted { $0.key < $1.key }[...])
    }

    /// Binds the blobs and runs the statement. Recursion keeps all blobs valid while the statement runs.
    private static func bind(
        _ statement: SQLiteStatement,
        _ blobs: ArraySlice<(key: Int, value: [UInt8])>
    ) throws(SQLiteError) {
        guard let first = blobs.first else { return try statement.run() }
        let result: Result<Void, SQLiteError> = first.value.withByteView { view in
            do throws(SQLiteError) {
                try statement.bind(first.key, view)
                try self.bind(statement, blobs.dropFirst())
                return .success(())
            } catch {
                statement.reset()
                return .failure(error)
            }
        }
        try result.get()
    }

    // MARK: Reading

    /// Returns the specification and the further data of a transfer; nil if the transfer does not exist.
    package func record(_ sequence: Int64) throws(SQLiteError) -> (spec: TransferSpec, details: TransferDetails)? {
        let row = try self.statement("SELECT spec, facts FROM transfers WHERE sequence = ?")
        defer { row.reset() }
        try row.bind(1, sequence)
        guard try row.step() else { return nil }
        // If one of the two values is malformed, still return the other, which may name a file.
        let spec = TransferSpec(stored: row.bytes(0).array) ?? TransferSpec(url: "")
        return (spec, TransferDetails(stored: row.bytes(1).array) ?? TransferDetails())
    }

    /// Passes the transfers of a session after `sequence` to `take`, in order, until `take` returns false.
    package func list(
        session: Int32,
        after sequence: Int64,
        _ take: (TransferID) -> Bool
    ) throws(SQLiteError) {
        let rows = try self.statement(
            "SELECT first, second FROM transfers WHERE session = ? AND sequence > ? ORDER BY sequence"
        )
        defer { rows.reset() }
        try rows.bind(1, Int64(session))
        try rows.bind(2, sequence)
        while try rows.step() {
            let bits = (UInt64(bitPattern: rows.integer(0)), UInt64(bitPattern: rows.integer(1)))
            guard take(TransferID(bits)) else { return }
        }
    }

    package func sessions(_ take: (Int32, [UInt8]) -> Void) throws(SQLiteError) {
        let rows = try self.database.prepare("SELECT number, facts FROM sessions ORDER BY number")
        while try rows.step() { take(Int32(truncatingIfNeeded: rows.integer(0)), rows.bytes(1).array) }
    }

    /// - `unreadable`: called for each damaged row.
    package func outbox(_ unreadable: () -> Void = {}) throws(SQLiteError) -> [OutboxEntry] {
        let rows = try self.database.prepare("SELECT sequence, facts FROM outbox ORDER BY sequence")
        var entries: [OutboxEntry] = []
        while try rows.step() {
            if let entry = OutboxEntry(sequence: rows.integer(0), stored: rows.bytes(1).array) {
                entries.append(entry)
            } else {
                unreadable()
            }
        }
        return entries
    }

    /// Returns the clocks of the last commit; nil before the first commit.
    package func clock() throws(SQLiteError) -> ClockRecord? {
        let rows = try self.database.prepare("SELECT facts FROM clock")
        guard try rows.step() else { return nil }
        return ClockRecord(stored: rows.bytes(0))
    }

    /// - `unreadable`: called with the file's name for each row whose other values are damaged.
    package func resumableParts(_ unreadable: (String) -> Void = { _ in }) throws(SQLiteError) -> [ResumablePart] {
        let rows = try self.database.prepare("SELECT session, url, keptAt, facts, file FROM kept")
        var parts: [ResumablePart] = []
        while try rows.step() {
            guard let part = TransferDetails(stored: rows.bytes(3).array)?.part else {
                unreadable(rows.bytes(4).string)
                continue
            }
            let session = Int32(truncatingIfNeeded: rows.integer(0))
            parts.append(
                ResumablePart(session: session, url: rows.bytes(1).string, part: part, keptAt: rows.integer(2))
            )
        }
        return parts
    }

    /// A stored transfer.
    package struct Stored {
        package let transfer: Transfer
        /// The further data of the transfer; nil if the transfer does not have a file in the state folder or the data
        /// is damaged.
        package let details: TransferDetails?
        /// True if the transfer has a file in the state folder but its further data is damaged.
        package let isUnreadable: Bool
    }

    /// Passes all transfers to `take`, in order.
    package func transfers(_ take: (Stored) -> Void) throws(SQLiteError) {
        let rows = try self.database.prepare(
            """
            SELECT sequence, first, second, session, kind, host, createdAt, deadline, state, notBefore, backsOff,
            attempts, failures, bytes, total, status, endedAt, taken, CASE WHEN hasFile THEN facts END, hasFile
            FROM transfers ORDER BY sequence
            """
        )
        while try rows.step() {
            var transfer = Transfer(
                id: TransferID((UInt64(bitPattern: rows.integer(1)), UInt64(bitPattern: rows.integer(2)))),
                sequence: rows.integer(0),
                session: Int32(truncatingIfNeeded: rows.integer(3)),
                host: rows.bytes(5).string,
                kind: TransferKind(rawValue: UInt8(truncatingIfNeeded: rows.integer(4))) ?? .download,
                createdAt: rows.integer(6),
                deadline: rows.integer(7),
                notBefore: rows.integer(9)
            )
            transfer.restore(
                Transfer.StoredState(
                    state: TransferState(rawValue: UInt8(truncatingIfNeeded: rows.integer(8))) ?? .failed,
                    notBefore: rows.integer(9),
                    isBackingOff: rows.integer(10) != 0,
                    attempts: Int32(truncatingIfNeeded: rows.integer(11)),
                    failures: Int32(truncatingIfNeeded: rows.integer(12)),
                    bytes: rows.integer(13),
                    total: rows.integer(14),
                    status: Int32(truncatingIfNeeded: rows.integer(15)),
                    endedAt: rows.integer(16),
                    isTaken: rows.integer(17) == 1
                )
            )
            let details = rows.bytes(18)
            let read = details.isEmpty ? nil : TransferDetails(stored: details.array)
            let isUnreadable = rows.integer(19) != 0 && read?.part == nil
            take(Stored(transfer: transfer, details: read, isUnreadable: isUnreadable))
        }
    }
}

/// Reserved space for the agent's commits: a preallocated file that is truncated when the disk is full.
///
/// Without this reserve, a full disk would remain full, because removing downloads requires a commit.
package final class CommitReserve {
    private let path: String
    private let freeBytes: () -> Int64
    private var isAllocated = false

    /// The size of the file, in bytes. Recording the failure of 64 running transfers takes a fifth of this.
    package static let bytes = 4 << 20

    /// - Parameters:
    ///   - path: the path of the file.
    ///   - freeBytes: returns the number of free bytes in the file system; nil to query the system.
    package init(path: String, freeBytes: (() -> Int64)? = nil) {
        self.path = path
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        self.freeBytes = freeBytes ?? { (try? FileSystem.freeBytes(at: folder)) ?? 0 }
        self.isAllocated = (try? FileSystem.linkStatus(path)).map { $0.kind == .file && $0.size >= Self.bytes } ?? false
    }

    /// Reserves the space again if the disk has at least twice as much free space.
    func allocate() {
        guard !self.isAllocated, self.freeBytes() >= 2 * Int64(Self.bytes), let file = self.open() else { return }
        do throws(SystemError) {
            try file.allocate(Self.bytes)
            self.isAllocated = true
        } catch {
            try? file.truncate(to: 0)
        }
    }

    /// Releases the space.
    ///
    /// - Returns: false if no space was reserved.
    func release() -> Bool {
        guard self.isAllocated, let file = self.open(), (try? file.truncate(to: 0)) != nil else { return false }
        self.isAllocated = false
        return true
    }

    /// Releases the space at a start if the disk has too little free space for it.
    func releaseIfDiskIsFull() {
        if self.freeBytes() < Int64(Self.bytes) { _ = self.release() }
    }

    private func open() -> OpenFile? {
        try? OpenFile(self.path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode: 0o600)
    }
}

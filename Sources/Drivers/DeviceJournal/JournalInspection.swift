import Bytes
import DeviceEngine
import SQLite

/// What a start finds of a journal before it writes anything.
enum JournalInspection {
    /// Nothing was ever committed, or what was is given up: the journal is to be made.
    case new(JournalLoss?)
    case found(FoundJournal, SQLiteDatabase)

    /// Reads what is there, and compares it with the mark; no file is changed or made but the memory that connections
    /// share.
    ///
    /// - Parameters:
    ///   - acceptsLoss: what was committed last may be missing.
    ///   - isAlone: no other process has the journal open; without this the log is not looked into by itself.
    /// - Throws: `StoreError` when the journal is another program's, of a newer format or damaged, or lacks what was
    ///   committed.
    static func of(
        _ place: JournalPlace,
        acceptsLoss: Bool,
        isAlone: Bool = true
    ) throws(StoreError) -> JournalInspection {
        // The mark first: while another process commits, a mark that is read later would be ahead of what is read.
        let mark = try JournalMarkFile.read(place)
        let file = place.size(place.path)
        if let file, 1..<512 ~= file { throw StoreError(damaged: place.path, "it is cut off after \(file) bytes") }
        let isLogEmpty = (place.size(place.logPath) ?? 0) == 0
        guard let file, file > 0 else {
            let log = isLogEmpty ? "" : ", and its log \(place.logPath) is not"
            let fault = "it is \(file == nil ? "missing" : "empty")\(log)"
            // The log of a journal that is new is made after the file.
            let isLost = !isLogEmpty || mark == nil && file != nil
            return .new(try Self.loss(place, mark, fault, isLost: isLost, acceptsLoss))
        }
        // What was cut off while SQLite made the file is taken back when the file is opened for writing.
        let isBeingMade = (place.size(place.rollbackPath) ?? 0) > 0 && (mark?.row ?? 0) == 0
        if isBeingMade, !isAlone { return .new(nil) }
        let mode: SQLiteDatabase.Mode = isBeingMade ? .readWrite : isLogEmpty ? .fileAlone : .readOnly
        let database = try JournalFile.connect(place, mode)
        if try JournalFile.explain(place.path, { () throws(SQLiteError) in try JournalFile.isEmpty(database) }) {
            let isLogDamaged = place.vfs == nil && JournalLog.unreadableCommits(place.logPath) > 1
            let isLost = mark == nil && !isBeingMade || isLogDamaged
            let log = isLogEmpty ? "missing or empty" : "damaged"
            let fault = "it holds nothing, and its log, \(place.logPath), is \(log)"
            return .new(try Self.loss(place, mark, fault, isLost: isLost, acceptsLoss))
        }
        let comparison = try JournalComparison(database, place, mark, isLogEmpty: isLogEmpty)
        let loss = try comparison.missing(isAlone: isAlone)
        if let loss, !acceptsLoss { throw loss.refusal(place.path) }
        let found = FoundJournal(format: comparison.format, newest: comparison.newest, mark: mark, loss: loss)
        return .found(found, database)
    }

    /// What is lost with a journal that holds nothing; nil when it never held anything.
    private static func loss(
        _ place: JournalPlace,
        _ mark: JournalMark?,
        _ fault: String,
        isLost: Bool,
        _ acceptsLoss: Bool
    ) throws(StoreError) -> JournalLoss? {
        var loss = isLost ? JournalLoss(fault) : nil
        if let mark, mark.row > 0 { loss = JournalLoss(fault, mark: mark, newest: nil) }
        if let loss, !acceptsLoss { throw loss.refusal(place.path) }
        return loss
    }
}

/// A journal that is there.
struct FoundJournal {
    let format: Int64
    /// Nil when there is no row.
    let newest: JournalPosition?
    let mark: JournalMark?
    /// What is given up.
    let loss: JournalLoss?
}

/// A journal beside its mark, on a connection that writes nothing.
private struct JournalComparison {
    let format: Int64
    /// Nil when there is no row.
    let newest: JournalPosition?
    private let database: SQLiteDatabase
    private let place: JournalPlace
    private let mark: JournalMark?
    private let isLogEmpty: Bool

    init(
        _ database: SQLiteDatabase,
        _ place: JournalPlace,
        _ mark: JournalMark?,
        isLogEmpty: Bool
    ) throws(StoreError) {
        self.database = database
        self.place = place
        self.mark = mark
        self.isLogEmpty = isLogEmpty
        // Until the connection is closed, it sees the journal as it is at its first question.
        try JournalFile.explain(place.path) { () throws(SQLiteError) in try database.execute("BEGIN") }
        self.format = try JournalFile.checkIdentity(database)
        self.newest = try JournalPosition.newest(database)
    }

    /// What the journal lacks of what was committed; nil when nothing is known to be missing.
    ///
    /// - Throws: when it holds what no loss explains.
    func missing(isAlone: Bool) throws(StoreError) -> JournalLoss? {
        let markPath = self.place.markPath
        let looksIntoLog = isAlone && !self.isLogEmpty
        if looksIntoLog { try self.checkLogAge() }
        guard let mark else {
            if self.format > 1 { return JournalLoss("its mark, \(markPath), is missing or damaged") }
            if self.newest == nil, self.isLogEmpty {
                return JournalLoss("it holds no rows, and its log, \(self.place.logPath), is missing or empty")
            }
            return self.missingInLog(looksIntoLog)
        }
        let row = self.newest?.row ?? 0
        guard row >= mark.row else {
            let log = "\(self.place.logPath)\(self.isLogEmpty ? ", which is missing or empty" : "")"
            return JournalLoss("it and its log, \(log), lack what was committed last", mark: mark, newest: self.newest)
        }
        let noted = try JournalFile.explain(self.place.path) { () throws(SQLiteError) in
            try self.database.integer("SELECT checksum FROM rows WHERE id = \(mark.row)")
        }
        let isAnother = "\(markPath) is the mark of another journal, or of another past of this one"
        if let noted, noted != mark.checksum { return JournalLoss(isAnother) }
        guard row > mark.row, self.format > 1, let newest else { return self.missingInLog(looksIntoLog) }
        guard newest.stamp.journal == mark.journal else { return JournalLoss(isAnother) }
        if self.isLogEmpty {
            return JournalLoss("its mark is older than it is, and its log, \(self.place.logPath), is missing or empty")
        }
        return self.missingInLog(looksIntoLog)
    }

    private func missingInLog(_ looksIntoLog: Bool) -> JournalLoss? {
        guard self.place.vfs == nil, looksIntoLog else { return nil }
        let commits = JournalLog.unreadableCommits(self.place.logPath)
        guard commits > 1 else { return nil }
        return JournalLoss("\(commits) commits in its log, \(self.place.logPath), cannot be read any more")
    }

    /// Refuses a log that is older than the file, which SQLite would lay over newer pages.
    private func checkLogAge() throws(StoreError) {
        // The pages of the file alone need not fit together: between two checkpoints that is no fault.
        guard let file = try? SQLiteDatabase(path: self.place.path, mode: .fileAlone, vfs: self.place.vfs),
            let row = try? file.integer("SELECT max(id) FROM rows"), row > self.newest?.row ?? 0
        else { return }
        throw StoreError(
            damaged: self.place.path,
            "it holds row \(row), and with its log, \(self.place.logPath), no row after \(self.newest?.row ?? 0): the "
                + "log is older than the file, or damaged"
        )
    }
}

extension JournalPosition {
    /// The newest row; nil when there is none.
    static func newest(_ database: SQLiteDatabase) throws(StoreError) -> JournalPosition? {
        let (row, checksum, stamp) = try JournalFile.explain(database.path) {
            () throws(SQLiteError) -> (Int64, Int64, JournalRow.Stamp?) in
            let statement = try database.prepare("SELECT id, checksum, content FROM rows ORDER BY id DESC LIMIT 1")
            guard try statement.step() else { return (0, 0, JournalRow.Stamp()) }
            let (row, checksum, content) = (statement.integer(0), statement.integer(1), statement.bytes(2))
            if let fault = JournalRow.fault(content, checksum: checksum, row: row) {
                throw SQLiteError(kind: .corrupt, code: 0, message: fault)
            }
            return (row, checksum, JournalRow.stamp(of: content))
        }
        guard row != 0, let stamp else { return nil }
        return JournalPosition(row: row, checksum: checksum, stamp: stamp)
    }
}

import Engine
import Wire

/// What a start finds of a journal before it writes anything.
enum JournalInspection {
    /// Nothing was ever committed, or what was is given up: the journal is to be made.
    case new(StoreLoss?)
    case found(FoundJournal)

    /// Whether there is no row to be read.
    var isEmpty: Bool {
        switch self {
        case .new: true
        case .found(let journal): journal.newest == nil
        }
    }

    /// What is given up.
    var loss: StoreLoss? {
        switch self {
        case .new(let loss): loss
        case .found(let journal): journal.loss
        }
    }

    /// What begins on it goes on beside another journal.
    var beginsAnother: Bool {
        switch self {
        case .new(let loss): loss != nil
        case .found(let journal): journal.isCopy || journal.loss != nil
        }
    }

    /// Reads what is there, and compares it with the mark; no file is changed or made but the memory that connections
    /// share.
    ///
    /// - Parameters:
    ///   - acceptsLoss: what was committed last may be missing.
    ///   - isAlone: no other process has the journal open; without this the log is not looked into by itself.
    /// - Returns: what there is, and the connection that has looked at it; nil for a journal that is to be made.
    /// - Throws: `StoreError` when the journal is another program's, of another format or damaged, or lacks what was
    ///   committed.
    static func of(
        _ place: JournalPlace,
        acceptsLoss: Bool,
        isAlone: Bool = true
    ) throws(StoreError) -> (found: JournalInspection, reader: SQLiteDatabase?) {
        // The mark first: while another process commits, a mark that is read later would be ahead of what is read.
        var mark = try JournalMarkFile.read(place)
        let file = place.size(place.path)
        if let file, 1..<512 ~= file { throw StoreError(damaged: place.path, "it is cut off after \(file) bytes") }
        let isLogEmpty = (place.size(place.logPath) ?? 0) == 0
        let follower = place.follower.flatMap { (place.size($0) ?? 0) > 0 ? $0 : nil }
        guard let file, file > 0 else {
            let log = isLogEmpty ? "" : ", and its log \(place.logPath) is not"
            let trace = follower.map { ", and \($0), which is written after it, is there" } ?? ""
            let fault = "it is \(file == nil ? "missing" : "empty")\(log)\(trace)"
            // The log of a journal that is new is made after the file.
            let isLost = !isLogEmpty || mark == nil && (file != nil || follower != nil)
            return (.new(try Self.loss(place, mark, fault, isLost: isLost, acceptsLoss)), nil)
        }
        if (place.size(place.rollbackPath) ?? 0) > 0 {
            guard file <= JournalFile.pageBytes, isLogEmpty else { throw StoreError(stray: place.rollbackPath) }
            // What was cut off while SQLite made the file, which it takes back when the file is opened for writing.
            let isLost = mark == nil && follower != nil
            return (.new(try Self.loss(place, mark, "it holds nothing", isLost: isLost, acceptsLoss)), nil)
        }
        if mark == nil, isLogEmpty, !acceptsLoss, let cut = JournalFile.cutClause(place) {
            throw StoreLoss(place, cut).refusal
        }
        let note = JournalNote.read(place)
        if let note {
            // Beside the note of a copy lies nothing, or the mark that the first start on it has just made.
            let isBegun = mark?.row == note.row && mark?.checksum == note.checksum
            guard isBegun || mark == nil && isLogEmpty else { throw StoreError(mixed: place) }
            mark = mark ?? note
        }
        let database = try JournalFile.connect(place, isLogEmpty ? .fileAlone : .readOnly)
        if try JournalFile.explain(place.path, { () throws(SQLiteError) in try JournalFile.isEmpty(database) }) {
            let isLogDamaged = place.vfs == nil && JournalLog.unreadableCommits(place.logPath) > 1
            let isLost = mark == nil || isLogDamaged
            let log = isLogEmpty ? "missing or empty" : "damaged"
            let fault = "it holds nothing, and its log, \(place.logPath), is \(log)"
            return (.new(try Self.loss(place, mark, fault, isLost: isLost, acceptsLoss)), nil)
        }
        let comparison = try JournalComparison(database, place, mark, isLogEmpty: isLogEmpty)
        let loss = try comparison.missing(isAlone: isAlone)
        if let loss, !acceptsLoss { throw loss.refusal }
        let found = FoundJournal(
            newest: comparison.newest,
            mark: mark,
            isCopy: note != nil,
            loss: loss
        )
        return (.found(found), database)
    }

    /// What is lost with a journal that holds nothing; nil when it never held anything.
    private static func loss(
        _ place: JournalPlace,
        _ mark: JournalMark?,
        _ fault: String,
        isLost: Bool,
        _ acceptsLoss: Bool
    ) throws(StoreError) -> StoreLoss? {
        var loss = isLost ? StoreLoss(place, fault) : nil
        if let mark, mark.row > 0 { loss = StoreLoss(place, fault, mark: mark, newest: nil) }
        if let loss, !acceptsLoss { throw loss.refusal }
        return loss
    }
}

/// A journal that is there.
struct FoundJournal {
    /// Nil when there is no row.
    let newest: JournalPosition?
    let mark: JournalMark?
    /// Whether it is a backup on which no start has begun.
    let isCopy: Bool
    /// What is given up.
    let loss: StoreLoss?
}

/// A journal beside its mark, on a connection that writes nothing.
private struct JournalComparison {
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
        try JournalFile.checkIdentity(database)
        self.newest = try JournalPosition.newest(database)
    }

    /// What the journal lacks of what was committed; nil when nothing is known to be missing.
    ///
    /// - Throws: when it holds what no loss explains.
    func missing(isAlone: Bool) throws(StoreError) -> StoreLoss? {
        let markPath = self.place.markPath
        let looksIntoLog = isAlone && !self.isLogEmpty
        if looksIntoLog { try self.checkLogAge() }
        guard let mark else {
            let cut = self.isLogEmpty ? JournalFile.cutClause(self.place) : nil
            return self.loss("\(cut.map { "\($0), and " } ?? "")its mark, \(markPath), is missing or damaged")
        }
        let row = self.newest?.row ?? 0
        let isLogOfAnother = looksIntoLog ? try self.isLogOfAnother(mark) : false
        guard row >= mark.row else {
            if isLogOfAnother {
                return self.loss("its log, \(self.place.logPath), and its mark, \(markPath), are of different journals")
            }
            let log = "\(self.place.logPath)\(self.isLogEmpty ? ", which is missing or empty" : "")"
            let fault = "it and its log, \(log), lack what was committed last"
            return StoreLoss(self.place, fault, mark: mark, newest: self.newest)
        }
        let noted = try JournalFile.explain(self.place.path) { () throws(SQLiteError) in
            try self.database.integer("SELECT checksum FROM rows WHERE id = \(mark.row)")
        }
        let isAnother = "\(markPath) is the mark of another journal, or of another past of this one"
        if let noted, noted != mark.checksum { return self.loss(isAnother) }
        guard row > mark.row, let newest else { return self.missingInLog(looksIntoLog) }
        guard newest.stamp.journal == mark.journal else { return self.loss(isAnother) }
        // Without a log, too, which a program may have copied into the file and removed: a process that dies leaves the
        // mark a commit behind at most, and what a loss of power leaves of it tells nothing of a log.
        return self.missingInLog(looksIntoLog)
    }

    private func loss(_ fault: String) -> StoreLoss { StoreLoss(self.place, fault) }

    /// Whether the newest row is in the log alone, and of another journal than the mark, and than the file's own rows.
    ///
    /// - Throws: when those are the mark's: then the log is what is another's, and nothing may come of it.
    private func isLogOfAnother(_ mark: JournalMark) throws(StoreError) -> Bool {
        guard let newest, newest.row != mark.row, let number = newest.stamp.journal,
            number != mark.journal
        else { return false }
        let own: JournalPosition?
        do throws(StoreError) {
            let file = try JournalFile.connect(self.place, .fileAlone)
            // As long as all lies in the log.
            let isEmpty = try JournalFile.explain(self.place.path) { () throws(SQLiteError) in
                try JournalFile.isEmpty(file)
            }
            own = isEmpty ? nil : try JournalPosition.newest(file)
        } catch {
            // Between two checkpoints the pages of the file alone need not fit together.
            return false
        }
        guard let own else { return true }
        guard own.row < newest.row, own.stamp.journal != number else { return false }
        if own.stamp.journal == mark.journal { throw StoreError(foreignLog: self.place) }
        return true
    }

    private func missingInLog(_ looksIntoLog: Bool) -> StoreLoss? {
        guard self.place.vfs == nil, looksIntoLog else { return nil }
        let commits = JournalLog.unreadableCommits(self.place.logPath)
        guard commits > 1 else { return nil }
        return self.loss("\(commits) commits in its log, \(self.place.logPath), cannot be read any more")
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

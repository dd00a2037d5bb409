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
        // It has lost the note that made it whole by itself.
        if mark == nil, isLogEmpty, let cut = JournalFile.cutClause(place) {
            throw StoreError(damaged: place.path, cut)
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
            let isLost = mark.map { JournalLog.newestCommit(place, of: $0.journal) > 0 } ?? true
            let log = isLogEmpty ? "missing or empty" : "damaged"
            let fault = "it holds nothing, and its log, \(place.logPath), is \(log)"
            return (.new(try Self.loss(place, mark, fault, isLost: isLost, acceptsLoss)), nil)
        }
        // Until the connection is closed, it sees the journal as it is at its first question.
        try JournalFile.explain(place.path) { () throws(SQLiteError) in try database.execute("BEGIN") }
        try JournalFile.checkIdentity(database)
        let newest = try JournalPosition.newest(database)
        var loss = try self.missing(database, place, mark, newest, isLogEmpty: isLogEmpty)
        if loss == nil, let mark, isAlone { loss = self.missingInLog(place, mark, newest) }
        if let loss, !acceptsLoss { throw loss.refusal }
        return (.found(FoundJournal(newest: newest, mark: mark, isCopy: note != nil, loss: loss)), database)
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

    /// What the journal lacks of what its mark knows; nil when nothing is known to be missing.
    ///
    /// - Throws: when it is not the mark's.
    private static func missing(
        _ database: SQLiteDatabase,
        _ place: JournalPlace,
        _ mark: JournalMark?,
        _ newest: JournalPosition?,
        isLogEmpty: Bool
    ) throws(StoreError) -> StoreLoss? {
        guard let mark else { return StoreLoss(place, "its mark, \(place.markPath), is missing or damaged") }
        let row = newest?.row ?? 0
        let isOfMark = (newest?.stamp.journal ?? mark.journal) == mark.journal
        guard row >= mark.row else {
            // Rows that a backup brought, or that were left when a loss was accepted, have another number until the
            // next commit; those of another journal's log must not come up.
            guard isOfMark || isLogEmpty else { throw StoreError(unrelated: place) }
            let log = "\(place.logPath)\(isLogEmpty ? ", which is missing or empty" : "")"
            let fault = "it and its log, \(log), lack what was committed last"
            return StoreLoss(place, fault, mark: mark, newest: newest)
        }
        let noted = try JournalFile.explain(place.path) { () throws(SQLiteError) in
            try database.integer("SELECT checksum FROM rows WHERE id = \(mark.row)")
        }
        guard noted ?? mark.checksum == mark.checksum, row == mark.row || isOfMark else {
            throw StoreError(unrelated: place)
        }
        return nil
    }

    /// What is in the log and is not read. The mark need not know of it: a loss of power leaves it behind.
    private static func missingInLog(
        _ place: JournalPlace,
        _ mark: JournalMark,
        _ newest: JournalPosition?
    ) -> StoreLoss? {
        let commits = JournalLog.newestCommit(place, of: mark.journal) - (newest?.stamp.commits ?? 0)
        guard commits > 1 else { return nil }
        return StoreLoss(place, "\(commits) commits in its log, \(place.logPath), cannot be read any more")
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

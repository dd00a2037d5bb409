import Engine
import Wire

/// The state of the journal at a start, before the start writes anything.
struct JournalInspection {
    /// True if the journal must be created: nothing was ever committed, or the operator accepts the loss of all.
    let isNew: Bool
    /// The position of the newest row; nil if there is none.
    var newest: JournalPosition?
    var mark: JournalMark?
    /// True if the journal is a backup on which no gateway has started.
    var isCopy = false
    /// The loss that the operator accepts; nil if nothing is lost.
    let loss: StoreLoss?

    /// True if opening this journal would fork its history.
    var isFork: Bool { self.isCopy || self.loss != nil }

    /// Reads the journal and compares it with its mark. Changes no file, and creates only SQLite's shared memory file.
    ///
    /// - `acceptsLoss`: true to accept that the last commits are missing.
    /// - `isAlone`: true if no other process has the journal open. If false, the log's content is not examined.
    /// - Returns: the state, and the connection that has read the journal, or nil if the journal must be created.
    /// - Throws: `StoreError` if the journal belongs to another program, has another format, is damaged, or lacks
    ///   committed records.
    static func of(
        _ location: JournalLocation,
        acceptsLoss: Bool,
        isAlone: Bool = true
    ) throws(StoreError) -> (found: JournalInspection, reader: SQLiteDatabase?) {
        // Reads the mark before the rows, because another process may commit. A mark that is read later could be ahead
        // of the rows.
        var mark = try JournalMarkFile.read(location)
        let file = location.size(location.path)
        if let file, 1..<512 ~= file { throw StoreError(damaged: location.path, "it is cut off after \(file) bytes") }
        let isLogEmpty = (location.size(location.logPath) ?? 0) == 0
        let dependentFile = location.dependentFile.flatMap { (location.size($0) ?? 0) > 0 ? $0 : nil }
        guard let file, file > 0 else {
            let log = isLogEmpty ? "" : ", and its log \(location.logPath) is not"
            let trace = dependentFile.map { ", and \($0), which is written after it, is there" } ?? ""
            let fault = "it is \(file == nil ? "missing" : "empty")\(log)\(trace)"
            // A new journal's log is created after its file.
            let isLost = !isLogEmpty || mark == nil && (file != nil || dependentFile != nil)
            return (try Self.new(location, mark, fault, isLost: isLost, acceptsLoss), nil)
        }
        if (location.size(location.rollbackPath) ?? 0) > 0 {
            guard file <= JournalFile.pageBytesMax, isLogEmpty else { throw StoreError(stray: location.rollbackPath) }
            // SQLite was interrupted while it created the file. It rolls the creation back when the file is opened for
            // writing.
            let isLost = mark == nil && dependentFile != nil
            return (try Self.new(location, mark, "it holds nothing", isLost: isLost, acceptsLoss), nil)
        }
        if mark == nil, isLogEmpty, !acceptsLoss, let cut = JournalFile.cutClause(location) {
            throw StoreLoss(location, cut).refusal
        }
        let note = JournalNote.read(location)
        if let note {
            // A mark next to a backup is valid only if the first start on the backup has just created it.
            let isBegun = mark?.row == note.row && mark?.checksum == note.checksum
            guard isBegun || mark == nil && isLogEmpty else { throw StoreError(mixed: location) }
            mark = mark ?? note
        }
        let database = try JournalFile.connect(location, isLogEmpty ? .fileAlone : .readOnly)
        if try JournalFile.explain(location.path, { () throws(SQLiteError) in try JournalFile.isEmpty(database) }) {
            let isLogDamaged = try JournalLog.unreadableCommits(location, database) > 1
            let isLost = mark == nil || isLogDamaged
            let log = isLogEmpty ? "missing or empty" : "damaged"
            let fault = "it holds nothing, and its log, \(location.logPath), is \(log)"
            return (try Self.new(location, mark, fault, isLost: isLost, acceptsLoss), nil)
        }
        let comparison = try JournalComparison(database, location, mark, isLogEmpty: isLogEmpty)
        let loss = try comparison.missing(isAlone: isAlone)
        if let loss, !acceptsLoss { throw loss.refusal }
        let found = JournalInspection(
            isNew: false,
            newest: comparison.newest,
            mark: mark,
            isCopy: note != nil,
            loss: loss
        )
        return (found, database)
    }

    /// Returns the state of a journal without content. It has a loss if the journal had content.
    private static func new(
        _ location: JournalLocation,
        _ mark: JournalMark?,
        _ fault: String,
        isLost: Bool,
        _ acceptsLoss: Bool
    ) throws(StoreError) -> JournalInspection {
        var loss = isLost ? StoreLoss(location, fault) : nil
        if let mark, mark.row > 0 { loss = StoreLoss(location, fault, mark: mark, newest: nil) }
        if let loss, !acceptsLoss { throw loss.refusal }
        return JournalInspection(isNew: true, loss: loss)
    }
}

/// A comparison of a journal with its mark, over a read-only connection.
private struct JournalComparison {
    /// The position of the newest row; nil if there is none.
    let newest: JournalPosition?
    private let database: SQLiteDatabase
    private let location: JournalLocation
    private let mark: JournalMark?
    private let isLogEmpty: Bool

    init(
        _ database: SQLiteDatabase,
        _ location: JournalLocation,
        _ mark: JournalMark?,
        isLogEmpty: Bool
    ) throws(StoreError) {
        self.database = database
        self.location = location
        self.mark = mark
        self.isLogEmpty = isLogEmpty
        // During the transaction, the connection sees the journal in the state of its first query.
        try JournalFile.explain(location.path) { () throws(SQLiteError) in try database.execute("BEGIN") }
        try JournalFile.checkIdentity(database)
        self.newest = try JournalPosition.newest(database)
    }

    /// Returns the loss of committed records; nil if no record is known to be missing.
    ///
    /// - Throws: an error if a loss of records cannot explain how the files contradict each other.
    func missing(isAlone: Bool) throws(StoreError) -> StoreLoss? {
        let markPath = self.location.markPath
        let looksIntoLog = isAlone && !self.isLogEmpty
        if looksIntoLog { try self.checkLogAge() }
        guard let mark else {
            let cut = self.isLogEmpty ? JournalFile.cutClause(self.location) : nil
            return self.loss("\(cut.map { "\($0), and " } ?? "")its mark, \(markPath), is missing or damaged")
        }
        let row = self.newest?.row ?? 0
        let isLogOfAnother = looksIntoLog ? try self.isLogOfAnother(mark) : false
        guard row >= mark.row else {
            if isLogOfAnother {
                return self.loss(
                    "its log, \(self.location.logPath), and its mark, \(markPath), are of different journals"
                )
            }
            let log = "\(self.location.logPath)\(self.isLogEmpty ? ", which is missing or empty" : "")"
            let fault = "it and its log, \(log), lack what was committed last"
            return StoreLoss(self.location, fault, mark: mark, newest: self.newest)
        }
        let noted = try JournalFile.explain(self.location.path) { () throws(SQLiteError) in
            try self.database.integer("SELECT checksum FROM rows WHERE id = \(mark.row)")
        }
        let isAnother = "\(markPath) is the mark of another journal, or of another past of this one"
        if let noted, noted != mark.checksum { return self.loss(isAnother) }
        guard row > mark.row, let newest else { return try self.missingInLog(looksIntoLog) }
        guard newest.stamp.journal == mark.journal else { return self.loss(isAnother) }
        // After a power failure, the journal may be ahead of its mark by several commits. The log may be missing
        // because a program copied it into the file.
        return try self.missingInLog(looksIntoLog)
    }

    private func loss(_ fault: String) -> StoreLoss { StoreLoss(self.location, fault) }

    /// Returns true if the newest row is only in the log and belongs to a third journal: neither that of the mark nor
    /// that of the rows in the file.
    ///
    /// - Throws: an error if the rows in the file belong to the journal of the mark. Only the log is then foreign.
    private func isLogOfAnother(_ mark: JournalMark) throws(StoreError) -> Bool {
        guard let newest, newest.row != mark.row, let number = newest.stamp.journal,
            number != mark.journal
        else { return false }
        let own: JournalPosition?
        do throws(StoreError) {
            let file = try JournalFile.connect(self.location, .fileAlone)
            // All rows may still be only in the log.
            let isEmpty = try JournalFile.explain(self.location.path) { () throws(SQLiteError) in
                try JournalFile.isEmpty(file)
            }
            own = isEmpty ? nil : try JournalPosition.newest(file)
        } catch {
            // Without its log, the file may have inconsistent pages.
            return false
        }
        guard let own else { return true }
        guard own.row < newest.row, own.stamp.journal != number else { return false }
        if own.stamp.journal == mark.journal { throw StoreError(foreignLog: self.location) }
        return true
    }

    private func missingInLog(_ looksIntoLog: Bool) throws(StoreError) -> StoreLoss? {
        guard looksIntoLog else { return nil }
        let commits = try JournalLog.unreadableCommits(self.location, self.database)
        guard commits > 1 else { return nil }
        return self.loss("\(commits) commits in its log, \(self.location.logPath), cannot be read any more")
    }

    /// Refuses a log that is older than the file. SQLite would replace newer pages of the file with older ones of the
    /// log.
    private func checkLogAge() throws(StoreError) {
        // Errors are ignored, because the file may have inconsistent pages without its log.
        guard let file = try? SQLiteDatabase(path: self.location.path, mode: .fileAlone, vfs: self.location.vfs),
            let row = try? file.integer("SELECT max(id) FROM rows"), row > self.newest?.row ?? 0
        else { return }
        throw StoreError(
            damaged: self.location.path,
            "it holds row \(row), and with its log, \(self.location.logPath), no row after \(self.newest?.row ?? 0): "
                + "the log is older than the file, or damaged"
        )
    }
}

extension JournalPosition {
    /// Returns the position of the newest row; nil if there is none.
    static func newest(_ database: SQLiteDatabase) throws(StoreError) -> JournalPosition? {
        try JournalFile.explain(database.path) { () throws(SQLiteError) -> JournalPosition? in
            let statement = try database.prepare("SELECT id, checksum, content FROM rows ORDER BY id DESC LIMIT 1")
            guard try statement.step() else { return nil }
            let (row, checksum, content) = (statement.integer(0), statement.integer(1), statement.bytes(2))
            if let fault = JournalRow.fault(content, checksum: checksum, row: row) {
                throw SQLiteError(kind: .corrupt, message: fault)
            }
            return row == 0 ? nil : JournalPosition(row: row, checksum: checksum, stamp: JournalRow.stamp(of: content))
        }
    }
}

package import Engine

/// Copies the write-ahead log into the file, on its own connection and on a thread beside the one that commits.
///
/// It has one user at a time. It is `Sendable` without the compiler's proof: all it shares with the journal is
/// `CheckpointProgress`, which locks, and its connection goes over to the one thread that uses it.
package final class JournalCheckpointer: @unchecked Sendable {
    /// Passes of one checkpoint. Each finds what was committed during the one before; that soon is little.
    private static let passesMax = 8

    private let place: JournalPlace
    private let progress: CheckpointProgress
    /// Nil before the journal is open for commits.
    private var opened: SQLiteDatabase?

    init(_ place: JournalPlace, _ progress: CheckpointProgress) {
        self.place = place
        self.progress = progress
    }

    /// Copies what is in the log, until what came meanwhile is so little that a commit can copy it in passing.
    ///
    /// - Throws: `StoreError` when it failed, now or before. The journal then commits nothing more.
    package func checkpoint() throws(StoreError) {
        if let failure = self.progress.failure { throw failure }
        defer { self.progress.finish() }
        // Before everything was verified nothing is written.
        guard self.progress.markFile != nil else { return }
        let database = try self.open()
        for _ in 0..<Self.passesMax {
            let generation = self.progress.beginPass()
            defer { self.progress.endPass() }
            guard let pages = try Self.copyLog(database, self.progress) else { return }
            try Self.guarded(database, self.progress) { () throws(SQLiteError) in try database.syncFile() }
            guard self.progress.copied(pages, generation: generation) else { break }
        }
    }

    /// Makes the mark durable, so that it is not far behind after a loss of power.
    ///
    /// - Throws: `StoreError` when it failed. The journal then commits nothing more.
    package func syncMark() throws(StoreError) {
        try Self.syncMark(self.progress)
    }

    /// Looks whether the journal's files are still there, under their names.
    ///
    /// - Throws: `StoreError` when they are not, once. The journal then commits nothing more.
    package func checkFiles() throws(StoreError) {
        try self.progress.checkFiles()
    }

    /// Opens the connection, to be called before the journal says that it has a mark: later the machine may have no
    /// descriptor left.
    @discardableResult
    func open() throws(StoreError) -> SQLiteDatabase {
        if let opened { return opened }
        do throws(StoreError) {
            let database = try JournalFile.connect(self.place, .readWrite)
            try JournalFile.checkIdentity(database)
            try JournalFile.explain(self.place.path) { () throws(SQLiteError) in
                // With FULL a checkpoint syncs the log before the file, and the file before the log may begin anew.
                try database.execute("PRAGMA synchronous = FULL")
            }
            self.opened = database
            return database
        } catch {
            self.progress.fail(error)
            throw error
        }
    }

    static func syncMark(_ progress: CheckpointProgress) throws(StoreError) {
        do throws(StoreError) { try progress.markFile?.sync() } catch {
            progress.fail(error)
            throw error
        }
    }

    /// One checkpoint, as far as it gets without waiting.
    ///
    /// - Returns: how many pages of the log are now in the file; nil when somebody else is at it.
    /// - Throws: `StoreError` when it failed, after which the store counts as failed: pages the kernel could not
    ///   write it may have dropped, so that a second try would succeed without them.
    static func copyLog(_ database: SQLiteDatabase, _ progress: CheckpointProgress) throws(StoreError) -> Int? {
        try self.guarded(database, progress) { () throws(SQLiteError) in
            do throws(SQLiteError) { return try database.checkpoint(.passive).copiedPages } catch {
                if error.kind == .busy { return nil }
                throw error
            }
        }
    }

    private static func guarded<Result>(
        _ database: SQLiteDatabase,
        _ progress: CheckpointProgress,
        _ body: () throws(SQLiteError) -> Result
    ) throws(StoreError) -> Result {
        do throws(SQLiteError) { return try body() } catch {
            let failure = StoreError(journal: database.path, error)
            progress.fail(failure)
            throw failure
        }
    }
}

package import Engine
import Platform

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

/// Makes a journal's checkpoints on a thread of its own, and looks after its files and its mark each second. `stop`
/// ends it.
///
/// `Sendable` without the compiler's proof: `wishMonitor` guards `wishes`.
package final class CheckpointThread: @unchecked Sendable {
    /// What others ask of the thread.
    private struct Wishes {
        var isCheckpointDue = false
        var isStopping = false
    }

    /// How often the files and the mark are looked after, in nanoseconds.
    private static let lookInterval: Int64 = 1_000_000_000

    private let wishMonitor = Monitor()
    private var wishes = Wishes()
    private let ended = Latch()

    /// Starts the thread, and has the journal call on it.
    ///
    /// - `onFailure`: called on the thread, at most once, when a checkpoint failed, or a file is gone, and the store
    ///   with it.
    package init(
        _ journal: Journal,
        onFailure: @escaping @Sendable (StoreError) -> Void = { _ in }
    ) throws(StoreError) {
        let checkpointer = journal.makeCheckpointer()
        do throws(ThreadFailure) {
            try NamedThread("checkpoint") { [self] in
                self.run(checkpointer, onFailure)
                self.ended.open()
            }
        } catch {
            throw StoreError(message: error.message)
        }
        journal.onCheckpointDue = { self.wish { $0.isCheckpointDue = true } }
    }

    /// Ends the thread after the checkpoint it is at, and waits for that.
    package func stop() {
        self.wish { $0.isStopping = true }
        self.ended.wait()
    }

    private func wish(_ change: (inout Wishes) -> Void) {
        self.wishMonitor.withLock {
            change(&self.wishes)
            self.wishMonitor.signal()
        }
    }

    /// Waits for a wish, at most until `moment`.
    private func takeWishes(waitingUntil moment: Int64) -> Wishes {
        self.wishMonitor.withLock {
            while !self.wishes.isCheckpointDue, !self.wishes.isStopping {
                guard self.wishMonitor.wait(untilNanoseconds: moment) else { break }
            }
            defer { self.wishes.isCheckpointDue = false }
            return self.wishes
        }
    }

    private func run(_ checkpointer: JournalCheckpointer, _ onFailure: (StoreError) -> Void) {
        var nextLook = SystemClock.monotonicNanoseconds + Self.lookInterval
        var isMarkBehind = false
        while true {
            let wishes = self.takeWishes(waitingUntil: nextLook)
            if wishes.isStopping { return }
            do throws(StoreError) {
                if wishes.isCheckpointDue {
                    try checkpointer.checkpoint()
                    isMarkBehind = true
                }
                // Commits wait for whatever is synced beside them, and there may be many checkpoints in a second.
                guard SystemClock.monotonicNanoseconds >= nextLook else { continue }
                nextLook = SystemClock.monotonicNanoseconds + Self.lookInterval
                try checkpointer.checkFiles()
                if isMarkBehind { try checkpointer.syncMark() }
                isMarkBehind = false
            } catch {
                onFailure(error)
                return
            }
        }
    }
}

/// What the thread that commits and the one that makes checkpoints know of each other.
///
/// It is `Sendable` without the compiler's proof: `monitor` guards `state`.
final class CheckpointProgress: @unchecked Sendable {
    /// What a commit does next.
    enum Step: Hashable {
        case nothing
        /// The commit tells the other thread to make a checkpoint.
        case ask
        /// The commit waits until the other thread has copied what it is copying.
        case wait
        /// The commit copies the rest of the log itself.
        case copyRest
    }

    private struct State {
        var failure: StoreError?
        var markFile: JournalMarkFile?
        var files: JournalFileWatch?
        var logPages = 0
        var copiedPages = 0
        /// How often the log was begun anew.
        var generation = 0
        /// A checkpoint was asked for and is not finished.
        var isAsked = false
        /// Whether the other thread is copying, and how often it began to.
        var isCopying = false
        var passes = 0
        /// The log's pages at which the next checkpoint is asked for, and at which a commit copies the rest itself.
        var askPages: Int
        var restPages: Int
    }

    private let limits: JournalLimits
    private let monitor = Monitor()
    private var state: State

    init(limits: JournalLimits) {
        self.limits = limits
        self.state = State(askPages: limits.checkpointPages, restPages: limits.restartPages)
    }

    /// Why the store has failed; it stays failed.
    var failure: StoreError? {
        self.withLock { $0.failure }
    }

    /// The first failure counts.
    func fail(_ error: StoreError) {
        self.withLock { if $0.failure == nil { $0.failure = error } }
    }

    /// The mark of the journal; nil before the journal is open for commits.
    var markFile: JournalMarkFile? {
        get { self.withLock { $0.markFile } }
        set { self.withLock { $0.markFile = newValue } }
    }

    /// Watches the files from here on.
    func watch(_ files: JournalFileWatch) {
        self.withLock { $0.files = files }
    }

    /// Looks whether the files are still there, and fails the store when they are not. One thread calls it.
    func checkFiles() throws(StoreError) {
        guard var files = self.withLock({ $0.failure == nil ? $0.files : nil }) else { return }
        // Outside the lock: commits do not wait while files are looked at.
        let fault = files.fault()
        let isFirst = self.withLock { state in
            state.files = files
            guard let fault, state.failure == nil else { return false }
            state.failure = fault
            return true
        }
        if isFirst, let fault { throw fault }
    }

    /// How often the log was begun anew.
    var generation: Int {
        self.withLock { $0.generation }
    }

    // MARK: The thread that commits

    /// A commit has returned, after which the log holds `logPages`.
    func committed(logPages: Int) -> Step {
        self.withLock { state in
            if logPages < state.logPages {
                state.generation += 1
                state.copiedPages = 0
                state.askPages = self.limits.checkpointPages
                state.restPages = self.limits.restartPages
            }
            state.logPages = logPages
            return self.nextStep(&state)
        }
    }

    private func nextStep(_ state: inout State) -> Step {
        let rest = state.logPages - state.copiedPages
        if state.isCopying, rest > self.limits.waitPages || state.logPages >= self.limits.logPagesMax { return .wait }
        let isSmall = rest <= self.limits.restPages && !state.isCopying
        if state.logPages >= state.restPages, isSmall || state.logPages >= self.limits.logPagesMax {
            // With a reader in its way it may not succeed; the next try is some pages later.
            state.restPages = state.logPages + self.limits.checkpointPages
            return .copyRest
        }
        guard !state.isAsked, state.logPages >= state.askPages else { return .nothing }
        state.isAsked = true
        return .ask
    }

    /// Waits until the other thread has copied what it is copying.
    func waitForPass() {
        self.monitor.lock()
        let pass = self.state.passes
        while self.state.isCopying, self.state.passes == pass { self.monitor.wait() }
        self.monitor.unlock()
    }

    // MARK: Either thread

    /// A checkpoint has copied the log's first `pages`.
    ///
    /// - Parameter generation: what it was when the checkpoint began.
    /// - Returns: whether another one would find much to copy.
    func copied(_ pages: Int, generation: Int) -> Bool {
        self.withLock { state in
            guard generation == state.generation else { return false }
            let isProgress = pages > state.copiedPages
            state.copiedPages = max(state.copiedPages, pages)
            return isProgress && state.logPages - state.copiedPages > self.limits.restPages
        }
    }

    /// The checkpoint that was asked for is finished.
    func finish() {
        self.withLock { state in
            state.isAsked = false
            let rest = state.logPages - state.copiedPages
            // What a reader holds back is not tried again before more has come.
            let base = rest > self.limits.restPages ? state.logPages : state.copiedPages
            state.askPages = base + self.limits.checkpointPages
        }
    }

    // MARK: The thread that makes checkpoints

    /// - Returns: the generation.
    func beginPass() -> Int {
        self.withLock { state in
            state.isCopying = true
            state.passes += 1
            return state.generation
        }
    }

    func endPass() {
        self.withLock { $0.isCopying = false }
        self.monitor.broadcast()
    }

    private func withLock<Result>(_ body: (inout State) -> Result) -> Result {
        self.monitor.lock()
        defer { self.monitor.unlock() }
        return body(&self.state)
    }
}

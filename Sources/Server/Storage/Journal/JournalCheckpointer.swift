package import Engine
import Platform

/// Copies the write-ahead log into the file. It has its own connection and runs on another thread than the commits.
///
/// One caller at a time may use it. `@unchecked Sendable`: only one thread uses the connection, and a lock guards
/// `CheckpointProgress`, which the journal shares.
package final class JournalCheckpointer: @unchecked Sendable {
    /// The maximum number of passes of one checkpoint. Each pass copies the commits that were made during the previous
    /// pass.
    private static let passesMax = 8

    private let location: JournalLocation
    private let progress: CheckpointProgress
    /// The connection; nil before the journal is open for commits.
    private var opened: SQLiteDatabase?

    init(_ location: JournalLocation, _ progress: CheckpointProgress) {
        self.location = location
        self.progress = progress
    }

    /// Copies the log into the file until so few pages remain that a commit could copy them itself.
    ///
    /// - Throws: `StoreError` if this or an earlier operation failed. The journal then rejects all further commits.
    package func checkpoint() throws(StoreError) {
        if let failure = self.progress.failure { throw failure }
        defer { self.progress.finish() }
        // Before the journal is verified, nothing may be written.
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

    /// Makes the mark durable. After a power failure, the mark therefore lacks only a few commits.
    ///
    /// - Throws: `StoreError` if this fails. The journal then rejects all further commits.
    package func syncMark() throws(StoreError) {
        try Self.syncMark(self.progress)
    }

    /// Checks that the journal's files still exist under their names.
    ///
    /// - Throws: `StoreError`, only once, if a file was removed or replaced. The journal then rejects all further
    ///   commits.
    package func checkFiles() throws(StoreError) {
        try self.progress.checkFiles()
    }

    /// Opens the connection. It is opened early because the process may have no free descriptor later.
    @discardableResult
    func open() throws(StoreError) -> SQLiteDatabase {
        if let opened { return opened }
        do throws(StoreError) {
            let database = try JournalFile.connect(self.location, .readWrite)
            try JournalFile.checkIdentity(database)
            try JournalFile.explain(self.location.path) { () throws(SQLiteError) in
                // With FULL, a checkpoint syncs the log before it writes the file. It syncs the file before the log can
                // restart.
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

    /// Runs one checkpoint without waiting. Readers may prevent the copy of some pages.
    ///
    /// - Returns: the number of pages of the log that are now in the file; nil if another connection holds the
    ///   checkpoint lock.
    /// - Throws: `StoreError` if the checkpoint fails. The store has then failed permanently. The kernel may have
    ///   dropped pages that it could not write, and a second attempt could succeed without them.
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

/// A thread that makes a journal's checkpoints. Each second, it also checks the files and syncs the mark. `stop` ends
/// it.
///
/// `@unchecked Sendable`: `requestMonitor` guards `requests`.
package final class CheckpointThread: @unchecked Sendable {
    /// The pending requests to the thread.
    private struct Requests {
        var isCheckpointDue = false
        var isStopping = false
    }

    /// The interval between checks of the files and syncs of the mark, in nanoseconds.
    private static let checkInterval: Int64 = 1_000_000_000

    private let requestMonitor = Monitor()
    private var requests = Requests()
    private let ended = Latch()

    /// Starts the thread and connects it to the journal.
    ///
    /// - `onFailure`: called on the thread when a checkpoint fails or a file is missing, at most once.
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
        journal.onCheckpointDue = { self.request { $0.isCheckpointDue = true } }
    }

    /// Ends the thread after the current checkpoint, and waits for its end.
    package func stop() {
        self.request { $0.isStopping = true }
        self.ended.wait()
    }

    private func request(_ change: (inout Requests) -> Void) {
        self.requestMonitor.withLock {
            change(&self.requests)
            self.requestMonitor.signal()
        }
    }

    /// Waits for a request until `moment`, and returns the pending requests.
    private func takeRequests(waitingUntil moment: Int64) -> Requests {
        self.requestMonitor.withLock {
            while !self.requests.isCheckpointDue, !self.requests.isStopping {
                guard self.requestMonitor.wait(untilNanoseconds: moment) else { break }
            }
            defer { self.requests.isCheckpointDue = false }
            return self.requests
        }
    }

    private func run(_ checkpointer: JournalCheckpointer, _ onFailure: (StoreError) -> Void) {
        var nextCheck = SystemClock.monotonicNanoseconds + Self.checkInterval
        var isMarkBehind = false
        while true {
            let requests = self.takeRequests(waitingUntil: nextCheck)
            if requests.isStopping { return }
            do throws(StoreError) {
                if requests.isCheckpointDue {
                    try checkpointer.checkpoint()
                    isMarkBehind = true
                }
                // At most once a second, because a sync delays concurrent commits, and checkpoints may be more
                // frequent.
                guard SystemClock.monotonicNanoseconds >= nextCheck else { continue }
                nextCheck = SystemClock.monotonicNanoseconds + Self.checkInterval
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

/// The state shared by the thread that commits and the thread that makes checkpoints.
///
/// `@unchecked Sendable`: `monitor` guards `state`.
final class CheckpointProgress: @unchecked Sendable {
    /// The action of a commit after its rows are durable.
    enum Step: Hashable {
        case nothing
        /// Request a checkpoint by the other thread.
        case ask
        /// Wait until the other thread has finished its pass.
        case wait
        /// Copy the remaining pages of the log on this thread.
        case copyRest
    }

    private struct State {
        var failure: StoreError?
        var markFile: JournalMarkFile?
        var files: JournalFileWatch?
        /// The size of a page in bytes.
        var pageBytes = 0
        /// The bytes of the log's pages, and of its pages that are also in the file.
        var logBytes = 0
        var copiedBytes = 0
        /// The number of restarts of the log.
        var generation = 0
        /// True if a checkpoint was requested and is not finished.
        var isRequested = false
        /// True during a pass of the other thread; and the number of passes that have begun.
        var isCopying = false
        var passes = 0
        /// The sizes of the log, in bytes, at which the next checkpoint is requested, and at which a commit copies the
        /// remaining pages itself.
        var checkpointRequestBytes: Int
        var restBytes: Int
    }

    private let limits: JournalLimits
    private let monitor = Monitor()
    private var state: State

    init(limits: JournalLimits) {
        self.limits = limits
        self.state = State(checkpointRequestBytes: limits.checkpointBytes, restBytes: limits.restartBytes)
    }

    /// The reason why the store has failed; nil if it works. A failure is permanent.
    var failure: StoreError? {
        self.withLock { $0.failure }
    }

    /// Sets the failure. A later failure does not replace the first one.
    func fail(_ error: StoreError) {
        self.withLock { if $0.failure == nil { $0.failure = error } }
    }

    /// The mark file of the journal; nil before the journal is open for commits.
    var markFile: JournalMarkFile? {
        self.withLock { $0.markFile }
    }

    /// Records that the journal is open for commits.
    ///
    /// - `pageBytes`: the size of its pages in bytes.
    func begin(_ markFile: JournalMarkFile, pageBytes: Int) {
        self.withLock { state in
            state.markFile = markFile
            state.pageBytes = pageBytes
        }
    }

    /// Starts to watch the files.
    func watch(_ files: JournalFileWatch) {
        self.withLock { $0.files = files }
    }

    /// Checks the files, and fails the store if one was removed, replaced or truncated. Only one thread may call it.
    func checkFiles() throws(StoreError) {
        guard var files = self.withLock({ $0.failure == nil ? $0.files : nil }) else { return }
        // The check runs without the lock, because commits must not wait for it.
        let fault = files.fault()
        let isFirst = self.withLock { state in
            state.files = files
            guard let fault, state.failure == nil else { return false }
            state.failure = fault
            return true
        }
        if isFirst, let fault { throw fault }
    }

    /// The number of restarts of the log.
    var generation: Int {
        self.withLock { $0.generation }
    }

    // MARK: The thread that commits

    /// Records the size of the log after a commit, and returns the commit's next action.
    func committed(logPages: Int) -> Step {
        self.withLock { state in
            let logBytes = logPages * state.pageBytes
            if logBytes < state.logBytes {
                state.generation += 1
                state.copiedBytes = 0
                state.checkpointRequestBytes = self.limits.checkpointBytes
                state.restBytes = self.limits.restartBytes
            }
            state.logBytes = logBytes
            return self.nextStep(&state)
        }
    }

    private func nextStep(_ state: inout State) -> Step {
        let rest = state.logBytes - state.copiedBytes
        if state.isCopying, rest > self.limits.waitBytes || state.logBytes >= self.limits.logBytesMax { return .wait }
        let isSmall = rest <= self.limits.restBytes && !state.isCopying
        if state.logBytes >= state.restBytes, isSmall || state.logBytes >= self.limits.logBytesMax {
            // A reader may prevent the copy. The next attempt follows after `checkpointBytes` more.
            state.restBytes = state.logBytes + self.limits.checkpointBytes
            return .copyRest
        }
        guard !state.isRequested, state.logBytes >= state.checkpointRequestBytes else { return .nothing }
        state.isRequested = true
        return .ask
    }

    /// Waits until the other thread has finished its pass.
    func waitForPass() {
        self.monitor.lock()
        let pass = self.state.passes
        while self.state.isCopying, self.state.passes == pass { self.monitor.wait() }
        self.monitor.unlock()
    }

    // MARK: Either thread

    /// Records that a checkpoint has copied the first `pages` pages of the log.
    ///
    /// - `generation`: the value of `generation` at the beginning of the checkpoint.
    /// - Returns: true if another pass is worthwhile.
    func copied(_ pages: Int, generation: Int) -> Bool {
        self.withLock { state in
            guard generation == state.generation else { return false }
            let bytes = pages * state.pageBytes
            let isProgress = bytes > state.copiedBytes
            state.copiedBytes = max(state.copiedBytes, bytes)
            return isProgress && state.logBytes - state.copiedBytes > self.limits.restBytes
        }
    }

    /// Records that the requested checkpoint is finished.
    func finish() {
        self.withLock { state in
            state.isRequested = false
            let rest = state.logBytes - state.copiedBytes
            // If a reader prevents the copy of pages, the next request waits until the log has more pages.
            let base = rest > self.limits.restBytes ? state.logBytes : state.copiedBytes
            state.checkpointRequestBytes = base + self.limits.checkpointBytes
        }
    }

    // MARK: The thread that makes checkpoints

    /// - Returns: the value of `generation`.
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

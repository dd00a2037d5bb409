import Engine
import Platform

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

import DeviceEngine
import Synchronization

/// What the thread that commits and the one that makes checkpoints know of each other.
final class CheckpointProgress: Sendable {
    /// What a commit does next.
    enum Step: Hashable {
        case nothing
        /// It tells the other thread to make a checkpoint.
        case ask
        /// It copies the rest of the log itself.
        case copyRest
    }

    private struct State {
        var failure: StoreError?
        var logPages = 0
        var copiedPages = 0
        /// How often the log was begun anew.
        var generation = 0
        /// A checkpoint was asked for and is not finished.
        var isAsked = false
        /// The log's pages at which the next checkpoint is asked for, and at which a commit copies the rest itself.
        var askPages: Int
        var restPages: Int
    }

    private let limits: JournalLimits
    private let state: Mutex<State>

    init(limits: JournalLimits) {
        self.limits = limits
        self.state = Mutex(State(askPages: limits.checkpointPages, restPages: limits.restartPages))
    }

    /// Why the store has failed; it stays failed.
    var failure: StoreError? {
        self.state.withLock { $0.failure }
    }

    /// The first failure counts.
    func fail(_ error: StoreError) {
        self.state.withLock { if $0.failure == nil { $0.failure = error } }
    }

    /// A commit has returned, after which the log holds `logPages`.
    func committed(logPages: Int) -> Step {
        self.state.withLock { state in
            if logPages < state.logPages {
                state.generation += 1
                state.copiedPages = 0
                state.askPages = self.limits.checkpointPages
                state.restPages = self.limits.restartPages
            }
            state.logPages = logPages
            let rest = logPages - state.copiedPages
            let isSmall = rest <= self.limits.restPages && !state.isAsked
            if logPages >= state.restPages, isSmall || logPages >= self.limits.logPagesMax {
                // With a reader in its way it may not succeed; the next try is some pages later.
                state.restPages = logPages + self.limits.checkpointPages
                return .copyRest
            }
            guard !state.isAsked, logPages >= state.askPages else { return .nothing }
            state.isAsked = true
            return .ask
        }
    }

    /// A checkpoint begins.
    ///
    /// - Returns: what `copied` is to be told.
    func beginPass() -> Int {
        self.state.withLock { $0.generation }
    }

    /// A checkpoint has copied the log's first `pages`.
    ///
    /// - Returns: whether another one would find much to copy.
    func copied(_ pages: Int, generation: Int) -> Bool {
        self.state.withLock { state in
            guard generation == state.generation else { return false }
            let isProgress = pages > state.copiedPages
            state.copiedPages = max(state.copiedPages, pages)
            return isProgress && state.logPages - state.copiedPages > self.limits.restPages
        }
    }

    /// The checkpoint that was asked for is finished.
    func finish() {
        self.state.withLock { state in
            state.isAsked = false
            let rest = state.logPages - state.copiedPages
            // What a reader holds back is not tried again before more has come.
            let base = rest > self.limits.restPages ? state.logPages : state.copiedPages
            state.askPages = base + self.limits.checkpointPages
        }
    }
}

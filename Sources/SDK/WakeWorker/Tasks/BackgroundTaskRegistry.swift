import Synchronization

/// What a worker is to handle besides pushes, until it runs.
final class BackgroundTaskRegistry: Sendable {
    /// What handles a launch.
    enum Handler: Sendable {
        case context(@Sendable (BackgroundTaskContext) async throws -> Void)
        /// Every kind, as it came.
        case launch(@Sendable (TaskLaunch) async throws -> Void)
    }

    /// What was registered.
    struct Registrations: Sendable {
        var tasks = BackgroundTaskTable<Handler>()
        /// Whether changes of conditions are wanted.
        var wantsConditions = false
    }

    private struct State {
        var registrations = Registrations()
        /// Whether the worker has run.
        var isSealed = false
    }

    private let state = Mutex(State())

    /// - Throws: `alreadyRunning` when the worker has run, and what the table throws.
    func register(_ name: BackgroundTaskName, _ handler: Handler) throws(WakeWorkerError) {
        // A closure of the lock throws what it likes.
        let outcome: Result<Void, WakeWorkerError> = self.state.withLock { state in
            guard !state.isSealed else {
                let what = name.isSession ? "session" : "task"
                let message = "the \(what) \(name.text) is registered after run(); register all handlers before it"
                return .failure(WakeWorkerError(.alreadyRunning, message))
            }
            do throws(WakeWorkerError) {
                return .success(try state.registrations.tasks.register(name, handler))
            } catch {
                return .failure(error)
            }
        }
        try outcome.get()
    }

    func wantConditions() {
        self.state.withLock { $0.registrations.wantsConditions = true }
    }

    /// What was registered; nothing more can be from now on.
    func seal() -> Registrations {
        self.state.withLock { state in
            state.isSealed = true
            return state.registrations
        }
    }
}

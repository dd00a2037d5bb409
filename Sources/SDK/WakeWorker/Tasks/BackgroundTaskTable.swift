import Synchronization
package import Wire

/// The handlers of background tasks and sessions by what they are registered for.
package struct BackgroundTaskTable<Handler: Sendable>: Sendable {
    /// The most of tasks, and the most of sessions.
    package static var namesMax: Int { 64 }

    private var handlers: [BackgroundTaskName: Handler] = [:]

    package init() {}

    package var isEmpty: Bool { self.handlers.isEmpty }

    /// The tasks' identifiers and patterns, or the sessions', in order.
    package func names(ofSessions: Bool) -> [String] {
        self.handlers.keys.filter { $0.isSession == ofSessions }.map(\.text).sorted()
    }

    /// Takes a handler.
    ///
    /// - Throws: `badArgument` for a name that is none, or one too many; `duplicateTask` for one that has a handler.
    package mutating func register(_ name: BackgroundTaskName, _ handler: Handler) throws(WakeWorkerError) {
        let what = name.isSession ? "session" : "task"
        guard name.isUsable else {
            throw WakeWorkerError(
                .badArgument,
                "the \(what) \"\(name.text)\" cannot be registered; its name is 1 to 255 letters, digits, full stops, "
                    + "hyphens and underscores, and may end in .* as a pattern"
            )
        }
        guard self.handlers[name] == nil else {
            throw WakeWorkerError(
                .duplicateTask,
                "the \(what) \(name.text) has a handler already; register one handler for each"
            )
        }
        guard self.handlers.keys.count(where: { $0.isSession == name.isSession }) < Self.namesMax else {
            throw WakeWorkerError(
                .badArgument,
                "the \(what) \(name.text) is one more than \(Self.namesMax); register a pattern for several"
            )
        }
        self.handlers[name] = handler
    }

    /// The handler whose name fits best; nil when none fits.
    package func handler(for name: BackgroundTaskName) -> Handler? {
        for candidate in name.candidates { if let handler = self.handlers[candidate] { return handler } }
        return nil
    }
}

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
                let hint = "; \(name.pattern) stands for identifiers that are not known by then"
                return .failure(WakeWorkerError(.alreadyRunning, message + (name.isSession ? "" : hint)))
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

/// One launch of a background task, or the word that transfers of a session have finished, as its wake says it: for
/// programs that hand it on, and that take every kind.
package struct TaskLaunch: Sendable {
    package let message: TaskMessage
    private let lease: WakeLease

    init(_ message: TaskMessage, _ lease: WakeLease) {
        self.message = message
        self.lease = lease
    }

    /// Until when it may run; progress and extensions move it. By this machine's clock.
    package var deadline: ContinuousClock.Instant { self.lease.deadline }

    /// Why its time was over before it was handled; nil when it was not, or the reason is not known.
    package var expiration: ExpirationReason? { self.lease.expiration }

    /// The time that a handler which was cancelled has to clean up; nil unless its deadline is only near.
    package var graceLeft: Duration? { self.lease.graceLeft }

    /// Tells the gateway how far a continued task is; an advance moves its deadline.
    ///
    /// A report that does not arrive is not sent again.
    ///
    /// - Throws: `WakeWorkerError`: `wakeEnded` when it is too late, `refused` when the gateway refuses it,
    ///   `cancelled`, and what keeps a request from the gateway.
    package func tell(_ progress: TaskProgress) async throws(WakeWorkerError) {
        try await self.lease.tell(self.message.wake, progress)
    }
}

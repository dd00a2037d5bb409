import Synchronization
package import Wire

/// The handlers of background tasks and sessions, by name.
package struct BackgroundTaskTable<Handler: Sendable>: Sendable {
    /// The maximum number of task names. The same limit applies to session names.
    package static var namesMax: Int { 64 }

    private var handlers: [BackgroundTaskName: Handler] = [:]

    package init() {}

    package var isEmpty: Bool { self.handlers.isEmpty }

    /// Returns the registered names of tasks, or of sessions, in sorted order.
    package func names(ofSessions: Bool) -> [String] {
        self.handlers.keys.filter { $0.isSession == ofSessions }.map(\.text).sorted()
    }

    /// Registers a handler.
    ///
    /// - Throws: `badArgument` if the name is invalid or there are too many names; `duplicateTask` if the name already
    ///   has a handler.
    package mutating func register(_ name: BackgroundTaskName, _ handler: Handler) throws(WakeWorkerError) {
        let what = name.isSession ? "session" : "task"
        guard name.isUsable else {
            throw WakeWorkerError(
                .badArgument,
                "the \(what) \"\(name.text)\" cannot be registered; its name is 1 to 255 letters, digits, periods, "
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

    /// Returns the handler whose name is the best match; nil if none matches.
    package func handler(for name: BackgroundTaskName) -> Handler? {
        for candidate in name.candidates { if let handler = self.handlers[candidate] { return handler } }
        return nil
    }
}

/// The registered handlers. All handlers must be registered before the worker runs.
final class BackgroundTaskRegistry: Sendable {
    /// Handles a launch. It also receives a scheduler for the launch's device.
    typealias Handler = @Sendable (TaskLaunch, BackgroundTaskScheduler) async throws -> Void

    /// The registered handlers, and the subscription to condition changes.
    struct Registrations: Sendable {
        var tasks = BackgroundTaskTable<Handler>()
        /// True if the program requested changes of conditions.
        var wantsConditions = false
        /// True after the worker was started.
        var isSealed = false
    }

    private let state = Mutex(Registrations())

    /// - Throws: `alreadyRunning` if the worker was started, and the errors of the table.
    func register(_ name: BackgroundTaskName, _ handler: @escaping Handler) throws(WakeWorkerError) {
        try self.state.withLock { state throws(WakeWorkerError) in
            guard !state.isSealed else {
                let what = name.isSession ? "session" : "task"
                let message = "the \(what) \(name.text) is registered after run(); register all handlers before it"
                let hint = "; \(name.pattern) stands for identifiers that are not known by then"
                throw WakeWorkerError(.alreadyRunning, message + (name.isSession ? "" : hint))
            }
            try state.tasks.register(name, handler)
        }
    }

    func wantConditions() { self.state.withLock { $0.wantsConditions = true } }

    /// Returns the registrations and prevents further registrations.
    func seal() -> Registrations {
        self.state.withLock { state in
            state.isSealed = true
            return state
        }
    }
}

/// One launch of a background task, or a wake for the finished transfers of a session. It is for programs that forward
/// the unmodified message.
package struct TaskLaunch: Sendable {
    package let message: TaskMessage
    package let lease: WakeLease

    /// Reports the progress of a continued task, as ``BackgroundTaskContext/progress`` does. Texts that are nil are not
    /// reported.
    package func report(_ progress: TaskProgress) { self.lease.reporting?.set(progress) }
}

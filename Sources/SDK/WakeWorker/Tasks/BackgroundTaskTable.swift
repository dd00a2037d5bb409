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

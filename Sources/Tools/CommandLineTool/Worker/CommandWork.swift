package import WakeWorker
package import Wire

/// What a command is run for: a wake, and what the command gets to know of it.
package struct CommandWork: Sendable {
    /// The wake's id.
    package let wake: String
    /// The variables that the command finds in its environment.
    package let variables: [String: String]
    /// What the command finds on standard input.
    package let input: [UInt8]
    /// Whether the command may say how far it is.
    package let tellsProgress: Bool
    private let isPush: Bool

    /// A push.
    package init(_ notification: WakeNotification) {
        self.wake = notification.id
        self.variables = notification.commandEnvironment
        self.input = notification.payload
        self.tellsProgress = false
        self.isPush = true
    }

    /// A background task, or finished transfers of a session.
    package init(_ message: TaskMessage) {
        self.wake = message.wake
        self.variables = message.commandEnvironment
        self.input = []
        self.tellsProgress = message.kind == .continued
        self.isPush = false
    }

    /// Whether a command that ended so has failed; nil stands for one that a signal ended.
    package func isFailure(exitStatus: Int32?) -> Bool {
        self.isPush ? BackgroundFetchResult(exitStatus: exitStatus) == .failed : exitStatus != 0
    }
}

extension CommandWork {
    /// Variables that only some wakes have: a command finds those of its wake, whatever the worker's own environment
    /// says.
    static let variablesOfSome: Set<String> = [
        "TRACEPARENT", "TRACESTATE", "WAKEGATE_COALESCED", "WAKEGATE_COUNT", "WAKEGATE_PROGRESS_FD",
        "WAKEGATE_RESUMED_FROM", "WAKEGATE_SESSION", "WAKEGATE_SUBTITLE", "WAKEGATE_TASK", "WAKEGATE_TITLE",
    ]
}

extension BackgroundFetchResult {
    /// The result that an exit status stands for; nil stands for a command that a signal ended.
    package init(exitStatus: Int32?) {
        self =
            switch exitStatus {
            case .some(0): .newData
            case .some(3): .noData
            case .some, .none: .failed
            }
    }
}

extension WakeNotification {
    /// The variables that the wake's command finds in its environment.
    package var commandEnvironment: [String: String] {
        var variables = [
            "WAKEGATE_KIND": WakeKind.push.name, "WAKEGATE_WAKE": self.id, "WAKEGATE_DEVICE": self.deviceToken,
            "WAKEGATE_TOPIC": self.topic, "WAKEGATE_ATTEMPT": String(self.attempt),
            "WAKEGATE_COALESCED": String(self.coalescedCount), "WAKEGATE_DEADLINE": String(self.firstDeadline),
        ]
        // Variables that tracing libraries and tools look for.
        variables["TRACEPARENT"] = self.traceparent
        variables["TRACESTATE"] = self.tracestate
        return variables
    }
}

extension TaskMessage {
    /// The variables that the wake's command finds in its environment, but for `WAKEGATE_PROGRESS_FD`.
    package var commandEnvironment: [String: String] {
        var variables = [
            "WAKEGATE_KIND": self.kind.name, "WAKEGATE_WAKE": self.wake, "WAKEGATE_DEVICE": self.device,
            "WAKEGATE_TOPIC": self.topic, "WAKEGATE_ATTEMPT": String(self.attempt),
            "WAKEGATE_DEADLINE": String(self.deadline),
        ]
        variables["TRACEPARENT"] = self.traceparent
        variables["TRACESTATE"] = self.tracestate
        switch self.work {
        case .task(let identifier, let title, let subtitle):
            variables["WAKEGATE_TASK"] = identifier
            variables["WAKEGATE_TITLE"] = title
            variables["WAKEGATE_SUBTITLE"] = subtitle
            variables["WAKEGATE_RESUMED_FROM"] = self.resumedFrom.map { "\($0.completed)/\($0.total)" }
        case .session(let session, let count):
            variables["WAKEGATE_SESSION"] = session
            variables["WAKEGATE_COUNT"] = String(count)
        }
        return variables
    }
}

package import WakeWorker
package import Wire

/// A wake for a command, with the command's input and environment variables.
package struct CommandWork: Sendable {
    /// The wake's identifier.
    package let wake: String
    /// The environment variables for the command.
    package let variables: [String: String]
    /// The data for the command's standard input.
    package let input: [UInt8]
    /// True if the command may report progress.
    package let reportsProgress: Bool
    private let isPush: Bool

    /// Creates the work for a push.
    package init(_ notification: WakeNotification) {
        self.wake = notification.id
        self.variables = notification.commandEnvironment
        self.input = notification.payload
        self.reportsProgress = false
        self.isPush = true
    }

    /// Creates the work for a background task or for the finished transfers of a session.
    package init(_ message: TaskMessage) {
        self.wake = message.wake
        self.variables = message.commandEnvironment
        self.input = []
        self.reportsProgress = message.kind == .continued
        self.isPush = false
    }

    /// Returns true if a command with this exit status has failed. The status is nil if a signal ended the command.
    package func isFailure(exitStatus: Int32?) -> Bool {
        self.isPush ? BackgroundFetchResult(exitStatus: exitStatus) == .failed : exitStatus != 0
    }
}

extension CommandWork {
    /// Variables that only some wakes set. They are always removed from the environment that a command inherits.
    static let variablesOfSome: Set<String> = [
        "TRACEPARENT", "TRACESTATE", "WAKEGATE_COALESCED", "WAKEGATE_COUNT", "WAKEGATE_PROGRESS_FD",
        "WAKEGATE_RESUMED_FROM", "WAKEGATE_SESSION", "WAKEGATE_SUBTITLE", "WAKEGATE_TASK", "WAKEGATE_TITLE",
    ]
}

extension BackgroundFetchResult {
    /// Creates the result for an exit status, which is nil if a signal ended the command.
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
    /// The environment variables for the wake's command.
    package var commandEnvironment: [String: String] {
        var variables = [
            "WAKEGATE_KIND": WakeKind.push.name, "WAKEGATE_WAKE": self.id, "WAKEGATE_DEVICE": self.deviceToken,
            "WAKEGATE_TOPIC": self.topic, "WAKEGATE_ATTEMPT": String(self.attempt),
            "WAKEGATE_COALESCED": String(self.coalescedCount), "WAKEGATE_DEADLINE": String(self.firstDeadline),
        ]
        // Tracing libraries and tools read these standard variables.
        variables["TRACEPARENT"] = self.traceparent
        variables["TRACESTATE"] = self.tracestate
        return variables
    }
}

extension TaskMessage {
    /// The environment variables for the wake's command, except `WAKEGATE_PROGRESS_FD`.
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

/// The kinds of work that the options of a worker command request.
package struct WorkerTasks: Hashable, Sendable {
    /// The identifiers of tasks, or patterns of them.
    package let tasks: [String]
    /// The names of background sessions, or patterns of them.
    package let sessions: [String]
    package let takesPushes: Bool
    package let hasGPU: Bool

    /// - Throws: `badUsage` if the options request no work.
    package init(_ parsed: ParsedCommand) throws(CommandFailure) {
        self.tasks = parsed.all("--task")
        self.sessions = parsed.all("--session")
        self.takesPushes = !parsed.isSet("--no-pushes")
        guard self.takesPushes || !self.tasks.isEmpty || !self.sessions.isEmpty else {
            throw .usage("--no-pushes leaves nothing to take; name a task with --task ID, or a session with --session")
        }
        self.hasGPU = parsed.isSet("--resource")
        guard !self.hasGPU || !self.tasks.isEmpty else {
            throw .usage("--resource is for background tasks; name one with --task ID, or leave it out")
        }
    }

    /// Registers the command as the handler of the tasks and sessions.
    ///
    /// - Throws: `badUsage` for an invalid or repeated name, or for too many names.
    func register(with worker: WakeWorker, _ log: WorkerLog) throws(CommandFailure) {
        let names =
            self.tasks.map { BackgroundTaskName($0, isSession: false) }
            + self.sessions.map { BackgroundTaskName($0, isSession: true) }
        do throws(WakeWorkerError) {
            for name in names { try worker.backgroundTask(name) { try await Self.run($0, log) } }
        } catch {
            throw .usage(error.code == .duplicateTask ? self.twice : error.message)
        }
    }

    private var twice: String {
        for (option, names) in [("--task", self.tasks), ("--session", self.sessions)] {
            var seen: Set<String> = []
            for name in names where !seen.insert(name).inserted {
                return "\(option) \(name) was given twice; give it once"
            }
        }
        return "a task was given twice; give it once"
    }

    /// Runs the command for one launch.
    ///
    /// - Throws: an error if the command did not succeed.
    private static func run(_ launch: TaskLaunch, _ log: WorkerLog) async throws {
        let work = CommandWork(launch.message)
        let status = try await log.commands.run(work, graceLeft: { launch.lease.graceLeft }, report: launch.report)
        guard status == 0 else { throw CommandNotSuccessful() }
    }
}

/// The error of a command that did not end with exit status 0.
private struct CommandNotSuccessful: Error {}

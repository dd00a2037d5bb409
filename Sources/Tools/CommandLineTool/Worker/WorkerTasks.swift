import Synchronization
import WakeWorker
import Wire

/// What a worker's command is run for besides pushes, as its options say.
package struct WorkerTasks: Hashable, Sendable {
    /// What a machine may have.
    package static let resources = ["gpu"]

    /// Identifiers of tasks, and patterns for some.
    package let tasks: [String]
    /// Names of background sessions, and patterns for some.
    package let sessions: [String]
    package let takesPushes: Bool
    package let hasGPU: Bool

    /// - Throws: `badUsage` for options that ask for nothing, and for a resource that is none.
    package init(_ parsed: ParsedCommand) throws(CommandFailure) {
        self.tasks = parsed.all("--task")
        self.sessions = parsed.all("--session")
        self.takesPushes = !parsed.isSet("--no-pushes")
        guard self.takesPushes || !self.tasks.isEmpty || !self.sessions.isEmpty else {
            throw .usage("--no-pushes leaves nothing to take; name a task with --task ID, or a session with --session")
        }
        for name in parsed.all("--resource") where !Self.resources.contains(name) {
            throw .usage("--resource is \"\(name)\"; write \(Self.resources.joined(separator: ", "))")
        }
        self.hasGPU = parsed.isSet("--resource")
        guard !self.hasGPU || !self.tasks.isEmpty else {
            throw .usage("--resource is for background tasks; name one with --task ID, or leave it out")
        }
    }

    /// Has the worker run its command for them.
    ///
    /// - Throws: `badUsage` for a name that is none, one that was given twice, and one too many.
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
    /// - Throws: when it has not succeeded.
    private static func run(_ launch: TaskLaunch, _ log: WorkerLog) async throws {
        let work = CommandWork(launch.message)
        let isRefusalTold = Mutex(false)
        let status = try await withTaskCancellationHandler {
            try await log.commands.run(work) { progress in
                do throws(WakeWorkerError) {
                    try await launch.tell(TaskProgress(progress))
                } catch {
                    guard error.code != .cancelled, error.code != .wakeEnded else { return }
                    let isFirst = isRefusalTold.withLock { told in
                        defer { told = true }
                        return !told
                    }
                    if isFirst { log.progressFailed(work.wake, error) }
                }
            }
        } onCancel: {
            if let reason = launch.expiration { log.expired(work.wake, reason) }
        }
        guard status == 0 else { throw CommandNotSuccessful() }
    }
}

/// A command has ended, and not with exit status 0.
private struct CommandNotSuccessful: Error {}

extension TaskProgress {
    fileprivate init(_ progress: CommandProgress) {
        self.init(completed: progress.completed, total: progress.total, subtitle: progress.text)
    }
}

import Glibc
import Platform
import Synchronization
import WakeWorker
import Wire

/// Starts the commands of a worker, one for each wake, writes their input, reads their output, stops and reaps them.
///
/// The loop belongs to one thread. `turn` waits for all commands, for signals, and until this program's output is
/// writable.
final class CommandLoop {
    /// The settings of the commands.
    struct Settings: Sendable {
        /// The program and its arguments.
        var command: [String]
        /// True if the wake's identifier precedes each line of the commands' output; false if the commands inherit this
        /// program's output.
        var isOutputLogged: Bool
        /// Environment variables for every command, in addition to the variables of its wake.
        var variables: [String: String] = [:]
    }

    /// The actions on signals.
    struct SignalHandlers: Sendable {
        /// The action at the first signal: accept no more wakes.
        let stop: @Sendable () -> Void
        /// The action at each further signal: also stop the commands.
        let cancel: @Sendable () -> Void
    }

    /// A running command.
    private struct Job {
        var process: CommandProcess
        let run: CommandRun
        /// The line buffers, one for each element of `CommandProcess.outputEnds`.
        var lines: [OutputLines]
        var progressLines = ProgressLines()
        /// True if a malformed progress line was already reported.
        var isFaultLogged = false
        /// The time at which a stopping command must be killed or checked again; nil for other commands.
        var killAt: Int64?
        /// The latest time of SIGKILL if the deadline is not near.
        var killAtLatest: Int64 = 0
    }

    private static let killDelayMilliseconds: Int64 = 2000
    /// The time for writing this program's remaining output at the end, in milliseconds.
    private static let outputMilliseconds: Int64 = 2000
    /// The longest wait of one turn, in milliseconds. Correctness does not depend on it.
    private static let waitMilliseconds: Int64 = 60_000

    private let settings: Settings
    private let commandGuard: CommandGuard
    private let signals: Int32
    private var handlers: SignalHandlers?
    private var isStopping = false
    /// True if the last start of a command failed and the log has reported it.
    private var isStartFailureLogged = false
    private var jobs: [Int32: Job] = [:]
    /// This program's standard output and standard error. They also receive the commands' output.
    private var logs = [OutputLog(descriptor: STDOUT_FILENO), OutputLog(descriptor: STDERR_FILENO)]
    private var buffer = [UInt8](repeating: 0, count: 65_536)
    /// The reason why the guard could not be restarted; nil otherwise. The worker ends after this failure.
    private(set) var failure: CommandFailure?

    /// Starts the guard and begins to catch signals. Must be called before other descriptors are opened, because the
    /// guard inherits all open ones.
    init(_ settings: Settings) throws(CommandFailure) {
        self.settings = settings
        self.commandGuard = try CommandGuard()
        guard let signals = SignalPipe.open([SIGCHLD, SIGTERM, SIGINT]) else {
            throw .failed("no pipe can be made: \(SystemError(errno).message)")
        }
        self.signals = signals
    }

    /// Sets the actions on signals.
    func begin(_ handlers: SignalHandlers) { self.handlers = handlers }

    /// Writes a line of this program to standard error.
    func log(_ line: String) { self.logs[1].appendOwn("wakegate: \(line)") }

    /// Waits for any event and handles all pending work.
    func turn() {
        self.wait(SystemClock.monotonic)
        for signal in SignalPipe.read(self.signals) where signal != SIGCHLD && signal != SignalPipe.none {
            self.stopRequested()
        }
        self.killOverdue(SystemClock.monotonic)
        for pid in self.jobs.keys { self.exchange(with: pid) }
        while let pid = CommandProcess.ended() { self.childEnded(pid) }
        self.writeLogs()
    }

    /// Kills the commands that are still running.
    func killAll() {
        for (pid, job) in self.jobs {
            job.process.signal(SIGKILL)
            self.log("the command of wake \(job.run.work.wake) ran still at the end, and was killed")
            self.jobs[pid] = nil
            job.run.end(.cutShort)
        }
    }

    /// Writes the remaining output as far as its readers accept it, for at most two seconds.
    func writeLastLogs() {
        let limit = SystemClock.monotonic + Self.outputMilliseconds
        self.writeLogs()
        for index in self.logs.indices {
            while !self.logs[index].queue.isEmpty, SystemClock.monotonic < limit {
                Descriptor.wait(for: self.logs[index].descriptor, .writable, milliseconds: 100)
                self.logs[index].write()
            }
        }
    }

    private func writeLogs() {
        for index in self.logs.indices { self.logs[index].write() }
    }

    private func stopRequested() {
        guard self.isStopping else {
            self.isStopping = true
            self.log("stopping; \(self.jobs.count) running commands may end")
            self.handlers?.stop()
            return
        }
        self.handlers?.cancel()
    }

    private func wait(_ now: Int64) {
        var waits = [Descriptor.Wait(self.signals, .readable)]
        var next = now + Self.waitMilliseconds
        for job in self.jobs.values {
            if let input = job.process.input { waits.append(Descriptor.Wait(input, .writable)) }
            for end in CommandProcess.readEnds {
                guard let output = job.process[keyPath: end] else { continue }
                waits.append(Descriptor.Wait(output, .readable))
            }
            if let killAt = job.killAt { next = min(next, killAt) }
        }
        for log in self.logs where !log.queue.isEmpty {
            waits.append(Descriptor.Wait(log.descriptor, .writable))
        }
        Descriptor.wait(for: &waits, milliseconds: Int32(clamping: max(0, next - now)))
    }
}

// MARK: - One command

extension CommandLoop {
    /// Starts the command of a wake, unless the run is already stopped.
    func start(_ run: CommandRun) {
        guard !run.isStopped else { return run.end(.cutShort) }
        let process = CommandProcess(self.settings, for: run.work, guardedBy: self.commandGuard)
        guard let process else {
            return self.notStarted(run, WorkerLog.startFailure(self.settings.command[0], errno))
        }
        if self.isStartFailureLogged {
            self.isStartFailureLogged = false
            self.log("\(self.settings.command[0]) can be started again")
        }
        let lines = CommandProcess.outputEnds.map { _ in OutputLines(prefix: run.work.wake) }
        self.jobs[process.pid] = Job(process: process, run: run, lines: lines)
        run.pid = process.pid
    }

    private func notStarted(_ run: CommandRun, _ reason: String) {
        if !self.isStartFailureLogged {
            self.isStartFailureLogged = true
            self.log(
                "\(reason); its wakes go back to the gateway for other workers, and after every third one this worker "
                    + "waits, up to a minute"
            )
        }
        run.end(.notStarted(reason))
    }

    /// Sends SIGTERM to the command of a run. SIGKILL follows at the deadline if it is near, and otherwise after a
    /// delay. A command that has not started yet will not start.
    func stop(_ run: CommandRun) {
        run.isStopped = true
        guard let pid = run.pid, let job = self.jobs[pid], job.killAt == nil else { return }
        job.process.signal(SIGTERM)
        let latest = SystemClock.monotonic + Self.killDelayMilliseconds
        let isNear = run.graceLeft() != nil
        if !isNear { run.graceLeft = { nil } }
        self.jobs[pid]?.killAtLatest = latest
        self.jobs[pid]?.killAt = isNear ? SystemClock.monotonic : latest
    }

    /// Handles the end of a command's wake. A command that is being stopped may have less time after that.
    func wakeEnded(_ wake: String) {
        for (pid, job) in self.jobs where job.killAt != nil && job.run.work.wake == wake {
            self.jobs[pid]?.killAt = SystemClock.monotonic
        }
    }

    private func killOverdue(_ now: Int64) {
        for (pid, job) in self.jobs {
            guard let killAt = job.killAt, killAt <= now else { continue }
            let grace = job.run.graceLeft()
            if let grace, grace > 0 {
                self.jobs[pid]?.killAt = now + grace
                continue
            }
            // The wake ended before its deadline, so the deadline no longer counts.
            guard grace != nil || job.killAtLatest <= now else {
                self.jobs[pid]?.killAt = job.killAtLatest
                continue
            }
            job.process.signal(SIGKILL)
            self.jobs[pid]?.killAt = nil
        }
    }

    /// Writes more of a command's input and reads a part of its output. The part is limited, because a command with
    /// much output must not delay other commands.
    private func exchange(with pid: Int32) {
        guard var job = self.jobs[pid] else { return }
        job.process.writeInput()
        for index in CommandProcess.outputEnds.indices { _ = self.takeOutput(index, of: &job) }
        _ = self.takeProgress(of: &job)
        self.jobs[pid] = job
    }

    /// Reads once from one output of a command. Returns true if there was data.
    private func takeOutput(_ index: Int, of job: inout Job) -> Bool {
        let bytes = job.process.read(CommandProcess.outputEnds[index], into: &self.buffer)
        let now = SystemClock.monotonic
        for line in job.lines[index].received(bytes) { self.logs[index].queue.append(line, now: now) }
        return !bytes.isEmpty
    }

    /// Reads once from a command's progress pipe. Returns true if there was data.
    private func takeProgress(of job: inout Job) -> Bool {
        let bytes = job.process.read(CommandProcess.progressEnd, into: &self.buffer)
        let reading = job.progressLines.received(bytes)
        if let newest = reading.newest { job.run.report(newest) }
        if let fault = reading.fault, !job.isFaultLogged {
            job.isFaultLogged = true
            let line = TerminalText.sanitized(String(decoding: fault.prefix(100), as: UTF8.self))
            self.log(
                "the command of wake \(job.run.work.wake) said \"\(line)\" as its progress; lines such as "
                    + "\"progress 10/100 text\" are reported, and no others"
            )
        }
        return !bytes.isEmpty
    }

    /// Handles the end of a command or of the guard.
    private func childEnded(_ pid: Int32) {
        guard var job = self.jobs.removeValue(forKey: pid) else {
            _ = CommandProcess.reap(pid)
            if pid == self.commandGuard.pid { self.guardEnded() }
            return
        }
        // Kills the processes that the command left in its group. The group's number is not reused until the command is
        // reaped. Therefore no other process is killed.
        job.process.signal(SIGKILL)
        self.commandGuard.forget(pid)
        // If the gateway ended the wake, the worker reports the reason. The command's end is then not logged.
        let hasWakeEnded = job.run.isStopped && (job.run.graceLeft() ?? 0) <= 0
        let ending = self.ending(of: pid, job.run.work, isSaid: hasWakeEnded)
        self.takeLastOutput(of: &job)
        job.process.closeAll()
        job.run.end(ending)
    }

    private func guardEnded() {
        self.log("the process that guards the commands has been killed; another is started")
        do throws(CommandFailure) {
            try self.commandGuard.restart(knowing: self.jobs.keys)
        } catch {
            self.failure = error
            self.handlers?.stop()
            self.handlers?.cancel()
        }
    }

    private func ending(of pid: Int32, _ work: CommandWork, isSaid: Bool) -> CommandRun.Ending {
        let exitStatus = CommandProcess.reap(pid)
        if work.isFailure(exitStatus: exitStatus), !isSaid {
            let how = exitStatus.map { "exit status \($0)" } ?? "a signal"
            self.log("the command of wake \(work.wake) ended with \(how)")
        }
        return exitStatus.map { .exited($0) } ?? .cutShort
    }

    /// Reads the remaining data from the pipes. Does not wait for processes that have left the group.
    private func takeLastOutput(of job: inout Job) {
        for index in CommandProcess.outputEnds.indices {
            // A pipe has 64 KiB by default. A command without root privileges can enlarge it to at most 1 MiB.
            for _ in 0..<16 where self.takeOutput(index, of: &job) {}
            if let line = job.lines[index].ended() { self.logs[index].queue.append(line, now: SystemClock.monotonic) }
        }
        for _ in 0..<16 where self.takeProgress(of: &job) {}
    }
}

/// The command of one wake, and the continuation of the task that awaits its end.
///
/// `@unchecked Sendable`: accessed only on its `CommandThread`.
final class CommandRun: @unchecked Sendable {
    /// The ending of a command.
    enum Ending: Hashable, Sendable {
        case exited(Int32)
        /// A signal ended the command, or the run was stopped before the command started.
        case cutShort
        /// The command could not be started. The value is the reason.
        case notStarted(String)

        /// The exit status; nil if the command did not start or did not exit normally.
        var exitStatus: Int32? {
            switch self {
            case .exited(let status): status
            case .cutShort, .notStarted: nil
            }
        }
    }

    let work: CommandWork
    /// Reports the command's progress.
    let report: @Sendable (TaskProgress) -> Void
    /// The process ID of the command; nil before the start.
    var pid: Int32?
    /// True if the command is no longer needed.
    var isStopped = false
    /// A function that returns the command's remaining time after SIGTERM, in milliseconds; nil while its deadline is
    /// not near.
    var graceLeft: @Sendable () -> Int64?
    private var continuation: CheckedContinuation<Ending, Never>?

    init(
        _ work: CommandWork,
        report: @escaping @Sendable (TaskProgress) -> Void,
        graceLeft: @escaping @Sendable () -> Int64?
    ) {
        self.graceLeft = graceLeft
        self.work = work
        self.report = report
    }

    func awaited(by continuation: CheckedContinuation<Ending, Never>) {
        self.continuation = continuation
    }

    /// Reports the ending.
    func end(_ ending: Ending) {
        self.continuation?.resume(returning: ending)
        self.continuation = nil
    }
}

/// The thread of a `CommandLoop`. It runs the work that tasks submit.
final class CommandThread: Sendable {
    /// A unit of work for the thread. The struct avoids that each read wraps the closure again.
    private struct Work: Sendable {
        let run: @Sendable (CommandLoop) -> Void
    }

    private let waiting = Mutex<[Work]>([])
    private let finished = Mutex<CheckedContinuation<CommandFailure?, Never>?>(nil)
    private let begin: @Sendable (CommandThread) -> Void

    /// Starts the guard of the commands. The thread itself starts with `start`.
    ///
    /// - Throws: `CommandFailure` if a process or a pipe cannot be created.
    init(_ settings: CommandLoop.Settings) throws(CommandFailure) {
        // Only the thread uses the loop after this.
        let moved = Handover(try CommandLoop(settings))
        self.begin = { thread in thread.run(moved.take()) }
    }

    /// Starts the thread.
    ///
    /// - Throws: `CommandFailure` if the system cannot create a thread.
    func start(_ handlers: CommandLoop.SignalHandlers) throws(CommandFailure) {
        self.submit { $0.begin(handlers) }
        do throws(ThreadFailure) { try NamedThread("commands") { self.begin(self) } } catch {
            throw .failed(error.message)
        }
    }

    /// Runs the command of a wake until it ends. If the task is cancelled, stops the command.
    ///
    /// - `graceLeft`: returns the remaining time of the command after SIGTERM; nil while its deadline is not near.
    /// - `report`: receives the progress of the command, for the last time before this function returns.
    /// - Returns: the exit status; nil if a signal ended the command.
    /// - Throws: `WakeRelease` if the deadline was near before the command could be started. `CancellationError` if the
    ///   command was stopped and did not succeed.
    func run(
        _ work: CommandWork,
        graceLeft: @escaping @Sendable () -> Duration?,
        report: @escaping @Sendable (TaskProgress) -> Void = { _ in }
    ) async throws -> Int32? {
        // The deadline is already near. Returning the wake costs its push no attempt.
        if graceLeft() != nil { throw WakeRelease("its deadline was near before its command could be started") }
        let run = CommandRun(work, report: report) { graceLeft()?.milliseconds }
        let ending = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.submit { loop in
                    run.awaited(by: continuation)
                    loop.start(run)
                }
            }
        } onCancel: {
            self.submit { $0.stop(run) }
        }
        if case .notStarted(let reason) = ending { throw WakeRelease(reason) }
        if work.isFailure(exitStatus: ending.exitStatus) { try Task.checkCancellation() }
        return ending.exitStatus
    }

    /// Handles the end of a command's wake.
    func wakeEnded(_ wake: String) { self.submit { $0.wakeEnded(wake) } }

    /// Writes a line of this program to standard error, asynchronously.
    func log(_ line: String) { self.submit { $0.log(line) } }

    /// Ends the thread after the output is written. Running commands are killed, with all processes of their groups.
    ///
    /// - Returns: the failure that prevented commands from running; nil if there was none.
    func finish() async -> CommandFailure? {
        await withCheckedContinuation { continuation in
            self.finished.withLock { $0 = continuation }
            SignalPipe.wake()
        }
    }

    private func submit(_ work: @escaping @Sendable (CommandLoop) -> Void) {
        let isFirst = self.waiting.withLock { waiting in
            waiting.append(Work(run: work))
            return waiting.count == 1
        }
        if isFirst { SignalPipe.wake() }
    }

    private func run(_ loop: CommandLoop) {
        while true {
            let finished = self.finished.withLock { $0 }
            let work = self.waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
            for work in work { work.run(loop) }
            if let finished {
                loop.killAll()
                loop.writeLastLogs()
                return finished.resume(returning: loop.failure)
            }
            loop.turn()
        }
    }
}

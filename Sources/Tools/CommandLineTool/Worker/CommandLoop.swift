import Glibc
import Platform
import Synchronization
import WakeWorker
import Wire

/// The commands of a worker: one for each wake that it handles. Starts, feeds, reads, stops and reaps them.
///
/// It belongs to one thread, and waits in one place for all of them, for signals, and for whoever reads our output.
final class CommandLoop {
    /// What is run for each wake.
    struct Settings: Sendable {
        /// The program and its arguments.
        var command: [String]
        /// Whether the commands' output gets the wake's id on each line, or goes where ours goes as it is.
        var isOutputLogged: Bool
        /// The variables that every command finds in its environment, in addition to those of its wake.
        var variables: [String: String] = [:]
    }

    /// What signals ask for.
    struct SignalHandlers: Sendable {
        /// The first signal: no more wakes.
        let stop: @Sendable () -> Void
        /// Every other: the commands are to stop, too.
        let cancel: @Sendable () -> Void
    }

    /// A command that runs.
    private struct Job {
        var process: CommandProcess
        let run: CommandRun
        /// One for each of `CommandProcess.outputEnds`.
        var lines: [OutputLines]
        var progressLines = ProgressLines()
        var pacer = ProgressPacer()
        /// Whether a line that is no progress was said to be none.
        var isFaultTold = false
        /// When SIGKILL is due, once the command was told to stop; looked at again then if the deadline is only near.
        var killAt: Int64?
        /// When SIGKILL is due if nothing is known of a deadline.
        var killAtLatest: Int64 = 0
    }

    private static let killDelayMilliseconds: Int64 = 2000
    /// How long our own output may take at the end.
    private static let outputMilliseconds: Int64 = 2000
    /// The longest wait; nothing depends on it.
    private static let waitMilliseconds: Int64 = 60_000

    private let settings: Settings
    private let commandGuard: CommandGuard
    private let signals: Int32
    private var handlers: SignalHandlers?
    private var isStopping = false
    /// True if the log has said that the command cannot be started, and it has not been started since.
    private var isStartFailureTold = false
    private var jobs: [Int32: Job] = [:]
    /// Our standard output and error, as the commands' outputs go to them.
    private var logs = [OutputLog(STDOUT_FILENO), OutputLog(STDERR_FILENO)]
    private var buffer = [UInt8](repeating: 0, count: 65_536)
    /// Why commands can no longer be guarded, and so the worker has to end.
    private(set) var failure: CommandFailure?

    /// Starts the guard, and catches signals from now on. To be called before there is anything that the guard should
    /// not inherit.
    init(_ settings: Settings) throws(CommandFailure) {
        self.settings = settings
        self.commandGuard = try CommandGuard()
        guard let signals = SignalPipe.open([SIGCHLD, SIGTERM, SIGINT]) else {
            throw CommandFailure(.failed, "no pipe can be made: \(SystemError(errno).message)")
        }
        self.signals = signals
    }

    /// Says what signals do from now on.
    func begin(_ handlers: SignalHandlers) { self.handlers = handlers }

    /// Writes a line of our own to standard error.
    func log(_ line: String) { self.logs[1].appendOwn("wakegate: \(line)") }

    /// Waits until something happens, for whatever reason, and does what there is to do.
    func turn() {
        self.wait(SystemClock.monotonic)
        for signal in SignalPipe.read(self.signals) where signal != SIGCHLD && signal != SignalPipe.none {
            self.stopRequested()
        }
        self.killOverdue(SystemClock.monotonic)
        for pid in self.jobs.keys { self.exchange(with: pid) }
        for pid in self.jobs.keys { self.tellProgress(of: pid, SystemClock.monotonic) }
        while let pid = CommandProcess.ended() { self.childEnded(pid) }
        self.writeLogs()
    }

    /// Kills the commands that run still, which nobody waits for any more.
    func killAll() {
        for (pid, job) in self.jobs {
            job.process.signal(SIGKILL)
            self.log("the command of wake \(job.run.work.wake) ran still at the end, and was killed")
            self.jobs[pid] = nil
            job.run.end(.cutShort)
        }
    }

    /// Writes what is left of our output, for as long as somebody reads it.
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
            if let tellAt = job.pacer.nextMoment { next = min(next, tellAt) }
        }
        for log in self.logs where !log.queue.isEmpty {
            waits.append(Descriptor.Wait(log.descriptor, .writable))
        }
        Descriptor.wait(for: &waits, milliseconds: Int32(clamping: max(0, next - now)))
    }
}

// MARK: - One command

extension CommandLoop {
    /// Starts the command of a wake, unless it was stopped before.
    func start(_ run: CommandRun) {
        guard !run.isStopped else { return run.end(.cutShort) }
        let process = CommandProcess(self.settings, for: run.work, guardedBy: self.commandGuard)
        guard let process else {
            let reason = SystemError(errno).message
            return self.notStarted(run, "\(self.settings.command[0]) cannot be started: \(reason)")
        }
        if self.isStartFailureTold {
            self.isStartFailureTold = false
            self.log("\(self.settings.command[0]) can be started again")
        }
        let lines = CommandProcess.outputEnds.map { _ in OutputLines(prefix: run.work.wake) }
        self.jobs[process.pid] = Job(process: process, run: run, lines: lines)
        run.pid = process.pid
    }

    private func notStarted(_ run: CommandRun, _ reason: String) {
        if !self.isStartFailureTold {
            self.isStartFailureTold = true
            self.log(
                "\(reason); its wakes go back to the gateway for other workers, and after every third one this worker "
                    + "waits, up to a minute"
            )
        }
        run.end(.notStarted(reason))
    }

    /// SIGTERM now, and SIGKILL at the deadline if that is only near, or else after a while; a command that was not
    /// started yet never is.
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

    /// The wake of a command has ended: one that was told to stop may have less time than until its deadline.
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
            // The wake ended before its deadline.
            guard grace != nil || job.killAtLatest <= now else {
                self.jobs[pid]?.killAt = job.killAtLatest
                continue
            }
            job.process.signal(SIGKILL)
            self.jobs[pid]?.killAt = nil
        }
    }

    /// Gives a command more of its input, and takes a part of its output: a loud command leaves time for the others.
    private func exchange(with pid: Int32) {
        guard var job = self.jobs[pid] else { return }
        job.process.writeInput()
        for index in CommandProcess.outputEnds.indices { _ = self.takeOutput(index, of: &job) }
        _ = self.takeProgress(of: &job)
        self.jobs[pid] = job
    }

    /// Reads one output of a command once; whether there was anything.
    private func takeOutput(_ index: Int, of job: inout Job) -> Bool {
        let bytes = job.process.read(CommandProcess.outputEnds[index], into: &self.buffer)
        let now = SystemClock.monotonic
        for line in job.lines[index].received(bytes) { self.logs[index].append(line, now: now) }
        return !bytes.isEmpty
    }

    /// Reads what a command says of its progress once; whether there was anything.
    private func takeProgress(of job: inout Job) -> Bool {
        let bytes = job.process.read(CommandProcess.progressEnd, into: &self.buffer)
        let reading = job.progressLines.received(bytes)
        if let newest = reading.newest { job.pacer.reported(newest) }
        if let fault = reading.fault, !job.isFaultTold {
            job.isFaultTold = true
            let line = TerminalText.harmless(String(decoding: fault.prefix(100), as: UTF8.self))
            self.log(
                "the command of wake \(job.run.work.wake) said \"\(line)\" as its progress; lines such as "
                    + "\"progress 10/100 text\" are reported, and no others"
            )
        }
        return !bytes.isEmpty
    }

    private func tellProgress(of pid: Int32, _ now: Int64) {
        guard let progress = self.jobs[pid]?.pacer.due(now: now) else { return }
        self.jobs[pid]?.run.progress.yield(progress)
    }

    /// A command, or the guard of all, has ended.
    private func childEnded(_ pid: Int32) {
        guard var job = self.jobs.removeValue(forKey: pid) else {
            _ = CommandProcess.reap(pid)
            if pid == self.commandGuard.pid { self.guardEnded() }
            return
        }
        // What the command left running in its group has no wake to work for. The group's number stays its own until
        // the command is reaped, so nobody else is hit.
        job.process.signal(SIGKILL)
        self.commandGuard.forget(pid)
        let ending = self.ending(of: pid, job.run.work)
        self.takeLastOutput(of: &job)
        job.process.closeAll()
        if let last = job.pacer.ended() { job.run.progress.yield(last) }
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

    private func ending(of pid: Int32, _ work: CommandWork) -> CommandRun.Ending {
        let exitStatus = CommandProcess.reap(pid)
        if work.isFailure(exitStatus: exitStatus) {
            let how = exitStatus.map { "exit status \($0)" } ?? "a signal"
            self.log("the command of wake \(work.wake) ended with \(how)")
        }
        return exitStatus.map { .exited($0) } ?? .cutShort
    }

    /// What the pipes still hold; what a process that left the group writes later is not waited for.
    private func takeLastOutput(of job: inout Job) {
        for index in CommandProcess.outputEnds.indices {
            // A pipe holds 64 KiB, unless the command has asked for more: at most a megabyte without being root.
            for _ in 0..<16 where self.takeOutput(index, of: &job) {}
            if let line = job.lines[index].ended() { self.logs[index].append(line, now: SystemClock.monotonic) }
        }
        for _ in 0..<16 where self.takeProgress(of: &job) {}
    }
}

/// The command of one wake, for the task that awaits its end.
///
/// `@unchecked Sendable`: it is touched on its `CommandThread` alone.
final class CommandRun: @unchecked Sendable {
    /// How a command has ended.
    enum Ending: Hashable, Sendable {
        case exited(Int32)
        /// A signal ended the command, or the run was stopped before the command started.
        case cutShort
        /// The command could not be started, for this reason.
        case notStarted(String)

        /// Nil when it has none.
        var exitStatus: Int32? {
            switch self {
            case .exited(let status): status
            case .cutShort, .notStarted: nil
            }
        }
    }

    let work: CommandWork
    /// Where the command's progress is told.
    let progress: AsyncStream<CommandProgress>.Continuation
    /// Of the command, once it was started.
    var pid: Int32?
    /// Whether nobody needs it any more.
    var isStopped = false
    /// The milliseconds that a command has after SIGTERM; nil unless its deadline is only near.
    var graceLeft: @Sendable () -> Int64?
    private var continuation: CheckedContinuation<Ending, Never>?

    init(
        _ work: CommandWork,
        progress: AsyncStream<CommandProgress>.Continuation,
        graceLeft: @escaping @Sendable () -> Int64?
    ) {
        self.graceLeft = graceLeft
        self.work = work
        self.progress = progress
    }

    func awaited(by continuation: CheckedContinuation<Ending, Never>) {
        self.continuation = continuation
    }

    /// Nothing comes of the command any more.
    func end(_ ending: Ending) {
        self.progress.finish()
        self.continuation?.resume(returning: ending)
        self.continuation = nil
    }
}

/// The thread of a `CommandLoop`, and the way to it from tasks.
final class CommandThread: Sendable {
    /// Something to do on the thread. A struct, so that the closure is not wrapped anew at each read.
    private struct Work: Sendable {
        let run: @Sendable (CommandLoop) -> Void
    }

    private let waiting = Mutex<[Work]>([])
    private let finished = Mutex<CheckedContinuation<CommandFailure?, Never>?>(nil)
    private let begin: @Sendable (CommandThread) -> Void

    /// Starts the guard of the commands, but not the thread yet.
    ///
    /// - Throws: when no process or pipe can be made.
    init(_ settings: CommandLoop.Settings) throws(CommandFailure) {
        // The loop moves to the thread, and nobody else keeps it.
        let moved = Handover(try CommandLoop(settings))
        self.begin = { thread in thread.run(moved.take()) }
    }

    /// Starts the thread.
    ///
    /// - Throws: when the system has no room for it.
    func start(_ handlers: CommandLoop.SignalHandlers) throws(CommandFailure) {
        self.submit { $0.begin(handlers) }
        do throws(ThreadFailure) { try NamedThread("commands") { self.begin(self) } } catch {
            throw CommandFailure(.failed, error.message)
        }
    }

    /// Runs the command of a wake to its end. When the task is cancelled, the command is told to stop.
    ///
    /// - `graceLeft`: the time that a command has after SIGTERM; nil unless its deadline is only near.
    /// - `tell`: tells how far the command is; what comes meanwhile is left out but for the newest. The last report is
    ///   told before this returns, unless the task is cancelled.
    /// - Returns: its exit status; nil for a command that a signal ended.
    /// - Throws: `WakeRelease` for a command that could not be started; `CancellationError` when it had to stop and did
    ///   not succeed all the same.
    func run(
        _ work: CommandWork,
        graceLeft: @escaping @Sendable () -> Duration?,
        tell: @escaping @Sendable (CommandProgress) async -> Void = { _ in }
    ) async throws -> Int32? {
        let (progress, source) = AsyncStream.makeStream(of: CommandProgress.self, bufferingPolicy: .bufferingNewest(1))
        let run = CommandRun(work, progress: source) {
            graceLeft().map { $0.components.seconds * 1000 + $0.components.attoseconds / 1_000_000_000_000_000 }
        }
        async let telling: Void = { for await report in progress { await tell(report) } }()
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
        await telling
        if case .notStarted(let reason) = ending { throw WakeRelease(reason) }
        if work.isFailure(exitStatus: ending.exitStatus) { try Task.checkCancellation() }
        return ending.exitStatus
    }

    /// The wake of a command has ended.
    func wakeEnded(_ wake: String) { self.submit { $0.wakeEnded(wake) } }

    /// Writes a line of our own to standard error, soon.
    func log(_ line: String) { self.submit { $0.log(line) } }

    /// Ends the thread once our output is written. A command that runs still is killed, with all that it started.
    ///
    /// - Returns: why commands could no longer be run, if so.
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

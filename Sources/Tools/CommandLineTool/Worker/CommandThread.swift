import Platform
import Synchronization
import WakeWorker

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
    /// - `tell`: tells how far the command is; what comes meanwhile is left out but for the newest. The last report is
    ///   told before this returns, unless the task is cancelled.
    /// - Returns: its exit status; nil for a command that a signal ended.
    /// - Throws: `WakeRelease` for a command that could not be started; `CancellationError` when it had to stop and did
    ///   not succeed all the same.
    func run(
        _ work: CommandWork,
        tell: @escaping @Sendable (CommandProgress) async -> Void = { _ in }
    ) async throws -> Int32? {
        let (progress, source) = AsyncStream.makeStream(of: CommandProgress.self, bufferingPolicy: .bufferingNewest(1))
        let run = CommandRun(work, progress: source)
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

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
    private var continuation: CheckedContinuation<Ending, Never>?

    init(_ work: CommandWork, progress: AsyncStream<CommandProgress>.Continuation) {
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

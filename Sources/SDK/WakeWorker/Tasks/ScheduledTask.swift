import Synchronization

/// One launch of a background task, for a handler in the form of callbacks: the counterpart of iOS's `BGTask`.
///
/// See ``BackgroundTaskScheduler/register(forTaskWithIdentifier:launchHandler:)``. When nobody keeps it any more and
/// ``setTaskCompleted(success:)`` was not called, it has failed.
public final class ScheduledTask: Sendable {
    /// What there is to know of the launch.
    public let context: BackgroundTaskContext
    private let call: CompletionCall
    private let expiration: ExpirationBox

    /// The identifier of the task.
    public var identifier: String { self.context.identifier }

    /// How far it is, for whoever does it to say: see ``BackgroundTaskContext/progress``.
    public var progress: BackgroundTaskProgress { self.context.progress }

    /// Shows a person other texts: see ``BackgroundTaskContext/update(title:subtitle:)``.
    ///
    /// - Parameters:
    ///   - title: the title; nil leaves it as it is.
    ///   - subtitle: the subtitle; nil leaves it as it is.
    public func update(title: String? = nil, subtitle: String? = nil) {
        self.context.update(title: title, subtitle: subtitle)
    }

    /// Is called when its time is over before it was completed, or its connection broke: stop now, and do not call
    /// ``setTaskCompleted(success:)``, which comes too late. One that is set after that is called at once.
    public var expirationHandler: (@Sendable () -> Void)? {
        get { self.expiration.handler }
        set { self.expiration.set(newValue) }
    }

    private init(_ context: BackgroundTaskContext, _ completion: Completion, _ expiration: ExpirationBox) {
        self.context = context
        self.call = CompletionCall(completion)
        self.expiration = expiration
    }

    /// The task is done. Only the first call counts.
    ///
    /// - Parameter success: whether it did what it was for.
    public func setTaskCompleted(success: Bool) {
        self.call.call(success ? .newData : .failed)
        self.expiration.complete()
    }

    /// Hands a launch to a handler, and waits until it is completed.
    ///
    /// - Throws: ``Failed`` when it was not done.
    static func run(_ context: BackgroundTaskContext, _ handler: @Sendable (ScheduledTask) -> Void) async throws {
        let (completion, expiration) = (Completion(), ExpirationBox())
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                completion.awaited(by: continuation)
                handler(ScheduledTask(context, completion, expiration))
            }
        } onCancel: {
            if completion.complete(.failed) { expiration.expire() }
        }
        guard result == .newData else { throw Failed() }
    }

    /// The handler of a task said that it failed, said nothing, or its time was over.
    struct Failed: Error, CustomStringConvertible {
        var description: String { "the task was completed without success, or not at all" }
    }
}

/// The expiration handler of a task: it outlives the task, which may be let go of before, and may itself keep the task,
/// so it is kept no longer than it may be called.
private final class ExpirationBox: Sendable {
    private enum State {
        case running((@Sendable () -> Void)?)
        case expired
        case completed
    }

    private let state = Mutex(State.running(nil))

    var handler: (@Sendable () -> Void)? {
        self.state.withLock { state in
            if case .running(let handler) = state { return handler }
            return nil
        }
    }

    func set(_ handler: (@Sendable () -> Void)?) {
        let isLate = self.state.withLock { state in
            switch state {
            case .running:
                state = .running(handler)
                return false
            case .expired: return true
            case .completed: return false
            }
        }
        if isLate { handler?() }
    }

    func expire() {
        let handler = self.end(.expired)
        handler?()
    }

    func complete() { _ = self.end(.completed) }

    /// - Returns: the handler, when it did not end before.
    private func end(_ ending: State) -> (@Sendable () -> Void)? {
        self.state.withLock { state in
            guard case .running(let handler) = state else { return nil }
            state = ending
            return handler
        }
    }
}

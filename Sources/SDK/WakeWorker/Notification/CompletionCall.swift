import Synchronization

extension WakeLease {
    /// Runs a handler that uses callbacks.
    ///
    /// - Parameters:
    ///   - executor: the executor that runs `start`; nil for Swift's global executor.
    ///   - start: starts the work. It must keep the argument until the work has ended.
    /// - Returns: the result that the handler has set. It is `failed` if the handler set none before the wake ended.
    func runCallbacks(
        on executor: (any TaskExecutor)?,
        _ start: (CompletionCall) -> Void
    ) async -> BackgroundFetchResult {
        let (completion, expiration) = (Completion<BackgroundFetchResult>(), ExpirationBox())
        return await withTaskCancellationHandler {
            await withTaskExecutorPreference(executor) {
                await withCheckedContinuation { continuation in
                    completion.awaited(by: continuation)
                    start(CompletionCall(completion, expiration))
                }
            }
        } onCancel: {
            if self.graceLeft != nil {
                self.fail(completion)
                expiration.expire()
            } else if completion.complete(.failed) {
                expiration.expire()
            }
        }
    }
}

/// The two functions between a handler that uses callbacks and its worker: the handler calls one to set the result, and
/// the worker calls the other before the deadline. If the object is released before a result is set, the wake fails.
final class CompletionCall: Sendable {
    private let completion: Completion<BackgroundFetchResult>
    let expiration: ExpirationBox

    fileprivate init(_ completion: Completion<BackgroundFetchResult>, _ expiration: ExpirationBox) {
        self.completion = completion
        self.expiration = expiration
    }

    deinit {
        self.completion.complete(.failed)
    }

    /// The function that is called when the deadline is near or the wake has ended, unless a result was set. A function
    /// that is set after that is called immediately, unless a result was set.
    var expirationHandler: (@Sendable () -> Void)? {
        get { self.expiration.handler }
        set { if self.expiration.set(newValue) { newValue?() } }
    }

    /// Sets the result. Only the first call has an effect.
    func complete(_ result: BackgroundFetchResult) {
        // Before the result, so that no expiration follows it.
        self.expiration.complete()
        self.completion.complete(result)
    }
}

/// The owner of an expiration handler. The handler may retain the `CompletionCall`, so the box releases a handler that
/// can no longer be called.
final class ExpirationBox: Sendable {
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

    /// - Returns: true if the task has expired and is not completed. The caller must then call the handler.
    func set(_ handler: (@Sendable () -> Void)?) -> Bool {
        self.state.withLock { state in
            switch state {
            case .running:
                state = .running(handler)
                return false
            case .expired: return true
            case .completed: return false
            }
        }
    }

    func expire() {
        let handler: (@Sendable () -> Void)? = self.state.withLock { state in
            guard case .running(let handler) = state else { return nil }
            state = .expired
            return handler
        }
        handler?()
    }

    func complete() {
        // Returned, so that the handler is released after the lock.
        _ = self.state.withLock { exchange(&$0, with: .completed) }
    }
}

import Synchronization

/// The callback form of a handler, as an app's delegate has it.
///
/// ```swift
/// final class App: RemoteNotificationDelegate {
///     func worker(
///         _ worker: WakeWorker,
///         didReceiveRemoteNotification notification: WakeNotification,
///         fetchCompletionHandler completionHandler: @escaping @Sendable (BackgroundFetchResult) -> Void
///     ) {
///         completionHandler(.newData)
///     }
/// }
/// ```
public protocol RemoteNotificationDelegate: AnyObject, Sendable {
    /// A wake has come.
    ///
    /// - Parameters:
    ///   - worker: the worker that took it.
    ///   - notification: the wake.
    ///   - completionHandler: to be called, once and from anywhere, when it is handled. When it is let go of without a
    ///     call, the wake has failed.
    func worker(
        _ worker: WakeWorker,
        didReceiveRemoteNotification notification: WakeNotification,
        fetchCompletionHandler completionHandler: @escaping @Sendable (BackgroundFetchResult) -> Void
    )

    /// The time of a wake is over before its completion handler was called, or its connection broke: stop now. A call
    /// of the completion handler comes too late.
    ///
    /// - Parameters:
    ///   - worker: the worker that took it.
    ///   - notification: the wake.
    func worker(_ worker: WakeWorker, didExpire notification: WakeNotification)
}

extension RemoteNotificationDelegate {
    /// Does nothing.
    ///
    /// - Parameters:
    ///   - worker: the worker that took it.
    ///   - notification: the wake.
    public func worker(_ worker: WakeWorker, didExpire notification: WakeNotification) {}
}

extension WakeWorker {
    /// Hands wakes to a delegate until the task is cancelled, or ``stop()`` is called.
    ///
    /// - Parameter delegate: it is kept until `run` returns.
    /// - Throws: ``WakeWorkerError``, as ``run(_:)`` does.
    ///
    /// ```swift
    /// try await worker.run(delegate: App())
    /// ```
    public func run(delegate: some RemoteNotificationDelegate) async throws(WakeWorkerError) {
        try await self.run { [weak self] notification in
            guard let worker = self else { return .failed }
            let completion = Completion()
            return await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    completion.awaited(by: continuation)
                    let once = CompletionCall(completion)
                    delegate.worker(worker, didReceiveRemoteNotification: notification) { once.call($0) }
                }
            } onCancel: {
                guard completion.complete(.failed) else { return }
                delegate.worker(worker, didExpire: notification)
            }
        }
    }
}

/// The first result that comes, for whoever awaits it.
private final class Completion: Sendable {
    private enum State {
        case begun
        case awaited(CheckedContinuation<BackgroundFetchResult, Never>)
        case completed(BackgroundFetchResult)
    }

    private let state = Mutex(State.begun)

    func awaited(by continuation: CheckedContinuation<BackgroundFetchResult, Never>) {
        let early: BackgroundFetchResult? = self.state.withLock { state in
            if case .completed(let result) = state { return result }
            state = .awaited(continuation)
            return nil
        }
        if let early { continuation.resume(returning: early) }
    }

    /// - Returns: false when a result came before.
    @discardableResult
    func complete(_ result: BackgroundFetchResult) -> Bool {
        let before = self.state.withLock { state in
            defer { if case .completed = state {} else { state = .completed(result) } }
            return state
        }
        switch before {
        case .begun: return true
        case .awaited(let continuation):
            continuation.resume(returning: result)
            return true
        case .completed: return false
        }
    }
}

/// What a completion handler keeps: when it goes without a call, the wake has failed.
private final class CompletionCall: Sendable {
    private let completion: Completion

    init(_ completion: Completion) {
        self.completion = completion
    }

    deinit {
        self.completion.complete(.failed)
    }

    func call(_ result: BackgroundFetchResult) {
        self.completion.complete(result)
    }
}

/// What handling a wake came to, as `UIBackgroundFetchResult` says it on iOS.
public enum BackgroundFetchResult: String, Hashable, Sendable, CaseIterable {
    /// There was new data, and it was fetched. The device's penalty for wakes that took too long is taken back.
    case newData
    /// There was nothing new.
    case noData
    /// Something went wrong: the push is launched again later, as long as it has attempts left.
    case failed
}

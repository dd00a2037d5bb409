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

    /// The deadline of a wake is near, `policy.expirationLead` before it, and its completion handler was not called:
    /// clean up and call it. Is called as well when the wake ended before, or its connection broke: a call of the
    /// completion handler comes too late then.
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
    /// try await worker.runDelegate(App())
    /// ```
    public func runDelegate(_ delegate: some RemoteNotificationDelegate) async throws(WakeWorkerError) {
        try await self.run { [weak self] notification in
            guard let worker = self else { return .failed }
            let completion = Completion()
            let order = DelegateOrder()
            let expire: @Sendable () -> Void = {
                if notification.graceLeft != nil {
                    guard !completion.isCompleted else { return }
                    notification.fail(completion)
                } else {
                    guard completion.complete(.failed) else { return }
                }
                delegate.worker(worker, didExpire: notification)
            }
            return await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    completion.awaited(by: continuation)
                    let once = CompletionCall(completion)
                    let isLate = order.begins()
                    delegate.worker(worker, didReceiveRemoteNotification: notification) { once.call($0) }
                    if isLate { expire() }
                }
            } onCancel: {
                if order.cancelled() { expire() }
            }
        }
    }
}

/// The order of a delegate's two calls: `didReceive` is called before `didExpire`.
private final class DelegateOrder: Sendable {
    private static let begun: UInt8 = 1
    private static let cancelled: UInt8 = 2

    private let state = Atomic<UInt8>(0)

    /// Notes that `didReceive` is called next.
    ///
    /// - Returns: true if the handler was cancelled before, so that `didExpire` must follow.
    func begins() -> Bool {
        self.state.exchange(Self.begun, ordering: .acquiringAndReleasing) == Self.cancelled
    }

    /// Notes that the handler is cancelled.
    ///
    /// - Returns: true if `didReceive` was called, so that `didExpire` may be.
    func cancelled() -> Bool {
        self.state.exchange(Self.cancelled, ordering: .acquiringAndReleasing) == Self.begun
    }
}

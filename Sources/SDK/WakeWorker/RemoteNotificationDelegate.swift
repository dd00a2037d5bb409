import Synchronization

/// A handler of wakes in the form of a delegate with callbacks.
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
    /// Handles a wake.
    ///
    /// - Parameters:
    ///   - worker: the worker that received the wake.
    ///   - notification: the wake.
    ///   - completionHandler: the function to call once, on any thread, when the wake is handled. If it is released
    ///     without a call, the wake fails.
    func worker(
        _ worker: WakeWorker,
        didReceiveRemoteNotification notification: WakeNotification,
        fetchCompletionHandler completionHandler: @escaping @Sendable (BackgroundFetchResult) -> Void
    )

    /// Notifies the delegate that the deadline is near and the completion handler was not called. The delegate should
    /// clean up and call it.
    ///
    /// The time from this call to the deadline is `policy.expirationLead`. The method is also called if the wake ended
    /// earlier or its connection broke. The completion handler then has no effect.
    ///
    /// - Parameters:
    ///   - worker: the worker that received the wake.
    ///   - notification: the wake.
    func worker(_ worker: WakeWorker, didExpire notification: WakeNotification)
}

extension RemoteNotificationDelegate {
    /// Does nothing.
    ///
    /// - Parameters:
    ///   - worker: the worker that received the wake.
    ///   - notification: the wake.
    public func worker(_ worker: WakeWorker, didExpire notification: WakeNotification) {}
}

extension WakeWorker {
    /// Passes wakes to a delegate until the task is cancelled or ``stop()`` is called.
    ///
    /// - Parameter delegate: the delegate. It is retained until `run` returns.
    /// - Throws: ``WakeWorkerError``, as ``run(_:)`` does.
    ///
    /// ```swift
    /// try await worker.runDelegate(App())
    /// ```
    public func runDelegate(_ delegate: some RemoteNotificationDelegate) async throws(WakeWorkerError) {
        try await self.run { [weak self] notification in
            guard let worker = self else { return .failed }
            let completion = Completion<BackgroundFetchResult>()
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

/// The order of the two calls of a delegate: `didReceive` is called before `didExpire`.
private final class DelegateOrder: Sendable {
    private static let begun: UInt8 = 1
    private static let cancelled: UInt8 = 2

    private let state = Atomic<UInt8>(0)

    /// Records that `didReceive` is about to be called.
    ///
    /// - Returns: true if the handler was already cancelled. `didExpire` must then follow.
    func begins() -> Bool {
        self.state.exchange(Self.begun, ordering: .acquiringAndReleasing) == Self.cancelled
    }

    /// Records that the handler was cancelled.
    ///
    /// - Returns: true if `didReceive` was called. `didExpire` may then be called.
    func cancelled() -> Bool {
        self.state.exchange(Self.cancelled, ordering: .acquiringAndReleasing) == Self.begun
    }
}

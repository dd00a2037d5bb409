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
    /// The worker calls the method on another thread, possibly during the call that handles the wake, or just before
    /// it. The method must not wait for that call, because it would delay the warnings of other wakes.
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
            await self?.deliver(notification, to: delegate) ?? .failed
        }
    }

    /// Passes a wake to a delegate.
    ///
    /// - Returns: the result that the delegate has set. It is `failed` if it set none before the wake ended.
    package func deliver(
        _ notification: WakeNotification,
        to delegate: some RemoteNotificationDelegate
    ) async -> BackgroundFetchResult {
        let expire: @Sendable () -> Void = { delegate.worker(self, didExpire: notification) }
        return await notification.lease.runCallbacks(on: nil) { call in
            // Set before the first call, because the delegate may work synchronously. If the wake has already expired,
            // `didExpire` is called after the first call.
            let isLate = call.expiration.set(expire)
            delegate.worker(self, didReceiveRemoteNotification: notification) { call.complete($0) }
            if isLate { call.expirationHandler = expire }
        }
    }
}

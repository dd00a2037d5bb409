/// What programs call that were written when three functions were named `run`.
extension WakeWorker {
    /// Handles the background tasks that are registered, as ``runTasks()`` does, whose former name this is.
    ///
    /// - Throws: ``WakeWorkerError``, as ``runTasks()`` does.
    ///
    /// ```swift
    /// try await worker.runTasks()
    /// ```
    @available(*, deprecated, renamed: "runTasks()")
    public func run() async throws(WakeWorkerError) { try await self.runTasks() }

    // Any delegate, and not some: what is generic might be a closure to the compiler, which would then say of a handler
    // with a typo that it is no delegate.
    /// Has an app's delegate handle each wake, as ``runDelegate(_:)`` does, whose former name this is.
    ///
    /// - Parameter delegate: handles the wakes.
    /// - Throws: ``WakeWorkerError``, as ``runDelegate(_:)`` does.
    ///
    /// ```swift
    /// try await worker.runDelegate(App())
    /// ```
    @available(*, deprecated, renamed: "runDelegate(_:)")
    public func run(delegate: any RemoteNotificationDelegate) async throws(WakeWorkerError) {
        try await self.runDelegate(delegate)
    }
}

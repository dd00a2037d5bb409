import HTTPClient
import Wire

extension WakeWorker {
    /// Registers the handler of a background task or session, as `backgroundTask` does in SwiftUI.
    ///
    /// A handler that returns has succeeded, and one that throws has failed. The task it runs in is cancelled at its
    /// expiration, of which ``BackgroundTaskContext/expirationReason`` says why. It is called for every launch of its
    /// identifier, whatever kind the request has. A continued task has its time anew whenever the handler says that
    /// more of it is done.
    ///
    /// - Parameters:
    ///   - task: what it handles.
    ///   - action: the handler.
    /// - Throws: ``WakeWorkerError``: `duplicateTask` when the identifier has a handler, `alreadyRunning` after `run`
    ///   was called, `badArgument` for an identifier that is none, and for more than 64.
    ///
    /// ```swift
    /// try worker.backgroundTask(.appRefresh("com.example.app.refresh")) { context in
    ///     try await context.scheduler.submit(.appRefresh(context.identifier, earliestBegin: .now + .minutes(15)))
    ///     try await refresh(context.deviceToken)
    /// }
    /// ```
    public func backgroundTask(
        _ task: BackgroundTask,
        action: @escaping @Sendable (BackgroundTaskContext) async throws -> Void
    ) throws(WakeWorkerError) {
        try self.registry.register(task.name, .context(action))
    }

    /// What the workers that are connected to the topic have for background tasks now, this one included: the
    /// counterpart of iOS's `supportedResources`.
    ///
    /// - Returns: the resources.
    /// - Throws: ``WakeWorkerError``: `refused` when the gateway does not let this worker in, and what keeps a request
    ///   from it.
    ///
    /// ```swift
    /// let resources = try await worker.supportedResources()
    /// try await worker.scheduler.submit(
    ///     .continued("com.example.app.export.film", requiredResources: resources.intersection(.gpu))
    /// )
    /// ```
    public func supportedResources() async throws(WakeWorkerError) -> BackgroundTaskResources {
        let response = try await self.caller.answer("GET", "\(self.request.topicPath)/resources", nil)
        guard let resources = GatewayEndpoint.object(response.body)?["resources"] else {
            throw WakeWorkerError(.badAnswer, "the gateway's answer names no resources; see the gateway's version")
        }
        return BackgroundTaskResources(names: resources.elements.compactMap(\.text))
    }

    /// Registers what takes every launch of a task or session, of any kind, as it came.
    package func backgroundTask(
        _ name: BackgroundTaskName,
        launched action: @escaping @Sendable (TaskLaunch) async throws -> Void
    ) throws(WakeWorkerError) {
        try self.registry.register(name, .launch(action))
    }

    /// Submits and cancels requests of background tasks for the worker's device.
    ///
    /// A worker that was made with no device, or with several, has no device of its own: ``scheduler(for:)`` names one.
    ///
    /// ```swift
    /// try await worker.scheduler.submit(.processing("com.example.app.db-cleanup", requiresExternalPower: true))
    /// ```
    public var scheduler: BackgroundTaskScheduler {
        let devices = self.request.devices
        if devices.count == 1 { return self.scheduler(for: devices[0]) }
        return BackgroundTaskScheduler(.several(devices.count), registry: self.registry)
    }

    /// Submits and cancels requests of background tasks for a device.
    ///
    /// - Parameter deviceToken: the device's token.
    /// - Returns: what does so.
    ///
    /// ```swift
    /// try await worker.scheduler(for: token).cancelAll()
    /// ```
    public func scheduler(for deviceToken: String) -> BackgroundTaskScheduler {
        BackgroundTaskScheduler(.token(deviceToken, self.caller), registry: self.registry)
    }

    /// The conditions of the worker's devices, or of any of its topic, whenever they change: the counterpart of iOS's
    /// notifications of power, heat and background refresh.
    ///
    /// Ask for it before `run`, which subscribes to what was asked for. It has one reader; a slow one misses the
    /// oldest. What changes while there is no connection is not told.
    ///
    /// ```swift
    /// let changes = worker.conditionsChanges
    /// Task {
    ///     for await change in changes where change.conditions.isLowPowerMode == true { await pause() }
    /// }
    /// ```
    public var conditionsChanges: AsyncStream<DeviceConditionsChange> {
        self.registry.wantConditions()
        return self.conditionsStream
    }
}

import HTTPClient
import Platform
import Synchronization
import Wire

/// A worker. It subscribes to the wakes of a topic and passes each wake to a handler.
///
/// ```swift
/// let worker = try WakeWorker(gateway: "https://gateway.example.com:2197", topic: "com.example.news")
/// try await worker.run { notification in
///     try await refresh(notification.deviceToken) ? .newData : .noData
/// }
/// ```
///
/// `run` ends after its task was cancelled or ``stop()`` was called, as soon as all started work has ended. Until then,
/// the worker subscribes again whenever the connection breaks. It first waits for a random time that increases with
/// each failure.
///
/// All workers of a process share one network thread. Over TLS, the requests of workers with the same certificates
/// share connections to a gateway. A connection carries at most 1,000 open streams, or fewer if the gateway's limit is
/// lower; for more, another connection is opened. Without TLS, each request uses its own connection.
public final class WakeWorker: Sendable {
    /// The default maximum number of wakes that are handled concurrently.
    public static let defaultSlots = 16

    /// The default silence after which the worker considers the connection to the gateway dead.
    public static let defaultSilenceLimit = Duration.milliseconds(WorkerTiming().silenceMax)

    /// The default maximum time from the first ``stop()`` until `run` returns.
    public static let defaultStopLimit = Duration.milliseconds(StopStateMachine.limitByDefault)

    /// The worker's events, for logs and metrics. The sequence supports one reader. If the reader is slow, the oldest
    /// events are dropped.
    ///
    /// ```swift
    /// Task {
    ///     for await event in worker.events {
    ///         if case .disconnected(let reason, let wait) = event { log("\(reason.message); again in \(wait)") }
    ///     }
    /// }
    /// ```
    public let events: AsyncStream<WakeWorkerEvent>

    let request: SubscriptionRequest
    let thread: HTTPThread
    private let cancellations: CancellationThread
    let reports = MachineReports()
    let registry = BackgroundTaskRegistry()
    let eventSource: AsyncStream<WakeWorkerEvent>.Continuation
    let conditionsStream: AsyncStream<DeviceConditionsChange>
    private let conditionsSource: AsyncStream<DeviceConditionsChange>.Continuation
    private let running = Mutex<WorkerSession?>(nil)

    /// Creates a worker. It sends nothing before `run` is called.
    ///
    /// - Parameters:
    ///   - gateway: the address of the gateway's edge: `https://HOST:PORT`, `http://HOST:PORT` for its plain listener,
    ///     or `unix:/PATH`.
    ///   - topic: the topic to subscribe to, which APNs calls the app's bundle identifier.
    ///   - credentials: the credentials of the worker and the certificate authorities that it trusts.
    ///   - slots: the maximum number of wakes that are handled concurrently, 1 to 4096. The worker stores at most about
    ///     twice as many wakes.
    ///   - devices: the tokens of the devices to subscribe to, at most 64; empty for all devices of the topic.
    ///   - resources: the resources of this machine that background tasks may use.
    ///   - name: the name that the gateway shows to operators; by default the host name.
    ///   - silenceLimit: the silence, 20 to 300 seconds, after which the worker subscribes again over another
    ///     connection. A gateway sends data at least every 15 seconds.
    ///   - stopLimit: the maximum time from the first stop request until `run` returns, 5 to 86,400 seconds. The last
    ///     ten seconds, or the last quarter if that is shorter, are reserved for the delivery of results. Handlers that
    ///     still run at that time are cancelled.
    /// - Throws: ``WakeWorkerError``: `badArgument`, or `unavailable` if the machine cannot start a thread.
    public convenience init(
        gateway: String,
        topic: String,
        credentials: GatewayCredentials = .none,
        slots: Int = WakeWorker.defaultSlots,
        devices: [String] = [],
        resources: BackgroundTaskResources = [],
        name: String? = nil,
        silenceLimit: Duration = WakeWorker.defaultSilenceLimit,
        stopLimit: Duration = WakeWorker.defaultStopLimit
    ) throws(WakeWorkerError) {
        try self.init(
            SubscriptionRequest(
                GatewayEndpoint(gateway, credentials),
                topic: topic,
                slots: slots,
                devices: devices,
                resources: resources,
                name: name ?? WakeWorker.hostName,
                silenceLimit: silenceLimit,
                stopLimit: stopLimit
            )
        )
    }

    package init(_ request: SubscriptionRequest) throws(WakeWorkerError) {
        self.request = request
        do throws(HTTPClientError) {
            self.thread = try HTTPThread.shared()
        } catch {
            throw self.request.endpoint.error(error)
        }
        do throws(ThreadFailure) {
            self.cancellations = try CancellationThread.shared()
        } catch {
            throw WakeWorkerError(.unavailable, error.message)
        }
        (self.events, self.eventSource) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(256))
        (self.conditionsStream, self.conditionsSource) = AsyncStream.makeStream(
            bufferingPolicy: .bufferingNewest(256)
        )
    }

    deinit {
        self.eventSource.finish()
        self.conditionsSource.finish()
    }

    /// The object that sends requests to the gateway outside of the subscription.
    var caller: GatewayCaller { GatewayCaller(endpoint: self.request.endpoint, thread: self.thread) }

    /// Handles pushes and the registered background tasks until the task is cancelled or ``stop()`` is called.
    ///
    /// The handler of each wake runs in a separate task, which is cancelled when the wake expires or the connection
    /// breaks. After a break, the gateway gives the wake to another worker. If a handler throws an error, the wake
    /// fails.
    ///
    /// Cancelling the task that called `run` is a normal stop. `run` then lets the running handlers finish and delivers
    /// their results before it returns, within the worker's `stopLimit`.
    ///
    /// - Parameter handler: the function that handles a wake and returns the result.
    /// - Throws: ``WakeWorkerError`` for a permanent error: the gateway refuses this worker, or this worker does not
    ///   trust the gateway's certificate. An unreachable gateway is not an error, because the worker tries again.
    ///
    /// ```swift
    /// try await worker.run { notification in
    ///     guard notification.timeLeft > .seconds(5) else { return .failed }
    ///     return .noData
    /// }
    /// ```
    public func run(
        _ handler: @escaping @Sendable (WakeNotification) async throws -> BackgroundFetchResult
    ) async throws(WakeWorkerError) {
        try await self.handle(pushes: handler)
    }

    /// Handles the registered background tasks, without pushes, until the task is cancelled or ``stop()`` is called.
    ///
    /// - Throws: ``WakeWorkerError``: `badArgument` if no handler is registered, and the errors of ``run(_:)``.
    ///
    /// ```swift
    /// try worker.backgroundTask(.processing("com.example.app.db-cleanup")) { _ in try await cleanUp() }
    /// try await worker.runTasks()
    /// ```
    public func runTasks() async throws(WakeWorkerError) {
        try await self.handle(pushes: nil)
    }

    private func handle(pushes handler: WorkerHandlers.PushHandler?) async throws(WakeWorkerError) {
        let registrations = self.registry.seal()
        guard handler != nil || !registrations.tasks.isEmpty else {
            throw WakeWorkerError(
                .badArgument,
                "no handler is registered; call backgroundTask(_:action:) before runTasks(), or give run(_:) a handler "
                    + "of pushes"
            )
        }
        let session = WorkerSession(
            self.request,
            thread: self.thread,
            cancellations: self.cancellations,
            handlers: WorkerHandlers(
                pushes: handler,
                tasks: registrations.tasks,
                conditions: registrations.wantsConditions ? self.conditionsSource : nil,
                caller: self.caller,
                registry: self.registry
            ),
            events: self.eventSource,
            reports: self.reports
        )
        let isFirst = self.running.withLock { running in
            guard running == nil else { return false }
            running = session
            return true
        }
        guard isFirst else {
            throw WakeWorkerError(.alreadyRunning, "this worker runs already; make another one, or give it more slots")
        }
        defer { self.running.withLock { $0 = nil } }
        let failure = await withTaskCancellationHandler {
            await withCheckedContinuation { ending in
                self.thread.submit { session.begin(ending, on: $0) }
            }
        } onCancel: {
            self.thread.submit { session.stopRequested(on: $0) }
        }
        if let failure { throw failure }
    }

    /// Stops the worker. `run` returns after the running handlers have ended and their results were delivered.
    ///
    /// The worker asks the gateway to give new wakes to other workers, so no wake is lost. If the gateway does not
    /// respond, the worker tries to deliver results for ten seconds after the last handler has ended. In any case,
    /// `run` returns within the worker's `stopLimit`.
    ///
    /// ```swift
    /// worker.stop()
    /// ```
    public func stop() {
        guard let session = self.running.withLock({ $0 }) else { return }
        self.thread.submit { session.stopRequested(on: $0) }
    }

    /// Stops the worker as ``stop()`` does, and also cancels the running handlers. Call this function for a second stop
    /// request.
    ///
    /// `run` returns after the handlers have ended and their results were delivered, but within five seconds in any
    /// case. The delivery of results takes at most two seconds.
    ///
    /// ```swift
    /// worker.cancelHandlers()
    /// ```
    public func cancelHandlers() {
        guard let session = self.running.withLock({ $0 }) else { return }
        self.thread.submit { session.cancelRequested(on: $0) }
    }

    /// Finishes `events` after the events in its buffer.
    package func endEvents() { self.eventSource.finish() }

    package static var hostName: String { ProcessFigures.hostName ?? "worker" }
}

extension WakeWorker {
    /// Registers the handler of a background task or session, like `backgroundTask` in SwiftUI.
    ///
    /// A handler succeeds if it returns and fails if it throws an error. At the expiration its task is cancelled;
    /// ``BackgroundTaskContext/expirationReason`` then has the reason. The handler is called for every launch of its
    /// identifier, for every kind of request. A continued task gets its full time again whenever the handler reports
    /// further progress.
    ///
    /// - Parameters:
    ///   - task: the task or session to handle.
    ///   - action: the handler.
    /// - Throws: ``WakeWorkerError``: `duplicateTask` if the identifier already has a handler, `alreadyRunning` if
    ///   `run` was called before, `badArgument` if the identifier is invalid or there are more than 64 handlers.
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
        try self.registry.register(task.name) { try await action(BackgroundTaskContext($0, $1)) }
    }

    /// Returns the resources that the topic's connected workers currently offer to background tasks, including this
    /// worker: the counterpart of `supportedResources` on iOS.
    ///
    /// - Returns: the resources.
    /// - Throws: ``WakeWorkerError``: `refused` if the gateway does not admit this worker, and the errors of a failed
    ///   request.
    ///
    /// ```swift
    /// let resources = try await worker.supportedResources()
    /// try await worker.scheduler.submit(
    ///     .continued("com.example.app.export.film", requiredResources: resources.intersection(.gpu))
    /// )
    /// ```
    public func supportedResources() async throws(WakeWorkerError) -> BackgroundTaskResources {
        let response = try await self.caller.answer("GET", "\(self.request.topicPath)/resources", nil)
        guard let resources = JSONValue(object: response.body)?["resources"] else {
            throw WakeWorkerError(.badAnswer, "the gateway's answer names no resources; see the gateway's version")
        }
        return BackgroundTaskResources(names: resources.elements.compactMap(\.text))
    }

    /// Registers a handler that receives the unmodified message of every launch of a task or session.
    package func backgroundTask(
        _ name: BackgroundTaskName,
        launched action: @escaping @Sendable (TaskLaunch) async throws -> Void
    ) throws(WakeWorkerError) {
        try self.registry.register(name) { launch, _ in try await action(launch) }
    }

    /// The scheduler of background tasks for the worker's device.
    ///
    /// A worker with no device or several devices has no default device. Use ``scheduler(for:)`` instead.
    ///
    /// ```swift
    /// try await worker.scheduler.submit(.processing("com.example.app.db-cleanup", requiresExternalPower: true))
    /// ```
    public var scheduler: BackgroundTaskScheduler {
        let devices = self.request.devices
        if devices.count == 1 { return self.scheduler(for: devices[0]) }
        return BackgroundTaskScheduler(.several(devices.count), registry: self.registry)
    }

    /// Returns a scheduler that submits and cancels requests of background tasks for a device.
    ///
    /// - Parameter deviceToken: the device's token.
    /// - Returns: the scheduler.
    ///
    /// ```swift
    /// try await worker.scheduler(for: token).cancelAll()
    /// ```
    public func scheduler(for deviceToken: String) -> BackgroundTaskScheduler {
        BackgroundTaskScheduler(.token(deviceToken, self.caller), registry: self.registry)
    }

    /// The changes of the conditions of the worker's devices, or of all devices of its topic. This is the counterpart
    /// of the power, thermal and background refresh notifications on iOS.
    ///
    /// Access this property before calling `run`; otherwise `run` does not subscribe to condition changes. The sequence
    /// supports one reader. If the reader is slow, the oldest changes are dropped. Changes during a disconnection are
    /// not reported.
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

extension WakeWorker {
    /// Registers a device of the worker's topic, like `registerForRemoteNotifications` on iOS.
    ///
    /// - Parameter deviceToken: the device's token, 32 to 200 hexadecimal digits, whose number must be even. If it is
    ///   nil, the gateway creates a new token. Registering a token again has no effect.
    /// - Returns: the device's token, to which providers push.
    /// - Throws: ``WakeWorkerError``: `refused` if the gateway refuses the device, and the errors of a failed request.
    ///
    /// ```swift
    /// let token = try await worker.registerForRemoteNotifications()
    /// ```
    public func registerForRemoteNotifications(
        deviceToken: String? = nil
    ) async throws(WakeWorkerError) -> String {
        var body = "{}"
        if let deviceToken { body = "{\"token\":\"\(try GatewayCaller.hexadecimal(deviceToken))\"}" }
        let response = try await self.caller.answer("POST", "\(self.request.topicPath)/devices", Array(body.utf8))
        guard let token = JSONValue(object: response.body)?["token"]?.text else {
            throw WakeWorkerError(.badAnswer, "the gateway's answer names no token; see the gateway's version")
        }
        return token
    }

    /// Removes a device. Its pending pushes and tasks are discarded, and new pushes to it are refused.
    ///
    /// - Parameter deviceToken: the device's token.
    /// - Throws: ``WakeWorkerError``: `refused` if the gateway does not know the device, and the errors of a failed
    ///   request.
    ///
    /// ```swift
    /// try await worker.unregister(deviceToken: token)
    /// ```
    public func unregister(deviceToken: String) async throws(WakeWorkerError) {
        _ = try await self.caller.answer("DELETE", "/v1/devices/\(try GatewayCaller.hexadecimal(deviceToken))", nil)
    }

    /// Reports the conditions of a device to the gateway.
    ///
    /// If the conditions include `appState`, a running ``reportMachineConditions(for:_:)`` for the same device no
    /// longer reports it.
    ///
    /// - Parameters:
    ///   - conditions: the conditions that have changed.
    ///   - deviceToken: the device's token.
    /// - Returns: all conditions of the device that the gateway now knows.
    /// - Throws: ``WakeWorkerError``: `badArgument` for a battery level outside 0...1, `refused` if the gateway does
    ///   not know the device, and the errors of a failed request.
    ///
    /// ```swift
    /// try await worker.report(conditions, for: token)
    /// ```
    @discardableResult
    public func report(
        _ conditions: DeviceConditions,
        for deviceToken: String
    ) async throws(WakeWorkerError) -> DeviceConditions {
        let path = "/v1/devices/\(try GatewayCaller.hexadecimal(deviceToken))/conditions"
        let body = try conditions.json()
        if conditions.appState != nil { await self.takeAppState(path: path) }
        let response = try await self.caller.answer("PATCH", path, body)
        guard let object = JSONValue(object: response.body) else {
            throw WakeWorkerError(.badAnswer, "the gateway's answer is not a JSON object; check the gateway's version")
        }
        return DeviceConditions(object)
    }
}

extension WakeWorker {
    /// Reports the conditions of this Linux machine as the conditions of a device, until the task is cancelled.
    ///
    /// Battery, charger, thermal state, memory pressure, power saving and network come from the kernel. With
    /// ``ReportedConditions/appState``, the use of the machine comes from logind. Unknown conditions are not reported.
    ///
    /// The first report is sent immediately. A change is reported after one second, but at most every ten seconds. All
    /// conditions are reported again after each new subscription of ``run(_:)``, so call both functions concurrently.
    ///
    /// After a call of ``report(_:for:)`` with `appState`, this function no longer reports the device's `appState`.
    /// Call it again to resume. If logind is not available, ``WakeWorkerEvent/conditionUnknown(name:reason:)`` has the
    /// reason, and the program should report `appState` itself.
    ///
    /// - Parameters:
    ///   - deviceToken: the token of the device that represents this machine.
    ///   - conditions: the conditions to report; by default the conditions of the hardware.
    /// - Throws: ``WakeWorkerError`` for a permanent error: `refused` if the gateway does not know the device or does
    ///   not permit this worker to report for it; `badArgument` if no condition is given. An unreachable gateway is not
    ///   an error, because the report is sent again.
    ///
    /// ```swift
    /// async let reports: Void = worker.reportMachineConditions(for: token)
    /// ```
    public func reportMachineConditions(
        for deviceToken: String,
        _ conditions: ReportedConditions = .hardware
    ) async throws(WakeWorkerError) {
        try await self.reportMachineConditions(for: deviceToken, conditions, root: "/") { _ in false }
    }

    /// Reports the conditions of the machine whose files are below `root`.
    ///
    /// - `root`: the directory below which `/sys`, `/var` and `/run` are read.
    /// - `goesOnAfter`: called for each refusal; returns true to continue. The report is then repeated when a condition
    ///   changes or the worker subscribes again.
    package func reportMachineConditions(
        for deviceToken: String,
        _ conditions: ReportedConditions,
        root: String,
        goesOnAfter: @escaping @Sendable (WakeWorkerError) -> Bool
    ) async throws(WakeWorkerError) {
        let path = "/v1/devices/\(try GatewayCaller.hexadecimal(deviceToken))/conditions"
        guard !conditions.isEmpty else {
            throw WakeWorkerError(.badArgument, "no condition is named; report .hardware, .appState or both")
        }
        let report = MachineReport(
            self.request.endpoint,
            path: path,
            conditions: conditions,
            root: root,
            goesOnAfter: goesOnAfter
        ) { [reports = self.reports, events = self.eventSource] fault in
            guard reports.isNews(fault), let fault else { return }
            events.yield(.conditionUnknown(name: "appState", reason: fault))
        }
        let failure = await withTaskCancellationHandler {
            await withCheckedContinuation { ending in
                self.thread.submit { [reports = self.reports] in reports.begin(report, ending, on: $0) }
            }
        } onCancel: {
            self.thread.submit { report.end(nil, on: $0) }
        }
        self.thread.submit { [reports = self.reports] _ in reports.remove(report) }
        if let failure { throw failure }
    }

    /// Stops reporting `appState` to `path`. After this function returns, no earlier report can arrive.
    func takeAppState(path: String) async {
        let reports = await withCheckedContinuation { found in
            self.thread.submit { [reports = self.reports] _ in found.resume(returning: reports.of(path: path)) }
        }
        for report in reports {
            await withCheckedContinuation { caller in
                self.thread.submit { report.leaveAppState(to: caller, on: $0) }
            }
        }
    }
}

/// The earlier names of `runTasks` and `runDelegate`. They remain for existing programs.
extension WakeWorker {
    /// Handles the registered background tasks: the former name of ``runTasks()``.
    ///
    /// - Throws: ``WakeWorkerError``, as ``runTasks()`` does.
    ///
    /// ```swift
    /// try await worker.runTasks()
    /// ```
    @available(*, deprecated, renamed: "runTasks()")
    public func run() async throws(WakeWorkerError) { try await self.runTasks() }

    // The parameter is not generic. Otherwise the compiler would report a mistake in a handler's closure as a missing
    // conformance to the delegate protocol.
    /// Passes each wake to an app's delegate: the former name of ``runDelegate(_:)``.
    ///
    /// - Parameter delegate: the delegate that handles the wakes.
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

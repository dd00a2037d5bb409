import HTTPClient
import Platform
import Synchronization
import Wire

/// A worker: subscribes to the wakes of a topic, and has each handled.
///
/// ```swift
/// let worker = try WakeWorker(gateway: "https://gateway.example.com:2197", topic: "com.example.news")
/// try await worker.run { notification in
///     try await refresh(notification.deviceToken) ? .newData : .noData
/// }
/// ```
///
/// `run` returns when the task that called it is cancelled, or ``stop()`` is called, and all that was begun has ended.
/// Meanwhile it subscribes again whenever the connection breaks, after a wait that grows and is spread at random.
///
/// All workers of a process share one thread for the network, and one connection to each gateway.
public final class WakeWorker: Sendable {
    /// How many wakes are handled at once by default.
    public static let defaultSlots = 16

    /// How long the gateway may be silent, by default, before its connection is taken for dead.
    public static let defaultSilenceLimit = Duration.milliseconds(SubscriptionStateMachine.silenceMaxByDefault)

    /// How long ending takes at most, by default, from the first ``stop()`` on.
    public static let defaultStopLimit = Duration.milliseconds(StopStateMachine.limitByDefault)

    /// What the worker does, as it happens: for logs and metrics. It has one reader; a slow one misses the oldest.
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
    let reports = MachineReports()
    let registry = BackgroundTaskRegistry()
    let eventSource: AsyncStream<WakeWorkerEvent>.Continuation
    let conditionsStream: AsyncStream<DeviceConditionsChange>
    private let conditionsSource: AsyncStream<DeviceConditionsChange>.Continuation
    private let running = Mutex<WorkerSession?>(nil)

    /// Sets a worker up; nothing is sent yet.
    ///
    /// - Parameters:
    ///   - gateway: where the gateway's edge listens: `https://HOST:PORT`, `http://HOST:PORT` for its plain listener,
    ///     or `unix:/PATH`.
    ///   - topic: the topic whose wakes it takes, which is the app's bundle identifier in APNs' terms.
    ///   - credentials: how it shows who it is, and whom it trusts.
    ///   - slots: how many wakes it handles at once, 1 to 4096. It holds no more than twice as many.
    ///   - devices: the tokens of the devices whose wakes it takes, 64 at most; none for every device of the topic.
    ///   - resources: what its machine has that background tasks may need.
    ///   - name: what the gateway calls it in its answers to operators; the host's name by default.
    ///   - silenceLimit: how long the gateway may be silent before the worker subscribes again over another connection,
    ///     20 to 300 seconds. A gateway sends something every 15 seconds at least.
    ///   - stopLimit: how long `run` takes at most to return once it was asked to, 5 to 86,400 seconds. The last ten
    ///     seconds of it, or its last quarter when that is less, are for the results; handlers that run then are
    ///     cancelled.
    /// - Throws: ``WakeWorkerError``: `badArgument`, or `unavailable` when the machine has no thread for it.
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

    /// A worker with waits of its own, which ends within five seconds, for tests.
    package convenience init(
        gateway: String,
        topic: String,
        credentials: GatewayCredentials,
        slots: Int,
        timing: WorkerTiming
    ) throws(WakeWorkerError) {
        var request = try SubscriptionRequest(
            GatewayEndpoint(gateway, credentials),
            topic: topic,
            slots: slots,
            devices: [],
            resources: [],
            name: WakeWorker.hostName,
            silenceLimit: WakeWorker.defaultSilenceLimit,
            stopLimit: .seconds(5)
        )
        request.timing = timing
        try self.init(request)
    }

    private init(_ request: SubscriptionRequest) throws(WakeWorkerError) {
        self.request = request
        do throws(HTTPClientError) {
            self.thread = try HTTPThread.shared()
        } catch {
            throw self.request.endpoint.error(error)
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

    /// Asks the gateway for what is no matter of the subscription.
    var caller: GatewayCaller { GatewayCaller(endpoint: self.request.endpoint, thread: self.thread) }

    /// Handles pushes, and the background tasks that are registered, until the task is cancelled, or ``stop()`` is
    /// called.
    ///
    /// Each wake's handler runs in a task of its own. That task is cancelled when the wake's time is over, and when
    /// the connection breaks, since the gateway then gives the wake to another worker. A handler that throws has
    /// failed. The task that called `run` may be cancelled without harm: handlers that run may end, and their results
    /// are delivered, before `run` returns, for which it takes no longer than the worker's `stopLimit`.
    ///
    /// - Parameter handler: handles a wake, and says what came of it.
    /// - Throws: ``WakeWorkerError`` when another try would come to the same: the gateway refuses this worker, or its
    ///   certificate is not trusted. A gateway that cannot be reached is no error; it is tried again.
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

    /// Handles the background tasks that are registered, and takes no pushes, until the task is cancelled, or
    /// ``stop()`` is called.
    ///
    /// - Throws: ``WakeWorkerError``: `badArgument` when nothing is registered, and as ``run(_:)`` does.
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

    /// Takes no more wakes; `run` returns once the handlers that run have ended and their results were delivered.
    ///
    /// The gateway is told, so it gives new wakes to other workers at once, and no wake is lost. When the gateway is
    /// silent, results are tried to be delivered for ten seconds after the last handler has ended; and whatever
    /// happens, `run` returns within the worker's `stopLimit`.
    ///
    /// ```swift
    /// worker.stop()
    /// ```
    public func stop() {
        guard let session = self.running.withLock({ $0 }) else { return }
        self.thread.submit { session.stopRequested(on: $0) }
    }

    /// Stops as ``stop()`` does, and cancels the handlers that run: for a second request to stop.
    ///
    /// `run` returns as soon as they have ended and their results were delivered, for which there are two seconds;
    /// after five seconds it returns in any case.
    ///
    /// ```swift
    /// worker.cancelHandlers()
    /// ```
    public func cancelHandlers() {
        guard let session = self.running.withLock({ $0 }) else { return }
        self.thread.submit { session.cancelRequested(on: $0) }
    }

    /// Ends `events`, once all that came before is read.
    package func endEvents() { self.eventSource.finish() }

    private static var hostName: String { ProcessFigures.hostName ?? "worker" }
}

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
        guard let resources = JSONValue(object: response.body)?["resources"] else {
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

extension WakeWorker {
    /// Registers a device of the worker's topic, as `registerForRemoteNotifications` does on iOS.
    ///
    /// - Parameter deviceToken: the device's token, an even number of hexadecimal digits, 32 to 200 of them; nil to
    ///   have a new one made. To register a token again changes nothing.
    /// - Returns: the device's token, for providers to push to.
    /// - Throws: ``WakeWorkerError``: `refused` when the gateway does, and what keeps a request from it.
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

    /// Removes a device: what waits for it is discarded, and pushes to it are refused from now on.
    ///
    /// - Parameter deviceToken: the device's token.
    /// - Throws: ``WakeWorkerError``: `refused` when the gateway knows no such device, and what keeps a request from
    ///   it.
    ///
    /// ```swift
    /// try await worker.unregister(deviceToken: token)
    /// ```
    public func unregister(deviceToken: String) async throws(WakeWorkerError) {
        _ = try await self.caller.answer("DELETE", "/v1/devices/\(try GatewayCaller.hexadecimal(deviceToken))", nil)
    }

    /// Tells the gateway in what state a device is.
    ///
    /// Whoever names `appState` is taken at their word: ``reportMachineConditions(for:_:)``, if it runs for the device,
    /// reports it no more.
    ///
    /// - Parameters:
    ///   - conditions: what has changed.
    ///   - deviceToken: the device's token.
    /// - Returns: all that the gateway now knows of the device's state.
    /// - Throws: ``WakeWorkerError``: `badArgument` for a battery level outside 0...1, `refused` when the gateway knows
    ///   no such device, and what keeps a request from it.
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
    /// Tells the gateway the state of this Linux machine as a device's, until the task is cancelled.
    ///
    /// Battery, charger, thermal state, memory pressure, power saving and network come from the kernel. With
    /// ``ReportedConditions/appState``, the use of the machine comes from logind. Unknown conditions are not reported.
    /// The first report is sent at once. A change is reported after one second, at most every ten seconds. All
    /// conditions are reported again after each new subscription of ``run(_:)``; call this concurrently with it.
    ///
    /// A caller who reports `appState` with ``report(_:for:)`` is taken at their word: this reports that device's
    /// `appState` no more, until it is called anew. Where logind cannot be asked,
    /// ``WakeWorkerEvent/conditionUnknown(name:reason:)`` says why, and `appState` is the caller's to report.
    ///
    /// - Parameters:
    ///   - deviceToken: the token of the device that this machine is.
    ///   - conditions: which are reported; by default those of the hardware.
    /// - Throws: ``WakeWorkerError`` when another try would come to the same: `refused` when the gateway knows no such
    ///   device, or does not let this worker report for it; `badArgument` when no condition is named. A gateway that
    ///   cannot be reached is no error; it is tried again.
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

    /// Reports what the machine below `root` says, with a say in what a refusal means.
    ///
    /// - `root`: the folder below which `/sys`, `/var` and `/run` are read.
    /// - `goesOnAfter`: is told of each refusal, and says whether to go on: then the report is sent again when
    ///   something has changed, or the worker has subscribed again.
    package func reportMachineConditions(
        for deviceToken: String,
        _ conditions: ReportedConditions,
        root: String,
        goesOnAfter: @escaping @Sendable (WakeWorkerError) -> Bool
    ) async throws(WakeWorkerError) {
        let path = "/v1/devices/\(try GatewayCaller.hexadecimal(deviceToken))/conditions"
        guard !conditions.read.isEmpty else {
            throw WakeWorkerError(.badArgument, "no condition is named; report .hardware, .appState or both")
        }
        let report = MachineReport(
            self.request.endpoint,
            path: path,
            conditions: conditions.read,
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

    /// Has the caller say `appState` of the device with its conditions at `path`; nothing else can arrive after that.
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

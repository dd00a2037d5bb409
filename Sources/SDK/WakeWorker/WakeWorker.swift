import HTTPClient
import Platform
import Synchronization

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
    public init(
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
        self.request = try SubscriptionRequest(
            GatewayEndpoint(gateway, credentials),
            topic: topic,
            slots: slots,
            devices: devices,
            resources: resources,
            name: name ?? Self.hostName,
            silenceLimit: silenceLimit,
            stopLimit: stopLimit
        )
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

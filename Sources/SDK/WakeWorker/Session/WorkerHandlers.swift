import Wire

/// The handlers for the events of a worker's stream.
struct WorkerHandlers: Sendable {
    typealias PushHandler = @Sendable (WakeNotification) async throws -> BackgroundFetchResult
    /// Handles one wake.
    typealias Work = @Sendable (WakeLease) async throws -> BackgroundFetchResult

    /// The handler of pushes; nil if the worker accepts no pushes.
    let pushes: PushHandler?
    let tasks: BackgroundTaskTable<BackgroundTaskRegistry.Handler>
    /// The stream of condition changes; nil if the program did not request them.
    let conditions: AsyncStream<DeviceConditionsChange>.Continuation?
    let caller: GatewayCaller
    let registry: BackgroundTaskRegistry

    /// The query parameters of the subscription: the wakes that it requests.
    var query: [String] {
        // The asterisk of a pattern needs no encoding in a query.
        var query = self.tasks.names(ofSessions: false).map { "task=\($0)" }
        query += self.tasks.names(ofSessions: true).map { "session=\($0)" }
        if self.pushes == nil { query.append("push=0") }
        if self.conditions != nil { query.append("conditions=1") }
        return query
    }

    /// Returns the work for the wake of a task or session; nil if no handler is registered. The result of the work is
    /// `newData` for success and `failed` for failure.
    func work(for message: TaskMessage) -> Work? {
        let name =
            switch message.work {
            case .task(let identifier, _, _): BackgroundTaskName(identifier, isSession: false)
            case .session(let session, _): BackgroundTaskName(session, isSession: true)
            }
        guard let handler = self.tasks.handler(for: name) else { return nil }
        let scheduler = BackgroundTaskScheduler(.token(message.device, self.caller), registry: self.registry)
        return { lease in
            try await handler(TaskLaunch(message: message, lease: lease), scheduler)
            return .newData
        }
    }
}

/// An event of a worker, for logs and metrics: see ``WakeWorker/events``.
///
/// Events contain no devices, payloads or other secrets. Later versions may add cases, so a `switch` needs a `default`.
public enum WakeWorkerEvent: Sendable {
    /// The subscription is open, and the gateway can send wakes.
    case subscribed
    /// The gateway accepted the subscription but warns of a likely mistake, such as an identifier that the topic does
    /// not permit. The text consists of a stable name, the problem and the remedy, separated by semicolons.
    case warned(warning: String)
    /// The subscription has ended, and its unfinished wakes are lost. The worker subscribes again after `retryIn`.
    case disconnected(reason: WakeWorkerError, retryIn: Duration)
    /// A wake arrived for which the worker has no handler. The worker does not answer it. Until the next call of `run`,
    /// later wakes of the same kind are not reported.
    case refused(wake: String, kind: String)
    /// The handler of a wake was started.
    case started(wake: String)
    /// The deadline of a wake is near. Its handler was cancelled, but its result counts until the deadline.
    case expiring(wake: String)
    /// The gateway ended a wake before its result arrived. Its handler was cancelled.
    case expired(wake: String, reason: BackgroundTaskExpiration)
    /// The gateway considers a wake lost, or the stream of the wake broke. Another worker receives the wake. Its
    /// handler was cancelled.
    case lost(wake: String)
    /// The handler threw an error. The wake counts as failed.
    case handlerFailed(wake: String, error: any Error)
    /// The handler threw ``WakeRelease``, and the gateway accepted the return of the wake.
    case released(wake: String, reason: String)
    /// The gateway has confirmed the result.
    case delivered(wake: String, result: BackgroundFetchResult)
    /// A result was refused or could not be delivered in time.
    case dropped(wake: String, result: BackgroundFetchResult, reason: WakeWorkerError)
    /// The gateway has confirmed the outcome of a background task or session.
    case taskDelivered(wake: String, success: Bool)
    /// The outcome of a background task or session was refused or could not be delivered in time.
    case taskDropped(wake: String, success: Bool, reason: WakeWorkerError)
    /// The gateway does not accept progress reports of this continued task. The worker sends no more.
    case progressRefused(wake: String, reason: WakeWorkerError)
    /// A condition that should be reported, such as `appState`, cannot be determined. The event repeats if the reason
    /// changes, or if the condition becomes unknown again.
    case conditionUnknown(name: String, reason: String)
    /// The worker accepts no more wakes and finishes the running wakes.
    case stopping
}

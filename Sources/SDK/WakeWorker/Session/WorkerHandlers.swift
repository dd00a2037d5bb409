import Wire

/// What a worker does with what comes on its stream.
struct WorkerHandlers: Sendable {
    typealias PushHandler = @Sendable (WakeNotification) async throws -> BackgroundFetchResult
    /// Handles one wake.
    typealias Work = @Sendable () async throws -> BackgroundFetchResult

    /// Nil when the worker takes no pushes.
    let pushes: PushHandler?
    let tasks: BackgroundTaskTable<BackgroundTaskRegistry.Handler>
    /// Nil when nobody wants to know.
    let conditions: AsyncStream<DeviceConditionsChange>.Continuation?
    let caller: GatewayCaller
    let registry: BackgroundTaskRegistry

    /// What the subscription says of it.
    var offer: SubscriptionOffer {
        SubscriptionOffer(
            tasks: self.tasks.names(ofSessions: false),
            sessions: self.tasks.names(ofSessions: true),
            takesPushes: self.pushes != nil,
            wantsConditions: self.conditions != nil
        )
    }

    /// What handles a task's wake; nil when nothing does. A success is `newData`, and a failure `failed`.
    func work(for message: TaskMessage) -> (@Sendable (WakeLease) -> Work)? {
        let name =
            switch message.work {
            case .task(let identifier, _, _): BackgroundTaskName(identifier, isSession: false)
            case .session(let session, _): BackgroundTaskName(session, isSession: true)
            }
        guard let handler = self.tasks.handler(for: name) else { return nil }
        switch handler {
        case .launch(let action):
            return { lease in
                let launch = TaskLaunch(message, lease)
                return {
                    try await action(launch)
                    return .newData
                }
            }
        case .context(let action):
            guard let kind = BackgroundTaskKind(rawValue: message.kind.name) else { return nil }
            let scheduler = BackgroundTaskScheduler(.token(message.device, self.caller), registry: self.registry)
            return { lease in
                let context = BackgroundTaskContext(message, kind, lease, scheduler)
                return {
                    try await action(context)
                    return .newData
                }
            }
        }
    }
}

/// What a worker does, for logs and metrics: see ``WakeWorker/events``.
///
/// Nothing in it is secret: wakes are named by their ids, devices and payloads are left out. More cases may come; give
/// a `switch` a `default`.
public enum WakeWorkerEvent: Sendable {
    /// The gateway sends wakes from now on.
    case subscribed
    /// The gateway took the subscription and warns of a likely mistake in it, such as an identifier that the topic does
    /// not permit: a name that never changes, the problem and the remedy, separated by semicolons.
    case warned(warning: String)
    /// The subscription has ended, and is tried again after `retryIn`. Wakes it had brought are lost.
    case disconnected(reason: WakeWorkerError, retryIn: Duration)
    /// A wake came of a kind that the worker has no handler for, or a background task that none is registered for. It
    /// is not answered, and neither are later ones, of whose kind nothing more is said until `run` is called again.
    case refused(wake: String, kind: String)
    /// A wake was handed to the handler.
    case started(wake: String)
    /// The deadline of a wake is near; its handler was cancelled, and its result counts until then.
    case expiring(wake: String)
    /// The gateway has ended a wake before its result arrived, for this reason; its handler was cancelled.
    case expired(wake: String, reason: BackgroundTaskExpiration)
    /// The stream that brought the wake broke, or the gateway gave it up, so another worker gets it; its handler was
    /// cancelled.
    case lost(wake: String)
    /// The handler threw; the wake counts as failed.
    case handlerFailed(wake: String, error: any Error)
    /// The handler threw ``WakeRelease``, and the gateway has taken the wake back.
    case released(wake: String, reason: String)
    /// The gateway has the result, for certain.
    case delivered(wake: String, result: BackgroundFetchResult)
    /// The result did not count, or could not be delivered in time.
    case dropped(wake: String, result: BackgroundFetchResult, reason: WakeWorkerError)
    /// The gateway has the outcome of a background task or session, for certain.
    case taskDelivered(wake: String, success: Bool)
    /// The outcome of a background task or session did not count, or could not be delivered in time.
    case taskDropped(wake: String, success: Bool, reason: WakeWorkerError)
    /// The gateway takes no report of a continued task's progress, for this reason; none is sent any more.
    case progressRefused(wake: String, reason: WakeWorkerError)
    /// A condition of the machine that is to be reported, such as `appState`, is not known. It is told once, and again
    /// when it was known in between, or for another reason.
    case conditionUnknown(name: String, reason: String)
    /// The worker takes no more wakes, and finishes what runs.
    case stopping
}

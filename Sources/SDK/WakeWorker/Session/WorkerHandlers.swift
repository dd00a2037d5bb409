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

import Engine
import Policy
import Wire

/// The parts of an engine that do not depend on the store: devices in memory, workers' streams, and the services that
/// use both.
///
/// A subclass loads rows, makes changes durable, fills free slots and provides the clock.
package class EngineShell {
    final var engine: DeviceEngine
    final var dispatcher: Dispatcher
    /// The effects of steps that have not been released.
    final let stage: EffectStage
    final let output: GroupOutput
    final let room: RoomState
    final let pushes: PushService
    final let requests: RequestService
    final let sampler: LiveSampler
    final fileprivate(set) var configuration: EngineConfiguration
    /// The maximum number of unanswered payload bytes on a worker's stream.
    final fileprivate(set) var wakeBytesPerStreamMax: Int

    init(
        _ engine: DeviceEngine,
        _ stage: EffectStage,
        _ output: GroupOutput,
        _ room: RoomState,
        _ configuration: EngineConfiguration,
        wakeBytesPerStreamMax: Int,
        _ live: LiveService
    ) {
        self.engine = engine
        self.dispatcher = Dispatcher(engine: engine, output: stage, wakeBytesPerStreamMax: wakeBytesPerStreamMax)
        self.stage = stage
        self.output = output
        self.room = room
        self.pushes = PushService(room)
        self.requests = RequestService(stage, room, self.pushes)
        self.sampler = LiveSampler(live)
        self.configuration = configuration
        self.wakeBytesPerStreamMax = wakeBytesPerStreamMax
    }

    final var records: GatewayRecords { self.room.records }
    final var limits: LimitCounts { self.room.limits }

    /// Starts or stops recording events, depending on whether a client follows them.
    final func watch(at now: Instant, _ offset: WallOffset) {
        self.engine.watch(self.output.events.isWatched ? offset : nil, at: now)
    }

    /// Takes the sample of this second if it is due.
    final func takeSample(at now: Instant, _ workspace: Workspace) {
        self.sampler.look(now, workspace, self.room, loopCount: self.output.mailboxes.loops.count)
    }
}

/// Commands whose handling depends on the engine's store.
protocol StoredEngine: EngineShell {
    func take(_ request: EngineRequest, _ workspace: Workspace)

    /// Counts a push that was refused before it reached the engine.
    func rejected(_ reason: Int, _ topic: [UInt8], _ workspace: Workspace)

    func streamEnded(_ stream: StreamAddress)

    /// Records that a stream can accept more wakes than before.
    func hasFreeSlots()

    /// Records that a stream no longer holds a wake, and remains open.
    func lose(_ wake: WakeID, on stream: StreamAddress, takingBackAttempt: Bool)

    func requireWorkerAuthentication()

    /// Activates the policies of a new configuration.
    ///
    /// - Parameter isPolicyChanged: false if all topics have the same policies as before.
    func configured(isPolicyChanged: Bool)
}

extension StoredEngine {
    func take(_ command: EngineCommand, _ workspace: Workspace) {
        switch command {
        case .request(let request): self.take(request, workspace)
        case .rejected(let reason, let topic): self.rejected(reason, topic, workspace)
        case .streamEnded(let stream): self.streamEnded(stream)
        case .streamPaused(let stream, let isPaused):
            self.dispatcher.streamPaused(stream, isPaused)
            if !isPaused { self.hasFreeSlots() }
        case .slotsChanged(let stream, let slots):
            self.dispatcher.slotsChanged(stream, to: slots)
            self.hasFreeSlots()
        case .lost(let stream, let wake, let takingBackAttempt):
            self.lose(wake, on: stream, takingBackAttempt: takingBackAttempt)
        case .webhookChanged(let topic, let status): self.room.webhooks[topic] = status
        case .configure(let settings): self.configure(settings)
        case .requireWorkerAuthentication: self.requireWorkerAuthentication()
        case .drain: self.requests.drain(workspace)
        }
    }

    /// Activates another configuration for the following commands.
    private func configure(_ settings: EngineSettings) {
        self.configuration = settings.engine
        self.wakeBytesPerStreamMax = settings.wakeBytesPerStreamMax
        let isPolicyChanged = self.engine.reconfigure(settings.engine)
        self.dispatcher.wakeBytesPerStreamChanged(to: settings.wakeBytesPerStreamMax)
        self.configured(isPolicyChanged: isPolicyChanged)
        settings.inForce(self.records.policies.current?.number ?? 0)
    }
}

package import Engine
import Policy
package import Wire

/// The engine of a gateway that has its store to itself: it keeps every device in memory, and steps on while one group
/// of changes is made durable.
///
/// A step goes on to the present, performs every command in order, and hands what changed to the store if it is idle.
/// Otherwise the changes wait for the steps to come; a device that changes again is written once.
package final class EmbeddedGatewayEngine: GatewayEngine {
    /// The most devices looked at in one step, so that pushes never wait long for a crowd that is due at once.
    private static let dueDevicesMax = 4096

    private var engine: EmbeddedEngine
    private var dispatcher: Dispatcher
    private var clock: EngineClock
    private let commits: CommitDesk
    private let pushes: PushDesk
    private let requests: RequestDesk
    private let sampler: LiveSampler
    private let records: GatewayRecords
    private let limits: LimitCounts
    private let loopCount: Int
    private var configuration: EngineConfiguration
    private var wakeBytesPerStreamMax: Int
    private let makeRandom: @Sendable () -> () -> (UInt64, UInt64)
    /// Why nothing is taken any more: a commit failed.
    private var failure: StoreFailure?
    private let onFailure: @Sendable (StoreError) -> Void

    /// An engine as `store` kept it; the wakes that were in flight are lost, and that is durable.
    ///
    /// - `historyKey`: the key of the history that hears what happens.
    /// - `workers`: whether workers are asked who they are.
    /// - `jumpWatch`: how far the wall clock may have gone across a boot, and who hears that it went farther.
    /// - `world`: its clocks, and chance.
    /// - `makeCommitter`: makes what commits to the store; by default it has a thread of its own.
    /// - `wakeBytesPerStreamMax`: the bytes of payloads that a worker's stream may hold unanswered.
    /// - `store`: nil to keep nothing.
    /// - `outlet`: where it leaves what it has for the loops and the history.
    /// - `meter`: what other parts of the gateway have counted of their bounds.
    /// - `live`: takes a sample a second.
    /// - `limitWatch`: tells of bounds that were met.
    /// - `ring`: has the engine step once more.
    /// - `onLossAccepted`: called here when the store lacks what was committed, and the start goes on without it.
    /// - `onFailure`: called once, when nothing can be stored any more.
    /// - Throws: `StoreError` when what was kept cannot be read, or nothing can be stored.
    package init(
        configuration: EngineConfiguration,
        historyKey: HashKey,
        workers: WorkersAsked = .unrecorded,
        jumpWatch: ClockJumpWatch = ClockJumpWatch(),
        world: EngineWorld = .system,
        makeCommitter: CommitterMaker = CommitPipeline.init,
        wakeBytesPerStreamMax: Int = GatewayLimits().wakeBytesPerStreamMax,
        store: (any RecordStore)?,
        outlet: GroupOutlet,
        meter: LimitMeter = LimitMeter(),
        live: LiveDesk = LiveDesk(),
        limitWatch: LimitWatch = LimitWatch(),
        ring: @escaping @Sendable () -> Void,
        onLossAccepted: (StoreLoss) -> Void = { _ in },
        onFailure: @escaping @Sendable (StoreError) -> Void
    ) throws(StoreError) {
        var start = try EmbeddedStart(
            configuration: configuration,
            historyKey: historyKey,
            workers: workers,
            jumpWatch: jumpWatch,
            world: world,
            store: store,
            history: outlet.history,
            onLossAccepted: onLossAccepted
        )
        let stage = EffectStage(group: outlet.makeGroup(), offset: start.clock.offset)
        let bytesMax = wakeBytesPerStreamMax
        self.dispatcher = Dispatcher(engine: start.engine, output: stage, wakeBytesPerStreamMax: bytesMax)
        if let store { try start.commit(to: store, stage) }
        start.recoverEvents(stage, outlet)
        let commits = CommitDesk(
            stage: stage,
            outlet: outlet,
            committer: try store.map { store throws(StoreError) in try makeCommitter(store, outlet, ring) },
            numbers: start.numbers,
            records: start.records
        )
        self.commits = commits
        self.engine = start.engine
        self.clock = start.clock
        self.records = start.records
        self.limits = LimitCounts(meter, limitWatch)
        self.pushes = PushDesk(start.records, self.limits)
        self.requests = RequestDesk(stage, start.records, self.limits, self.pushes, commitTimes: { commits.times })
        self.sampler = LiveSampler(live, start.records, self.limits)
        self.loopCount = outlet.mailboxes.loops.count
        self.configuration = configuration
        self.wakeBytesPerStreamMax = wakeBytesPerStreamMax
        self.makeRandom = world.makeRandom
        self.onFailure = onFailure
    }

    package var briefStep: ((CommandBatch) -> Int64)? {
        { [unowned self] batch in self.step(batch, failing: false) }
    }

    package func step(_ batch: CommandBatch) -> Int64 { self.step(batch, failing: true) }

    /// - Parameters:
    ///   - batch: what has come.
    ///   - mayFail: whether what is durable is read back here if the store has failed, which takes long; the engine's
    ///     thread does that.
    private func step(_ batch: CommandBatch, failing mayFail: Bool) -> Int64 {
        self.clock.step()
        self.commits.stage.offset = self.clock.offset
        self.engine.watch(self.commits.isWatched ? self.clock.offset : nil, at: self.clock.now)
        guard self.failure == nil else {
            self.refuse(batch, self.workspace)
            return self.requests.isLongListNext ? 0 : 1000
        }
        let isDone = self.perform(batch, self.workspace)
        if let error = self.commits.flush(self.engine, &self.clock) {
            guard mayFail else { return 0 }
            self.fail(error)
        }
        guard isDone, !self.dispatcher.isBehind, !self.requests.isLongListNext else { return 0 }
        // A wait is never longer than a second, so that a suspended machine's wakes are late by no more than that.
        var next = min(self.sampler.nextAt, self.engine.nextDue?.milliseconds ?? .max)
        // What is due already waits for a store that is busy, and rings when it is not.
        if let due = self.engine.progressDue, due > self.clock.now { next = min(next, due.milliseconds) }
        return max(0, min(1000, self.clock.milliseconds(until: next)))
    }

    package func finish() {
        self.records.hurry()
        self.engine.hurryProgress()
        for _ in 0..<2 where self.failure == nil {
            self.commits.waitUntilIdle()
            self.flush()
        }
        self.commits.stop()
    }

    private var workspace: Workspace {
        Workspace(
            engine: self.engine,
            dispatcher: self.dispatcher,
            offset: self.clock.offset,
            failure: self.failure
        )
    }

    /// - Returns: whether everything that is due was done.
    private func perform(_ batch: CommandBatch, _ workspace: Workspace) -> Bool {
        self.look(workspace)
        let isDone = workspace.dispatcher.advance(to: self.clock.now, devicesMax: Self.dueDevicesMax)
        let (stage, pushes) = (self.commits.stage, self.pushes)
        batch.forEach(
            push: { stage.answer(pushes.take($0, $1, workspace)) },
            command: { self.perform($0, workspace) }
        )
        self.commits.stage.group.append(batch.arrivals)
        batch.removeAll()
        self.requests.writeNextLongList(workspace)
        return isDone
    }

    /// Answers everybody in a batch after a failure, and empties it.
    private func refuse(_ batch: CommandBatch, _ workspace: Workspace) {
        self.look(workspace)
        batch.forEach(
            push: { self.commits.stage.answer(self.pushes.refuseUnstored($0, $1, workspace)) },
            command: { self.performAlways($0, workspace) }
        )
        batch.removeAll()
        self.requests.writeNextLongList(workspace)
        self.commits.release(self.engine, self.clock.offset)
    }

    /// What is looked at in every step.
    private func look(_ workspace: Workspace) {
        self.sampler.look(self.clock.now, workspace, self.requests, loopCount: self.loopCount)
        self.limits.look(self.clock.now, workspace.dispatcher)
    }

    private func perform(_ command: EngineCommand, _ workspace: Workspace) {
        let dispatcher = workspace.dispatcher
        switch command {
        case .request(let request): self.requests.perform(request, workspace)
        case .streamEnded(let stream): dispatcher.streamEnded(stream)
        case .streamPaused(let stream, let isPaused): dispatcher.streamPaused(stream, isPaused)
        case .slotsChanged(let stream, let slots): dispatcher.slotsChanged(stream, to: slots)
        case .lost(let stream, let wake, let takingBackAttempt):
            dispatcher.lose(wake, on: stream, takingBackAttempt: takingBackAttempt)
        case .workersAsked: self.records.workersAsked()
        case .rejected, .webhookChanged, .configure, .drain: self.performAlways(command, workspace)
        }
    }

    /// What goes on after a failed store, too, since it changes nothing that is stored.
    private func performAlways(_ command: EngineCommand, _ workspace: Workspace) {
        switch command {
        case .rejected(let reason, let topic):
            topic.withByteView { self.pushes.countRejected(reason, $0, workspace) }
        case .webhookChanged(let topic, let status): self.requests.webhookChanged(topic, status)
        case .configure(let settings): self.configure(settings)
        case .drain:
            self.pushes.drain()
            self.requests.drain(workspace)
        case .request(let request): self.requests.performAfterFailure(request, workspace)
        case .streamEnded, .streamPaused, .slotsChanged, .lost, .workersAsked: break
        }
    }

    /// Another configuration is in force for whatever comes behind it.
    private func configure(_ settings: EngineSettings) {
        self.configuration = settings.engine
        self.wakeBytesPerStreamMax = settings.wakeBytesPerStreamMax
        self.engine.reconfigure(settings.engine)
        self.dispatcher.wakeBytesPerStreamChanged(to: settings.wakeBytesPerStreamMax)
        self.records.begin(settings.engine, at: self.engine.now)
        settings.inForce(self.records.policies.current?.number ?? 0)
    }

    private func flush() {
        if let error = self.commits.flush(self.engine, &self.clock) { self.fail(error) }
    }

    /// Nothing is stepped or stored from now on: refuses what was not made durable, and goes back to what was.
    private func fail(_ error: StoreError) {
        guard let (failed, store) = self.commits.takeFailure() else { return }
        let workers = WorkersAtFailure(self.dispatcher, self.engine)
        // The engine that went too far is let go of before another is filled.
        self.replaceEngine()
        let durableError = StoredGateway.reload(store, into: self.engine)
        self.failure = StoreFailure(error: error, workers: workers, durableError: durableError)
        self.commits.refuse(failed, error)
        self.commits.release(self.engine, self.clock.offset)
        self.onFailure(error)
    }

    private func replaceEngine() {
        self.limits.take(from: self.dispatcher)
        let times = self.engine.times
        self.engine = EmbeddedEngine(
            configuration: self.configuration,
            now: self.engine.now,
            historyKey: self.engine.historyKey,
            random: self.makeRandom()
        )
        self.engine.times = times
        self.dispatcher = Dispatcher(
            engine: self.engine,
            output: self.commits.stage,
            wakeBytesPerStreamMax: self.wakeBytesPerStreamMax
        )
    }
}

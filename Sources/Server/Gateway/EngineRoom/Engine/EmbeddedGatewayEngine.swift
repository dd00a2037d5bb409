package import Engine
import Policy
package import Wire

/// The engine of a gateway that has its store to itself: it keeps every device in memory, and steps on while one group
/// of changes is made durable.
///
/// A step goes on to the present, performs every command in order, and hands what changed to the store if it is idle.
/// Otherwise the changes wait for the steps to come; a device that changes again is written once.
package final class EmbeddedGatewayEngine: EngineShell, GatewayEngine {
    /// The most devices looked at in one step, so that pushes never wait long for a crowd that is due at once.
    private static let dueDevicesMax = 4096

    private var clock: EngineClock
    private let commits: CommitDesk
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
        let parts = EngineParts(
            start.engine,
            stage,
            outlet,
            start.records,
            configuration,
            wakeBytesPerStreamMax: wakeBytesPerStreamMax
        )
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
        self.clock = start.clock
        self.makeRandom = world.makeRandom
        self.onFailure = onFailure
        super.init(parts, LimitCounts(meter, limitWatch), live, commitTimes: { commits.times })
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
        self.stage.offset = self.clock.offset
        self.watch(at: self.clock.now, self.clock.offset)
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
        let (stage, pushes) = (self.stage, self.pushes)
        batch.forEach(
            push: { stage.answer(pushes.take($0, from: $1, workspace)) },
            command: { self.take($0, workspace) }
        )
        self.stage.group.append(batch.arrivals)
        batch.removeAll()
        self.requests.writeNextLongList(workspace)
        return isDone
    }

    /// Answers everybody in a batch after a failure, and empties it.
    private func refuse(_ batch: CommandBatch, _ workspace: Workspace) {
        self.look(workspace)
        batch.forEach(
            push: { self.stage.answer(self.pushes.refuseUnstored($0, from: $1, workspace)) },
            command: { self.take($0, workspace) }
        )
        batch.removeAll()
        self.requests.writeNextLongList(workspace)
        self.commits.release(self.engine, self.clock.offset)
    }

    /// What is looked at in every step.
    private func look(_ workspace: Workspace) {
        self.takeSample(at: self.clock.now, workspace)
        self.limits.look(self.clock.now, workspace.dispatcher)
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
            output: self.stage,
            wakeBytesPerStreamMax: self.wakeBytesPerStreamMax
        )
    }
}

extension EmbeddedGatewayEngine: StoredEngine {
    func take(_ request: EngineRequest, _ workspace: Workspace) {
        guard self.failure == nil else { return self.requests.performAfterFailure(request, workspace) }
        self.requests.perform(request, workspace)
    }

    func rejected(_ reason: Int, _ topic: [UInt8], _ workspace: Workspace) {
        topic.withByteView { self.pushes.countRejected(reason, $0, workspace) }
    }

    func streamEnded(_ stream: StreamAddress) { self.dispatcher.streamEnded(stream) }

    /// The dispatcher has filled them.
    func hasFreeSlots() {}

    func lose(_ wake: WakeID, on stream: StreamAddress, takingBackAttempt: Bool) {
        self.dispatcher.lose(wake, on: stream, takingBackAttempt: takingBackAttempt)
    }

    func workersAsked() { if self.failure == nil { self.records.workersAsked() } }

    func configured() { self.records.begin(self.configuration, at: self.engine.now) }
}

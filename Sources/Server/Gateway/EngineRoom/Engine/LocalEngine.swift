package import Engine
package import Platform
import Policy
package import Wire

/// The engine of a gateway with its own store. It keeps every device in memory, and continues while a group of changes
/// is made durable.
///
/// A step advances the time, performs every command in order, and submits the changes to the store if it is idle.
/// Otherwise a later step submits them. A device that has changed several times is written once.
package final class LocalEngine: EngineShell, GatewayEngine {
    /// The maximum number of devices examined in one step. The limit prevents many due devices from delaying pushes.
    private static let dueDevicesMax = 4096
    /// The duration of a commit, in milliseconds, after which the gateway is not ready.
    package static let delayMax: Int64 = 10_000

    private var clock: EngineClock
    /// Nil if nothing is stored.
    private let committer: (any Committer)?
    /// The record numbers of the events; nil if nothing is stored.
    private var numbers: EventNumbers?
    /// The start of the last commit, in milliseconds of the monotonic clock.
    private var submittedAt: Int64 = 0
    private let makeRandom: @Sendable () -> () -> (UInt64, UInt64)
    /// The failure of the store, after which the engine accepts no changes; nil if there is none.
    private var failure: StoreFailure?
    private let pulse: Pulse
    private let onFailure: @Sendable (StoreError) -> Void

    /// Creates an engine with the state in `store`. Durably records wakes that were in flight as lost.
    ///
    /// - `historyKey`: the key of the history that receives the events.
    /// - `workers`: the requirement for workers to authenticate.
    /// - `jumpWatch`: limits jumps of the wall clock between two starts of the machine, and reports larger jumps.
    /// - `world`: the clocks and the random numbers.
    /// - `makeCommitter`: creates the committer for the store. The default committer has its own thread.
    /// - `wakeBytesPerStreamMax`: the maximum number of unanswered payload bytes on a worker's stream.
    /// - `store`: nil to store nothing.
    /// - `output`: receives the effects for the loops and the events for the history.
    /// - `limits`: counts and reports the limits that were reached.
    /// - `live`: receives a sample every second.
    /// - `pulse`: shows a watchdog that the engine is alive while it reads the durable state after a failure.
    /// - `signal`: makes the engine perform another step.
    /// - `onLossAccepted`: called by this initializer if the store lacks committed data and the start continues without
    ///   it.
    /// - `onFailure`: called once, when nothing can be stored any more.
    /// - Throws: `StoreError` if the stored state cannot be read, or nothing can be stored.
    package init(
        configuration: EngineConfiguration,
        historyKey: HashKey,
        workers: WorkerAuthentication = .unrecorded,
        jumpWatch: ClockJumpWatch = ClockJumpWatch(),
        world: EngineWorld = .system,
        makeCommitter: CommitterMaker = { store, output, signal throws(StoreError) in
            try CommitPipeline(store: store, output: output, signal: signal)
        },
        wakeBytesPerStreamMax: Int = GatewayLimits().wakeBytesPerStreamMax,
        store: (any RecordStore)?,
        output: GroupOutput,
        limits: LimitCounts = LimitCounts(),
        live: LiveService = LiveService(),
        pulse: Pulse = Pulse(),
        signal: @escaping @Sendable () -> Void,
        onLossAccepted: (StoreLoss) -> Void = { _ in },
        onFailure: @escaping @Sendable (StoreError) -> Void
    ) throws(StoreError) {
        let start = try LocalEngineStart(
            configuration: configuration,
            historyKey: historyKey,
            workers: workers,
            jumpWatch: jumpWatch,
            world: world,
            store: store,
            output: output,
            onLossAccepted: onLossAccepted
        )
        let committer = try store.map { store throws(StoreError) in try makeCommitter(store, output, signal) }
        self.committer = committer
        self.numbers = start.numbers
        self.clock = start.clock
        self.makeRandom = world.makeRandom
        self.pulse = pulse
        self.onFailure = onFailure
        super.init(
            start.engine,
            start.stage,
            output,
            RoomState(start.records, limits, commitTimes: { committer?.commitTimes ?? CommitTimes() }),
            configuration,
            wakeBytesPerStreamMax: wakeBytesPerStreamMax,
            live
        )
    }

    package var briefStep: ((CommandBatch) -> Int64)? {
        { [unowned self] batch in self.step(batch, failing: false) }
    }

    package func step(_ batch: CommandBatch) -> Int64 { self.step(batch, failing: true) }

    /// Performs a step.
    ///
    /// - Parameters:
    ///   - batch: the commands.
    ///   - mayFail: true if this step may handle a failure of the store. Handling takes long, because it reads the
    ///     durable state, so only the engine's thread does it.
    private func step(_ batch: CommandBatch, failing mayFail: Bool) -> Int64 {
        self.clock.step()
        self.stage.offset = self.clock.offset
        self.watch(at: self.clock.now, self.clock.offset)
        guard self.failure == nil else {
            self.refuse(batch, self.workspace)
            return self.requests.isLongListNext ? 0 : 1000
        }
        let isDone = self.perform(batch, self.workspace)
        if let error = self.flush() {
            guard mayFail else { return 0 }
            self.fail(error)
        }
        guard isDone, !self.dispatcher.isBehind, !self.requests.isLongListNext else { return 0 }
        // The wait is at most one second. After a suspension of the machine, wakes are therefore at most one second
        // late.
        var next = min(self.sampler.nextAt, self.engine.nextDue?.milliseconds ?? .max)
        // Ignore due progress: it waits for the busy store, which wakes the engine when it is idle.
        if let due = self.engine.progressDue, due > self.clock.now { next = min(next, due.milliseconds) }
        return max(0, min(1000, self.clock.milliseconds(until: next)))
    }

    package func finish() {
        self.records.flushNow()
        self.engine.flushProgress()
        for _ in 0..<2 where self.failure == nil {
            _ = self.committer?.waitUntilIdle()
            if let error = self.flush() { self.fail(error) }
        }
        self.committer?.stop()
    }

    private var workspace: Workspace {
        Workspace(
            engine: self.engine,
            dispatcher: self.dispatcher,
            offset: self.clock.offset,
            failure: self.failure
        )
    }

    /// Performs the commands of a batch and due work.
    ///
    /// - Returns: true if all due work was done.
    private func perform(_ batch: CommandBatch, _ workspace: Workspace) -> Bool {
        self.look(workspace)
        let isDone = workspace.dispatcher.advance(to: self.clock.now, devicesMax: Self.dueDevicesMax)
        let (stage, pushes) = (self.stage, self.pushes)
        batch.forEach(
            push: { stage.answer(pushes.take($0, from: $1, workspace)) },
            command: { self.take($0, workspace) }
        )
        self.stage.group.append(batch.arrivals, endsBatch: batch.endsBatch)
        batch.removeAll()
        self.requests.writeNextLongList(workspace)
        return isDone
    }

    /// Answers all requests in a batch after a failure, and empties the batch.
    private func refuse(_ batch: CommandBatch, _ workspace: Workspace) {
        self.look(workspace)
        batch.forEach(
            push: { self.stage.answer(self.pushes.refuseUnstored($0, from: $1, workspace)) },
            command: { self.take($0, workspace) }
        )
        batch.removeAll()
        self.requests.writeNextLongList(workspace)
        self.release()
    }

    /// Performs the regular checks of a step.
    private func look(_ workspace: Workspace) {
        self.takeSample(at: self.clock.now, workspace)
        self.limits.look(self.clock.now, workspace.dispatcher)
    }
}

// MARK: - Commits

extension LocalEngine {
    /// Submits the changes to the store if it is idle. If nothing has changed and no commit is in progress, releases
    /// the pending effects.
    ///
    /// - Returns: the reason why nothing can be stored any more; nil if the store works.
    private func flush() -> StoreError? {
        guard let committer = self.committer else {
            _ = self.engine.takeStep()
            self.release()
            return nil
        }
        let monotonic = self.clock.monotonic
        let hasRecords = self.engine.hasChanges || self.engine.hasEvents || self.records.hasChanges(at: monotonic)
        let awaited: AwaitedEvent = hasRecords ? .commit : self.stage.group.isEmpty ? .nothing : .release
        switch committer.status(of: self.stage.group, waitingFor: awaited) {
        case .busy: return nil
        case .failed(let error): return error
        case .batching where hasRecords: return nil
        case .idle, .batching:
            guard hasRecords else {
                self.release()
                return nil
            }
            self.takeHistory()
            self.numbers?.write(self.stage.group.history, to: &self.stage.group.records)
            let record = self.clock.record(at: self.engine.now)
            self.stage.group.records.append(RecordKey(.clock)) { record.store(to: &$0) }
            self.engine.takeStep(into: &self.stage.group.records)
            self.records.takeChanges(into: &self.stage.group.records, at: monotonic)
            committer.submit(&self.stage.group)
            self.submittedAt = monotonic
            return nil
        }
    }

    /// Releases the pending effects without a commit.
    private func release() {
        self.takeHistory()
        self.output.release(self.stage.group)
    }

    private func takeHistory() {
        if self.engine.hasEvents { self.stage.group.history.offset = self.clock.offset }
        self.engine.takeEvents(into: &self.stage.group.history.events)
        self.stage.group.history.events += self.engine.takeSubscriptions()
        self.engine.takeWatched(into: &self.stage.group.watched)
    }

    /// The error while a commit takes longer than `delayMax`; nil otherwise.
    private var delay: StoreError? {
        let milliseconds = self.clock.monotonic - self.submittedAt
        guard milliseconds >= Self.delayMax, let committer = self.committer,
            case .busy = committer.status(of: self.stage.group, waitingFor: .nothing)
        else { return nil }
        let seconds = milliseconds / 1000
        return StoreError(message: "A commit has not ended for \(seconds) s; check the disk of the state folder.")
    }

    // MARK: Failure

    /// Handles a failure of the store: refuses everything that is not durable, and restores the durable state.
    private func fail(_ error: StoreError) {
        guard let committer = self.committer else { return }
        var failed = self.output.makeGroup()
        let store = committer.takeFailure(&failed)
        let workers = WorkersAtFailure(self.dispatcher, self.engine)
        // Release the engine with undurable changes first, because two engines may not fit in memory.
        self.replaceEngine()
        let durableError = StoredGateway.reload(store, into: self.engine, self.pulse)
        self.failure = StoreFailure(error: error, workers: workers, durableError: durableError)
        self.refuseEverything(of: failed, .storeFailed(error))
        self.refuseEverything(of: self.stage.group, .storeFailed(error))
        self.output.release(failed)
        self.release()
        self.onFailure(error)
    }

    private func refuseEverything(of group: StepGroup, _ error: APIError) {
        for loop in group.effects.loops.indices { self.refuse(&group.effects.loops[loop], error) }
        self.refuse(&group.effects.webhooks, error)
        for question in group.history.questions { self.stage.answer(question.request.reply, .refused(error)) }
        group.history.removeAll()
        group.watched.removeAll()
        group.records.removeAll()
    }

    /// Replaces the effects of a group for one output with refusals, because the group did not become durable.
    ///
    /// Each request of the group has one answer among the effects, and is refused once. Wakes, ends of wakes and
    /// changed conditions are dropped. For its worker, a dropped wake was never launched, and a wake whose end is
    /// dropped is still in flight.
    private func refuse(_ effects: inout EffectBatch, _ error: APIError) {
        let refused = EffectBatch()
        var pushCount: Int64 = 0
        effects.handOver { effect in
            switch effect {
            case .pushAnswer(let reply):
                if reply.reason == nil { pushCount += 1 }
                refused.append(PushReply(reply.address, reply.apnsID, refused: .serviceUnavailable))
            case .answer(let address, _), .subscribed(let address, _): refused.append(.refused(error), to: address)
            case .asked(let request): refused.append(.refused(error), to: request.reply)
            case .wake, .expiring, .expired, .released, .conditions, .drained: break
            case .draining: refused.append(.draining)
            }
        }
        effects = refused
        self.records.countRejected(APNSReason.serviceUnavailable.index, nil, by: pushCount)
    }

    private func replaceEngine() {
        self.limits.take(from: self.dispatcher)
        let times = self.engine.times
        self.engine = DeviceEngine(
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

// MARK: - Commands

extension LocalEngine: StoredEngine {
    func take(_ request: EngineRequest, _ workspace: Workspace) {
        guard self.failure == nil else { return self.requests.performAfterFailure(request, workspace) }
        guard request.work.isReadiness, let error = self.delay else {
            return self.requests.perform(request, workspace)
        }
        // The effects of this step wait for the commit, which may never end.
        let group = self.output.makeGroup()
        group.effects[request.reply].append(.refused(.storeUnavailable(error)), to: request.reply)
        self.output.release(group)
    }

    func rejected(_ reason: Int, _ topic: [UInt8], _ workspace: Workspace) {
        topic.withByteView { self.pushes.countRejected(reason, $0, workspace) }
    }

    func streamEnded(_ stream: StreamAddress) { self.dispatcher.streamEnded(stream) }

    /// Does nothing, because the dispatcher has already filled the slots.
    func hasFreeSlots() {}

    func lose(_ wake: WakeID, on stream: StreamAddress, takingBackAttempt: Bool) {
        self.dispatcher.lose(wake, on: stream, takingBackAttempt: takingBackAttempt)
    }

    func requireWorkerAuthentication() { if self.failure == nil { self.records.requireWorkerAuthentication() } }

    func configured(isPolicyChanged: Bool) { self.records.begin(self.configuration, at: self.engine.now) }
}

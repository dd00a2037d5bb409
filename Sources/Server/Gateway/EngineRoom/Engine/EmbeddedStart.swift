import Engine
import Policy
import Wire

/// A start on what a store has kept, of an engine that is the only one on it.
///
/// A start that is refused leaves the store as it is, and the history.
struct EmbeddedStart {
    let engine: EmbeddedEngine
    let records: GatewayRecords
    /// Numbers the records of events; nil when nothing is kept.
    private(set) var numbers: EventNumbers?
    private(set) var clock: EngineClock
    private let isAskingWorkers: Bool
    /// There was no state before.
    private let isFirst: Bool
    private let events: EventRecovery?

    /// - `workers`: whether workers are asked who they are.
    /// - `store`: nil when nothing is kept.
    /// - `onLossAccepted`: called when the store lacks what was committed, and the start goes on without it.
    init(
        configuration: EngineConfiguration,
        historyKey: HashKey,
        workers: WorkersAsked,
        jumpWatch: ClockJumpWatch,
        world: EngineWorld,
        store: (any RecordStore)?,
        history: any HistoryOutlet,
        onLossAccepted: (StoreLoss) -> Void
    ) throws(StoreError) {
        let reading = EngineClock.Reading(world)
        self.events = store.map { _ in EventRecovery(historyKey) }
        self.engine = EmbeddedEngine(
            configuration: configuration,
            now: Instant(milliseconds: reading.wall),
            historyKey: historyKey,
            random: world.makeRandom()
        )
        let stored = try StoredGateway.load(store, into: self.engine, self.events, workers)
        self.isFirst = stored.clock == nil
        self.isAskingWorkers = workers == .asked
        self.clock = EngineClock(resuming: stored.clock, at: reading, world, jumpWatch)
        try self.engine.finishRestoring(now: self.clock.now)
        // No other process uses the store, and the workers of the one before are gone.
        self.engine.loseEveryWake()
        let beginsAnother = store?.beginsAnother ?? false
        // Told before it is given up: a start that is cut off in between must not have done it without a word.
        if let loss = store?.loss { onLossAccepted(loss) }
        self.records = GatewayRecords(
            countingSince: stored.countingSince ?? reading.wall,
            acceptedLoss: store?.loss,
            rejections: stored.rejections,
            policies: stored.policies,
            wereWorkersAsked: stored.wereWorkersAsked || self.isAskingWorkers
        )
        try store?.begin()
        try history.open()
        self.events?.compare(with: history.waitUntilOpened())
        self.records.begin(configuration, at: self.clock.now)
        self.numbers = self.events?.numbers(wall: reading.wall, beginsAnother: beginsAnother)
    }

    /// Makes durable what the start has changed.
    mutating func commit(to store: any RecordStore, _ stage: EffectStage) throws(StoreError) {
        var beginning = RecordBatch()
        self.records.takeBeginning(into: &beginning, isAsking: self.isAskingWorkers)
        let record = self.clock.record(at: self.clock.now)
        beginning.append(RecordKey(.clock)) { record.store(to: &$0) }
        self.engine.takeStep(into: &beginning)
        self.engine.takeEvents(into: &stage.group.history.events)
        self.numbers?.write(stage.group.history, to: &beginning)
        try store.commit(beginning)
    }

    /// Hands the history what a former process did not come to write.
    func recoverEvents(_ stage: EffectStage, _ outlet: GroupOutlet) {
        guard let events = self.events else { return }
        events.finish(at: EventRecovery.Start(isFirst: self.isFirst, now: self.clock.now, offset: self.clock.offset))
        stage.group.history.recovery = events
        outlet.release(stage.group)
    }
}

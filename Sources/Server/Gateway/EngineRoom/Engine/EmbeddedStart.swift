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

/// What a store gives back at a start: an engine, and what the gateway keeps besides.
struct StoredGateway {
    let engine: EmbeddedEngine
    /// The clocks at the last commit; nil at the first start.
    private(set) var clock: ClockRecord?
    /// When the counters began, in milliseconds since 1970; nil at the first start.
    private(set) var countingSince: Int64?
    private(set) var rejections = Rejections()
    private(set) var policies = PolicyVersions()
    /// A gateway on this state asked workers who they are.
    private(set) var wereWorkersAsked = false
    /// Takes what the store keeps for the history; nil when the history has it.
    private let events: EventRecovery?

    init(engine: EmbeddedEngine, events: EventRecovery? = nil) {
        self.engine = engine
        self.events = events
    }

    /// Everything that a store holds, whose devices `engine` gets; nothing when there is no store.
    ///
    /// - Throws: when what is kept cannot be read, or workers may not go unasked.
    static func load(
        _ store: (any RecordStore)?,
        into engine: EmbeddedEngine,
        _ events: EventRecovery?,
        _ workers: WorkersAsked
    ) throws(StoreError) -> StoredGateway {
        var stored = StoredGateway(engine: engine, events: events)
        try store?.load { key, content throws(StoreError) in try stored.take(key, content) }
        try stored.check(workers)
        return stored
    }

    /// Has an engine without devices go back to what was durable last, wakes in flight included.
    ///
    /// - Returns: why that cannot be read; nil when it can.
    static func reload(_ store: any RecordStore, into engine: EmbeddedEngine) -> StoreError? {
        var stored = StoredGateway(engine: engine)
        do throws(StoreError) {
            try store.reload { key, content throws(StoreError) in try stored.take(key, content) }
            try engine.finishRestoring(now: stored.clock?.now ?? engine.now)
            return nil
        } catch { return error }
    }

    /// Takes one record of the store.
    mutating func take(_ key: RecordKey, _ content: ByteView) throws(StoreError) {
        switch key.kind {
        case .topic, .device, .tasks: try self.engine.restore(key, content)
        case .events: try self.events?.take(content)
        case .clock:
            self.clock = ClockRecord(stored: content)
            if self.clock == nil { throw Self.unreadable("the clock") }
        case .origin:
            guard content.count == 8 else { throw Self.unreadable("the beginning of the counters") }
            if key == .workersAsked {
                self.wereWorkersAsked = true
            } else {
                let since = Int64(littleEndian: content.load(Int64.self, at: 0))
                guard Self.credibleMoments.contains(since) else {
                    throw Self.unreadable("the beginning of the counters")
                }
                self.countingSince = since
            }
        case .policies:
            guard let policies = PolicyVersions(stored: content) else { throw Self.unreadable("the launch policies") }
            self.policies = policies
        case .rejections:
            guard self.rejections.restore(key.index, content) else { throw Self.unreadable("the refused pushes") }
        }
    }

    /// Looks whether workers may go unasked.
    ///
    /// - Throws: when they may not.
    private func check(_ workers: WorkersAsked) throws(StoreError) {
        guard self.wereWorkersAsked, case .notAsked(let folder) = workers else { return }
        throw Self.workersWereAsked(folder)
    }

    /// Workers may not go unasked, though there is no `token.key` in this folder.
    static func workersWereAsked(_ folder: String) -> StoreError {
        StoreError(
            message: "The workers of this state had to authenticate, and now none would have to: \(folder) has no "
                + "token.key, and tls.clientCA is not set. Put back the token.key that was there, have "
                + "`wakegate token issue` make another one, or set unaskedWorkers: true if workers need not "
                + "authenticate."
        )
    }

    /// Milliseconds since 1970 that can be reckoned with: 36 million years each way.
    private static let credibleMoments: ClosedRange<Int64> = -(1 << 60)...1 << 60

    private static func unreadable(_ what: String) -> StoreError {
        StoreError(message: "The stored state does not hold together at \(what). Restore a backup.")
    }
}

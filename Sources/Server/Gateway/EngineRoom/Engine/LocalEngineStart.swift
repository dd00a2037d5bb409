import Engine
import Platform
import Policy
import Wire

/// The start of an engine with its own store.
///
/// A failed start leaves the store and the history unchanged.
struct LocalEngineStart {
    let engine: DeviceEngine
    let records: GatewayRecords
    /// The record numbers of the events; nil if nothing is stored.
    private(set) var numbers: EventNumbers?
    private(set) var clock: EngineClock
    /// Collects the effects of steps.
    let stage: EffectStage

    /// Makes the changes of the start durable, and passes events to the history that the previous process did not
    /// write.
    ///
    /// - `workers`: the requirement for workers to authenticate.
    /// - `store`: nil if nothing is stored.
    /// - `onLossAccepted`: called if the store lacks committed data and the start continues without it.
    init(
        configuration: EngineConfiguration,
        historyKey: HashKey,
        workers: WorkerAuthentication,
        jumpWatch: ClockJumpWatch,
        world: EngineWorld,
        store: (any RecordStore)?,
        output: GroupOutput,
        onLossAccepted: (StoreLoss) -> Void
    ) throws(StoreError) {
        let reading = EngineClock.Reading(world)
        let events = store.map { _ in EventRecovery(historyKey) }
        self.engine = DeviceEngine(
            configuration: configuration,
            now: Instant(milliseconds: reading.wall),
            historyKey: historyKey,
            random: world.makeRandom()
        )
        var stored = StoredGateway(engine: self.engine, events: events)
        try store?.load { key, content throws(StoreError) in try stored.take(key, content) }
        if stored.wasWorkerAuthenticationRequired, case .notRequired(let folder) = workers {
            throw StoredGateway.workerAuthenticationWasRequired(folder)
        }
        self.clock = EngineClock(resuming: stored.clock, at: reading, world, jumpWatch)
        try self.engine.finishRestoring(now: self.clock.now)
        // The workers of the previous process are disconnected.
        self.engine.loseEveryWake()
        let isFork = store?.isFork ?? false
        // Report the loss before it becomes permanent. Otherwise an interrupted start could lose data silently.
        if let loss = store?.loss { onLossAccepted(loss) }
        self.records = GatewayRecords(
            countingSince: stored.countingSince ?? reading.wall,
            acceptedLoss: store?.loss,
            rejections: stored.rejections,
            policies: stored.policies,
            wasWorkerAuthenticationRequired: stored.wasWorkerAuthenticationRequired || workers == .required
        )
        try store?.begin()
        try output.history.open()
        events?.compare(with: output.history.waitUntilOpened())
        self.records.begin(configuration, at: self.clock.now)
        self.numbers = events?.numbers(wall: reading.wall, isFork: isFork)
        self.stage = EffectStage(group: output.makeGroup(), offset: self.clock.offset)
        guard let store, let events else { return }
        try self.commit(to: store, isAsking: workers == .required)
        events.finish(isFirst: stored.clock == nil, now: self.clock.now, offset: self.clock.offset)
        self.stage.group.history.recovery = events
        output.release(self.stage.group)
    }

    private mutating func commit(to store: any RecordStore, isAsking: Bool) throws(StoreError) {
        var beginning = RecordBatch()
        self.records.takeBeginning(into: &beginning, isAsking: isAsking)
        let record = self.clock.record(at: self.clock.now)
        beginning.append(RecordKey(.clock)) { record.store(to: &$0) }
        self.engine.takeStep(into: &beginning)
        self.engine.takeEvents(into: &self.stage.group.history.events)
        self.numbers?.write(self.stage.group.history, to: &beginning)
        try store.commit(beginning)
    }
}

/// The contents of a store at a start: an engine, and the other records of the gateway.
struct StoredGateway {
    let engine: DeviceEngine
    /// The clocks at the last commit; nil before the first start.
    private(set) var clock: ClockRecord?
    /// The start of counting, in milliseconds since 1970; nil before the first start.
    private(set) var countingSince: Int64?
    private(set) var rejections = Rejections()
    private(set) var policies = PolicyVersions()
    /// True if a gateway with this state has ever required workers to authenticate.
    private(set) var wasWorkerAuthenticationRequired = false
    /// Receives the events that the store keeps for the history; nil if they are not needed.
    private let events: EventRecovery?

    init(engine: DeviceEngine, events: EventRecovery? = nil) {
        self.engine = engine
        self.events = events
    }

    /// Restores the last durable state, including wakes in flight, into an engine without devices.
    ///
    /// - `pulse`: beats at each record, because reading a large state takes longer than a watchdog waits.
    /// - Returns: the reason why the state cannot be read; nil if it was restored.
    static func reload(_ store: any RecordStore, into engine: DeviceEngine, _ pulse: Pulse) -> StoreError? {
        var stored = StoredGateway(engine: engine)
        do throws(StoreError) {
            try store.reload { key, content throws(StoreError) in
                pulse.beat()
                try stored.take(key, content)
            }
            try engine.finishRestoring(now: stored.clock?.now ?? engine.now)
            return nil
        } catch { return error }
    }

    /// Restores one record of the store.
    mutating func take(_ key: RecordKey, _ content: ByteView) throws(StoreError) {
        switch key.kind {
        case .topic, .device, .tasks: try self.engine.restore(key, content)
        case .events: try self.events?.take(content)
        case .clock:
            self.clock = ClockRecord(stored: content)
            if self.clock == nil { throw Self.unreadable("the clock") }
        case .origin:
            guard content.count == 8 else { throw Self.unreadable("the beginning of the counters") }
            if key == .workerAuthentication {
                self.wasWorkerAuthenticationRequired = true
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

    /// Returns the error for a state that requires workers to authenticate, although this folder has no `token.key`.
    static func workerAuthenticationWasRequired(_ folder: String) -> StoreError {
        StoreError(
            message: "The workers of this state had to authenticate, and now none would have to: \(folder) has no "
                + "token.key, and tls.clientCA is not set. Put back the token.key that was there, have "
                + "`wakegate token issue` make another one, or set unaskedWorkers: true if workers need not "
                + "authenticate."
        )
    }

    /// The plausible times in milliseconds since 1970: 36 million years in either direction.
    private static let credibleMoments: ClosedRange<Int64> = -(1 << 60)...1 << 60

    private static func unreadable(_ what: String) -> StoreError {
        StoreError(message: "The stored state does not hold together at \(what). Restore a backup.")
    }
}

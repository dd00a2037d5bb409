import Engine
import Policy
import Wire

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
            message: "The workers of this state had to show who they are, and nobody would be asked: \(folder) has no "
                + "token.key, and tls.clientCA is not set. Put back the token.key that was there, have "
                + "`wakegate token issue` make another one, or set unaskedWorkers: true if nobody is to be asked."
        )
    }

    /// Milliseconds since 1970 that can be reckoned with: 36 million years each way.
    private static let credibleMoments: ClosedRange<Int64> = -(1 << 60)...1 << 60

    private static func unreadable(_ what: String) -> StoreError {
        StoreError(message: "The stored state does not hold together at \(what). Restore a backup.")
    }
}

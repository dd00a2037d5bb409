import Engine
import Policy
import WakeGateTestKit
import Wire

/// The same operations on an engine that keeps all devices and on one with a shared store. Answers, messages, counters,
/// history and snapshots are compared after each operation.
///
/// No two devices compete for a slot, so the order of simultaneous events does not matter.
final class SharedComparison {
    /// The rows that the transactions of an operation load.
    enum Loading: CaseIterable {
        /// All rows.
        case all
        /// Devices with something due or a wait for a slot, and the device of the operation.
        case needed
        /// One device in each transaction.
        case single
    }

    static let deviceCount = 6
    static let topicCount = 2

    let local: DispatchRig
    let shared: SharedRig
    let loading: Loading
    var generator: SeededGenerator
    /// The wakes of the engine with the shared store, by the corresponding wakes of the other one.
    private(set) var twins: [WakeID: WakeID] = [:]
    /// The wakes of the engine that keeps all devices, in order of launch.
    private(set) var wakes: [WakeID] = []
    private(set) var kinds: [WakeID: LaunchKind] = [:]
    private(set) var differences: [String] = []
    private(set) var history: [String] = []
    var lastPush: UInt64 = 0
    let mayFail: Bool

    init(_ configuration: EngineConfiguration, _ loading: Loading, mayFail: Bool, seed: UInt64) throws {
        let topics = (0..<Self.topicCount).map { EngineRig.topicName($0) }
        let local = DispatchRig(configuration, seed: seed)
        for topic in topics { _ = topic.withByteView { local.engine.topic($0) } }
        self.local = local
        let start = local.rig.instant
        self.shared = try SharedRig(configuration, start: start, topics: topics, seed: seed &+ 1_000_000)
        self.loading = loading
        self.mayFail = mayFail
        self.generator = SeededGenerator(seed: seed)
        var failures = SeededGenerator(seed: seed &+ 7)
        if mayFail { self.shared.failsNext = { failures.once(in: 4) } }
    }

    var tokens: [DeviceToken] { (0..<Self.deviceCount).map { EngineRig.token($0) } }
}

// MARK: - Doing

extension SharedComparison {
    /// Advances the time of both, and applies what is due.
    func advance(by milliseconds: Int64) throws {
        self.history.append("+\(milliseconds)")
        self.local.advance(by: milliseconds)
        self.shared.now = self.local.rig.instant
        try self.settle()
        try self.compare()
    }

    /// Processes everything that is due or waits for a slot.
    private func settle() throws {
        switch self.loading {
        case .all: try self.shared.transact(self.tokens) {}
        case .needed: try self.shared.transact(self.shared.due + self.shared.ready) {}
        case .single:
            for token in self.shared.due { try self.shared.transact([token]) {} }
            for token in self.shared.ready { try self.shared.transact([token]) {} }
        }
    }

    /// Performs an operation on devices, or on none.
    func perform(
        _ name: String,
        _ tokens: [DeviceToken],
        _ verb: (Dispatcher, DeviceEngine, (WakeID) -> WakeID) -> String
    ) throws {
        self.history.append(name)
        let expected = verb(self.local.dispatcher, self.local.engine) { $0 }
        let loaded: [DeviceToken] =
            switch self.loading {
            case .all: self.tokens
            case .needed: tokens + self.shared.ready
            case .single: tokens
            }
        let answer = try self.shared.transact(loaded) {
            verb(self.shared.dispatcher, self.shared.engine) { self.twins[$0] ?? $0 }
        }
        try self.settle()
        if expected != answer { self.note("answered \(answer) and not \(expected)") }
        try self.compare()
    }

    /// Performs an operation on streams only.
    func change(_ name: String, _ verb: (Dispatcher) -> Void) throws {
        self.history.append(name)
        verb(self.local.dispatcher)
        verb(self.shared.dispatcher)
        try self.settle()
        try self.sendConditions()
        try self.compare()
    }

    /// Ends a stream.
    func endStream(_ address: StreamAddress) throws {
        self.history.append("end \(address.number)")
        self.local.dispatcher.streamEnded(address)
        let wakes = self.shared.dispatcher.removeStream(address)
        let lost = Dictionary(grouping: wakes) { self.shared.device(of: $0) }
        switch self.loading {
        case .all: try self.shared.transact(self.tokens) { self.shared.dispatcher.lose(wakes) }
        case .needed:
            try self.shared.transact(lost.keys.compactMap { $0 }) { self.shared.dispatcher.lose(wakes) }
        case .single:
            for (token, wakes) in lost {
                try self.shared.transact(token.map { [$0] } ?? []) { self.shared.dispatcher.lose(wakes) }
            }
        }
        try self.settle()
        try self.compare()
    }

    func reconfigure(_ configuration: EngineConfiguration) throws {
        self.history.append("reconfigure")
        self.local.engine.reconfigure(configuration)
        self.local.advance(by: 0)
        self.shared.engine.reconfigure(configuration)
        // Each row is updated when it is loaded.
        if self.loading == .single {
            for token in self.tokens { try self.shared.transact([token]) {} }
        } else {
            try self.shared.transact(self.tokens) {}
        }
        try self.settle()
        try self.compare()
    }

    private func sendConditions() throws {
        let owed = self.shared.dispatcher.pendingConditions
        guard !owed.isEmpty else { return }
        _ = try self.shared.read(owed) { self.shared.dispatcher.sendPendingConditions() }
        if !self.shared.dispatcher.pendingConditions.isEmpty { self.note("conditions are still owed") }
    }
}

// MARK: - Comparing

extension SharedComparison {
    private func note(_ difference: String) {
        self.differences.append("after \(self.history.suffix(12)): \(difference)")
    }

    private func compare<Value: Equatable>(_ what: String, _ value: Value, _ expected: Value) {
        if value != expected { self.note("\(what) is \(value) and not \(expected)") }
    }

    private func compare() throws {
        try self.sendConditions()
        self.compareTold()
        self.compareCounts()
        var events: [HistoryEvent] = []
        self.local.engine.takeEvents(into: &events)
        let ours = self.shared.takeEvents()
        for token in self.tokens {
            let number = HistoryEvent.device(of: token, EngineRig.historyKey)
            self.compare("history", ours.filter { $0.device == number }, events.filter { $0.device == number })
        }
        let shown = try self.shared.read(self.tokens) { self.devices(self.shared.engine) { $0 } }
        self.compare("snapshots", shown, self.devices(self.local.engine) { self.twins[$0] ?? $0 })
        self.compare("due", self.shared.rows.values.compactMap(\.due).min(), self.local.engine.nextDue)
        for topic in 0..<Self.topicCount {
            let index = TopicIndex(rawValue: UInt32(topic))
            let ready = self.shared.rows.values.count { row in
                row.topic == index && row.ready.contains { $0.target == .push }
            }
            self.compare("ready", ready, self.local.engine.readyCount(index))
        }
        self.compareStreams()
        self.compare("faults", self.shared.faults, [])
    }

    private func compareCounts() {
        var totals = self.local.engine.totals
        totals.gauges.devices = Int64(self.shared.rows.count)
        totals.gauges.contentBytes = Int64(self.local.engine.contentBytes)
        totals.gauges.taskBytes = Int64(self.local.engine.taskBytes)
        self.compare("total", self.shared.total, totals)
        self.compare("devices", self.tokens.count { self.local.engine.find($0) != nil }, self.shared.rows.count)
        let ended = TaskKind.allCases.reduce(totals.results.sum) { $0 + totals.tasks[$1].sum }
        let inFlight = totals.launched + totals.tasks.launched.sum - ended
        let open = self.shared.wakes.values.count { $0.endedAt == nil }
        self.compare("wakes in flight", Int64(open), inFlight)
        for snapshot in self.local.engine.topicSnapshots {
            var counters = self.shared.counters[snapshot.index] ?? ActivityCounters()
            counters.gauges = DeviceGauges()
            self.compare("counters of \(snapshot.name)", counters, snapshot.counters)
        }
    }

    private func compareStreams() {
        func streams(_ dispatcher: Dispatcher) -> [String] {
            dispatcher.streams(countMax: 100).map { "\($0)" }.sorted()
        }
        self.compare("streams", streams(self.shared.dispatcher).count, streams(self.local.dispatcher).count)
        for topic in 0..<Self.topicCount {
            let index = TopicIndex(rawValue: UInt32(topic))
            self.compare(
                "workers",
                self.shared.dispatcher.workerCounts(index),
                self.local.dispatcher.workerCounts(index)
            )
            let free = self.local.dispatcher.streams(countMax: 100).filter {
                $0.topic == index && $0.state == .free && !self.local.engine.isPaused(index)
            }
            let offered = self.shared.dispatcher.freeSlots(index)
            self.compare("free", offered.reduce(0) { $0 + $1.count }, free.reduce(0) { $0 + $1.slots - $1.busy })
        }
    }

    private func compareTold() {
        let (ours, theirs) = (self.shared.takeOutput(), self.local.output.take())
        let (sent, expected) = (Self.deliveries(ours), Self.deliveries(theirs))
        self.compare("delivered", sent.map(Self.text), expected.map(Self.text))
        for (delivery, twin) in zip(expected, sent) {
            self.twins[delivery.wake] = twin.wake
            self.wakes.append(delivery.wake)
            self.kinds[delivery.wake] = delivery.kind
        }
        var (told, expectedTold) = (Self.others(ours) { $0 }, Self.others(theirs) { self.twins[$0] ?? $0 })
        // Messages of a step that was repeated may occur twice.
        if self.mayFail { (told, expectedTold) = (Array(Set(told)).sorted(), Array(Set(expectedTold)).sorted()) }
        self.compare("told", told, expectedTold)
    }

    private static func deliveries(_ events: [RecordingOutput.Event]) -> [Delivery] {
        let deliveries: [Delivery] = events.compactMap {
            if case .delivered(let delivery) = $0 { delivery } else { nil }
        }
        return deliveries.enumerated().sorted {
            (Self.text($0.element), $0.offset) < (Self.text($1.element), $1.offset)
        }.map(\.element)
    }

    private static func text(_ delivery: Delivery) -> String {
        let task = delivery.task.map { "\($0.name) \($0.details) \($0.resumedFrom as Any) " + Self.text($0.task) }
        return "\(delivery.token.hex) \(delivery.kind) \(delivery.stream.number) \(delivery.topic) \(delivery.deadline)"
            + " \(delivery.push as Any) \(delivery.apnsID as Any) \(delivery.payload) \(task ?? "")"
    }

    private static func text(_ task: BackgroundTask) -> String {
        "\(task.kind) \(task.needs) \(task.arrivedAt) \(task.waitsSince) \(task.arrival) "
            + "\(task.transfers) \(task.attempts)"
    }

    private static func others(
        _ events: [RecordingOutput.Event],
        _ twin: (WakeID) -> WakeID
    ) -> [String] {
        events.compactMap { event -> String? in
            switch event {
            case .delivered: nil
            case .expired(let wake, let stream, let reason): "expired \(twin(wake)) \(stream.number) \(reason)"
            case .released(let wake, let stream): "released \(twin(wake)) \(stream.number)"
            case .drained(let stream): "drained \(stream.number)"
            case .conditions(let token, let conditions, let stream):
                "conditions \(token.hex) \(conditions) \(stream.number)"
            }
        }.sorted()
    }

    /// Returns the complete state of all devices.
    private func devices(_ engine: DeviceEngine, _ twin: (WakeID) -> WakeID) -> [FrozenDevice?] {
        self.tokens.map { token in engine.find(token).map { FrozenDevice(engine.snapshot($0), twin: twin) } }
    }
}

/// A production dispatcher and engine with a shared store: a dictionary of rows, accessed in transactions of which some
/// fail and are repeated.
final class SharedRig {
    struct Row {
        var device: SharedDevice
        var topic: TopicIndex
        var due: Instant?
        var ready: [SharedDeviceChange.ReadyLane] = []
    }

    let engine: DeviceEngine
    let dispatcher: Dispatcher
    private let output = RecordingOutput()
    private(set) var rows: [DeviceToken: Row] = [:]
    /// The devices of wakes, and the end of each.
    private(set) var wakes: [WakeID: (token: DeviceToken, endedAt: Instant?)] = [:]
    private(set) var counters: [TopicIndex: ActivityCounters] = [:]
    private(set) var total = ActivityCounters()
    private(set) var events: [HistoryEvent] = []
    private var told: [RecordingOutput.Event] = []
    var now: Instant
    /// Returns true if the next attempt of a transaction must fail.
    var failsNext: () -> Bool = { false }
    private(set) var failureCount = 0
    /// Changes the written row, to inject faults that must be detected.
    var spoil: (SharedDeviceChange) -> SharedDeviceChange = { $0 }
    /// Faults in the results of the engine.
    private(set) var faults: [String] = []

    init(_ configuration: EngineConfiguration, start: Instant, topics: [String], seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        self.now = start
        self.engine = DeviceEngine(configuration: configuration, now: start, historyKey: EngineRig.historyKey) {
            (generator.next(), generator.next())
        }
        self.dispatcher = Dispatcher(engine: self.engine, output: self.output)
        self.engine.useSharedStore()
        try self.engine.appendTopics(topics)
        self.dispatcher.useSharedStore { _ in false }
    }

    private func check(_ isSo: Bool, _ rule: String) {
        if !isSo { self.faults.append("against the rule that \(rule)") }
    }

    /// Returns the messages to workers since the last call.
    func takeOutput() -> [RecordingOutput.Event] {
        self.told += self.output.take()
        defer { self.told = [] }
        return self.told
    }

    func takeEvents() -> [HistoryEvent] {
        defer { self.events = [] }
        return self.events
    }

    /// The devices with something due by now, the earliest first.
    var due: [DeviceToken] {
        let due = self.rows.values.filter { $0.due.map { $0 <= self.now } ?? false }
        return due.sorted { ($0.due ?? .distantPast) < ($1.due ?? .distantPast) }.map(\.device.token)
    }

    /// The devices with a lane that waits for a slot, the longest waiting first.
    var ready: [DeviceToken] {
        func since(_ row: Row) -> Instant { row.ready.map(\.since).min() ?? .distantFuture }
        return self.rows.values.filter { !$0.ready.isEmpty }.sorted { since($0) < since($1) }.map(\.device.token)
    }

    /// Returns the device of a wake in flight, or of one that ended in the last ten minutes.
    func device(of wake: WakeID) -> DeviceToken? {
        guard let found = self.wakes[wake] else { return nil }
        if let endedAt = found.endedAt, endedAt + 600_000 <= self.now { return nil }
        return found.token
    }
}

// MARK: - Transactions

extension SharedRig {
    /// Performs `body` on these devices, in a transaction that may fail and be repeated.
    func transact<Result>(_ tokens: [DeviceToken], _ body: () throws -> Result) throws -> Result {
        while true {
            // Messages from outside of transactions are published immediately.
            self.told += self.output.take()
            try self.load(tokens)
            self.advance()
            let result = try body()
            let changes = self.engine.takeSharedChanges()
            let counts = self.engine.takeSharedCounts()
            var events: [HistoryEvent] = []
            self.engine.takeEvents(into: &events)
            let streams = self.dispatcher.takeStreamChanges()
            self.engine.unloadAll()
            self.dispatcher.forgetDevices()
            guard !self.failsNext() else {
                self.failureCount += 1
                _ = self.output.take()
                self.check(self.dispatcher.undo(streams).isEmpty, "no stream ended meanwhile")
                continue
            }
            self.write(changes, counts)
            self.events += events
            self.told += self.output.take()
            self.dispatcher.committed(streams)
            return result
        }
    }

    /// Reads these devices.
    func read<Result>(_ tokens: [DeviceToken], _ body: () -> Result) throws -> Result {
        try self.load(tokens)
        let result = body()
        var events: [HistoryEvent] = []
        self.engine.takeEvents(into: &events)
        self.check(events.isEmpty, "a read creates no events")
        self.dispatcher.committed(self.dispatcher.takeStreamChanges())
        self.engine.unloadAll()
        self.dispatcher.forgetDevices()
        return result
    }

    private func load(_ tokens: [DeviceToken]) throws {
        self.engine.setBaseCounters(self.total, byTopic: self.counters)
        let rows = Set(tokens).compactMap { self.rows[$0] }.sorted { $0.device.token.isBefore($1.device.token) }
        for row in rows { _ = try self.engine.take(row.device) }
        self.engine.beginSharedStep(now: self.now, deviceCount: self.rows.count)
    }

    private func advance() {
        for _ in 0..<100 where self.dispatcher.advance(to: self.now, devicesMax: 1000) { return }
        self.check(false, "a step must end")
    }

    private func write(_ changes: [SharedDeviceChange], _ counts: [(topic: TopicIndex, added: ActivityCounters)]) {
        for (change, next) in zip(changes, changes.dropFirst()) {
            self.check(change.device.token.isBefore(next.device.token), "changes come in the order of tokens")
        }
        for change in changes.map(self.spoil) {
            let token = change.device.token
            self.check(change.isNew == (self.rows[token] == nil), "a device is new once")
            var row = self.rows[token] ?? Row(device: change.device, topic: change.topic)
            row.device = change.device
            row.topic = change.topic
            if case .at(let due) = change.due {
                self.check(row.due != due, "a reported due time differs from the previous one")
                row.due = due
            }
            if let ready = change.ready { row.ready = ready }
            self.rows[token] = row
            for (wake, _) in change.launched {
                self.check(self.wakes[wake] == nil, "a wake is launched once")
                self.wakes[wake] = (token, nil)
            }
            for wake in change.ended {
                self.check(self.wakes[wake].map { $0.token == token && $0.endedAt == nil } ?? false, "a wake ends once")
                self.wakes[wake] = (token, self.now)
            }
        }
        for (topic, added) in counts {
            self.counters[topic, default: ActivityCounters()] += added
            self.total += added
        }
    }
}

import Engine
import Policy
import WakeGateTestKit
import Wire

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

import Engine
import Policy
import WakeGateTestKit
import Wire

/// A production dispatcher on a production engine that shares its store: a dictionary of rows, read and written in
/// transactions of which some fail and are done again.
final class SharedRig {
    struct Row {
        var device: SharedDevice
        var topic: TopicIndex
        var due: Instant?
        var ready: [SharedDeviceChange.ReadyLane] = []
    }

    let engine: EmbeddedEngine
    let dispatcher: Dispatcher
    private let output = RecordingOutput()
    private(set) var rows: [DeviceToken: Row] = [:]
    /// The devices of wakes, and when each ended.
    private(set) var wakes: [WakeID: (token: DeviceToken, endedAt: Instant?)] = [:]
    private(set) var books: [TopicIndex: Books] = [:]
    private(set) var total = Books()
    private(set) var events: [HistoryEvent] = []
    private var told: [RecordingOutput.Event] = []
    var now: Instant
    /// Whether the next attempt of a transaction fails.
    var failsNext: () -> Bool = { false }
    private(set) var failureCount = 0
    /// Makes of a change what is written: for faults that are to be found.
    var spoil: (SharedDeviceChange) -> SharedDeviceChange = { $0 }
    /// What was wrong with what the engine gave.
    private(set) var faults: [String] = []

    init(_ configuration: EngineConfiguration, start: Instant, topics: [String], seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        self.now = start
        self.engine = EmbeddedEngine(configuration: configuration, now: start, historyKey: EngineRig.historyKey) {
            (generator.next(), generator.next())
        }
        self.dispatcher = Dispatcher(engine: self.engine, output: self.output)
        self.engine.share()
        try self.engine.appendTopics(topics)
        self.dispatcher.share { _ in false }
    }

    private func check(_ isSo: Bool, _ rule: String) {
        if !isSo { self.faults.append("against the rule that \(rule)") }
    }

    /// What workers were told since the last call.
    func takeTold() -> [RecordingOutput.Event] {
        self.told += self.output.take()
        defer { self.told = [] }
        return self.told
    }

    func takeEvents() -> [HistoryEvent] {
        defer { self.events = [] }
        return self.events
    }

    /// The devices that have something due by now, the first first.
    var due: [DeviceToken] {
        let due = self.rows.values.filter { $0.due.map { $0 <= self.now } ?? false }
        return due.sorted { ($0.due ?? .distantPast) < ($1.due ?? .distantPast) }.map(\.device.token)
    }

    /// The devices of which a lane waits for a slot, the longest waiting first.
    var ready: [DeviceToken] {
        func since(_ row: Row) -> Instant { row.ready.map(\.since).min() ?? .distantFuture }
        return self.rows.values.filter { !$0.ready.isEmpty }.sorted { since($0) < since($1) }.map(\.device.token)
    }

    /// The device of a wake in flight, or of one that ended in the last ten minutes.
    func device(of wake: WakeID) -> DeviceToken? {
        guard let found = self.wakes[wake] else { return nil }
        if let endedAt = found.endedAt, endedAt + 600_000 <= self.now { return nil }
        return found.token
    }
}

// MARK: - Transactions

extension SharedRig {
    /// Does `body` to these devices, in a transaction that may fail and be done again.
    func transact<Result>(_ tokens: [DeviceToken], _ body: () throws -> Result) throws -> Result {
        while true {
            // What was told outside of transactions is told.
            self.told += self.output.take()
            try self.load(tokens)
            self.advance()
            let result = try body()
            let changes = self.engine.takeSharedChanges()
            let counts = self.engine.takeSharedCounts()
            var events: [HistoryEvent] = []
            self.engine.takeEvents(into: &events)
            let streams = self.dispatcher.takeStreamChanges()
            self.engine.evict()
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

    /// Looks at these devices.
    func read<Result>(_ tokens: [DeviceToken], _ body: () -> Result) throws -> Result {
        try self.load(tokens)
        let result = body()
        var events: [HistoryEvent] = []
        self.engine.takeEvents(into: &events)
        self.check(events.isEmpty, "a look is no event")
        self.dispatcher.committed(self.dispatcher.takeStreamChanges())
        self.engine.evict()
        self.dispatcher.forgetDevices()
        return result
    }

    private func load(_ tokens: [DeviceToken]) throws {
        self.engine.show(self.total, byTopic: self.books)
        let rows = Set(tokens).compactMap { self.rows[$0] }.sorted { $0.device.token.isBefore($1.device.token) }
        for row in rows { _ = try self.engine.take(row.device) }
        self.engine.beginSharedStep(now: self.now, deviceCount: self.rows.count)
    }

    private func advance() {
        for _ in 0..<100 where self.dispatcher.advance(to: self.now, devicesMax: 1000) { return }
        self.check(false, "a step comes to its end")
    }

    private func write(_ changes: [SharedDeviceChange], _ counts: [(topic: TopicIndex, added: Books)]) {
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
                self.check(row.due != due, "a moment that is told is another one")
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
            self.books[topic, default: Books()] += added
            self.total += added
        }
    }
}

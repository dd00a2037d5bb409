package import Policy
package import Wire

/// The position of a topic in the topic table. It never changes while the engine runs.
package struct TopicIndex: Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }
}

/// A topic with its policy and its counters.
struct Topic {
    var parameters: Parameters
    var counters = ActivityCounters()
    /// The number of the topic's devices, removed ones included.
    var deviceCount = 0
    /// True if the topic is paused: nothing of it launches.
    var isPaused = false
    /// The time of the topic's last pause; `distantPast` if it was paused before this engine started, or never.
    var pausedAt = Instant.distantPast
    /// The time of the last resumption in this engine's lifetime. Waits for a slot before this time do not count.
    var resumedAt = Instant.distantPast
    /// True if the topic is in the current step's list of changes.
    var isChanged = false
}

/// All topics: their names, policies and counters, and the list of changed topics.
///
/// A count for one topic is also added to the totals.
package struct TopicTable: ~Copyable {
    private var topics: [Topic] = []
    private var names: TopicNames
    /// Names by topic number.
    private var texts: [String] = []
    /// Topics that have changed, each once.
    private var changed: [TopicIndex] = []
    /// The counters of all topics together.
    package private(set) var totals = ActivityCounters()
    /// Restored records by topic number, until all are read.
    private var restored: [UInt32: Topic.Stored] = [:]
    /// The paused topics.
    package private(set) var paused: Set<TopicIndex> = []

    /// The secret key of the hash of names.
    var key: HashKey { self.names.key }

    /// Creates an empty table.
    ///
    /// - `key`: the key of the hash of names.
    package init(key: HashKey) {
        self.names = TopicNames(key: key)
    }

    package var count: Int { self.topics.count }

    /// Every topic, in order of creation.
    package var indices: [TopicIndex] { self.topics.indices.map { TopicIndex(rawValue: UInt32($0)) } }

    package func find(_ name: ByteView) -> TopicIndex? { self.names.find(name) }

    package func isName(_ name: ByteView, of topic: TopicIndex) -> Bool { self.names.isName(name, of: topic) }

    package func name(_ topic: TopicIndex) -> String { self.texts[Int(topic.rawValue)] }

    package func parameters(_ topic: TopicIndex) -> Parameters { self.topics[Int(topic.rawValue)].parameters }

    package func counters(_ topic: TopicIndex) -> ActivityCounters { self.topics[Int(topic.rawValue)].counters }

    /// Returns true if the topic is paused.
    package func isPaused(_ topic: TopicIndex) -> Bool {
        !self.paused.isEmpty && self.topics[Int(topic.rawValue)].isPaused
    }

    /// Returns the time of the topic's last resumption; `distantPast` if there was none.
    package func resumedAt(_ topic: TopicIndex) -> Instant { self.topics[Int(topic.rawValue)].resumedAt }

    /// Returns the part of the topic's last pause that is between `start` and `end`, in milliseconds.
    func pausedMilliseconds(_ topic: TopicIndex, since start: Instant, until end: Instant) -> Int64 {
        let topic = self.topics[Int(topic.rawValue)]
        let (pausedAt, resumedAt) = (max(start, topic.pausedAt), topic.isPaused ? end : min(end, topic.resumedAt))
        return resumedAt > pausedAt ? resumedAt.milliseconds - pausedAt.milliseconds : 0
    }

    /// Pauses or resumes a topic.
    ///
    /// - Returns: true if that changed the topic.
    package mutating func setPaused(_ topic: TopicIndex, _ isPaused: Bool, at now: Instant) -> Bool {
        let place = Int(topic.rawValue)
        guard self.topics[place].isPaused != isPaused else { return false }
        self.topics[place].isPaused = isPaused
        if isPaused {
            self.paused.insert(topic)
            self.topics[place].pausedAt = now
        } else {
            self.paused.remove(topic)
            self.topics[place].resumedAt = now
        }
        self.noteChange(topic)
        return true
    }

    /// Returns the number of the topic's devices, removed ones included.
    package func deviceCount(_ topic: TopicIndex) -> Int { self.topics[Int(topic.rawValue)].deviceCount }

    /// Adds a topic with a new name. This change must be stored.
    package mutating func insert(_ name: ByteView, _ configuration: EngineConfiguration) -> TopicIndex {
        let text = name.string
        self.texts.append(text)
        self.topics.append(Topic(parameters: configuration.parameters(topic: text)))
        let topic = self.names.insert(name)
        // Stored immediately, because topics are numbered without gaps.
        self.noteChange(topic)
        return topic
    }

    /// Applies a count to the topic and to the totals.
    package mutating func count(_ topic: TopicIndex, _ change: (inout ActivityCounters) -> Void) {
        change(&self.topics[Int(topic.rawValue)].counters)
        change(&self.totals)
        self.noteChange(topic)
    }

    /// Changes the number of the topic's devices.
    package mutating func countDevices(_ topic: TopicIndex, _ change: Int) {
        self.topics[Int(topic.rawValue)].deviceCount += change
    }

    /// Replaces the counters of a topic. This change need not be stored.
    mutating func set(_ topic: TopicIndex, to counters: ActivityCounters) {
        self.topics[Int(topic.rawValue)].counters = counters
        self.topics[Int(topic.rawValue)].deviceCount = Int(counters.gauges.devices)
    }

    /// Replaces the totals.
    mutating func set(to totals: ActivityCounters) { self.totals = totals }

    /// Applies the policies of another configuration.
    ///
    /// - Returns: true if a topic's policy has changed.
    package mutating func reconfigure(_ configuration: EngineConfiguration) -> Bool {
        var isChanged = false
        for place in self.topics.indices {
            let parameters = configuration.parameters(topic: self.texts[place])
            guard parameters != self.topics[place].parameters else { continue }
            self.topics[place].parameters = parameters
            isChanged = true
        }
        return isChanged
    }

    private mutating func noteChange(_ topic: TopicIndex) {
        let place = Int(topic.rawValue)
        guard !self.topics[place].isChanged else { return }
        self.topics[place].isChanged = true
        self.changed.append(topic)
    }
}

// MARK: - Storing

extension TopicTable {
    /// True if a topic has changed since the last call of `takeChanges`.
    package var hasChanges: Bool { !self.changed.isEmpty }

    /// Returns the topics that changed since the last call, each once.
    package mutating func takeChanges() -> [TopicIndex] {
        for topic in self.changed { self.topics[Int(topic.rawValue)].isChanged = false }
        defer { self.changed.removeAll(keepingCapacity: true) }
        return self.changed
    }

    /// Appends the topics that changed since the last call as records of their current state.
    package mutating func takeChanges(into batch: inout RecordBatch) {
        for topic in self.changed {
            let place = Int(topic.rawValue)
            self.topics[place].isChanged = false
            batch.append(RecordKey(.topic, topic.rawValue)) { self.topics[place].store(self.texts[place], to: &$0) }
        }
        self.changed.removeAll(keepingCapacity: true)
    }

    /// Restores the record of the topic with this number.
    ///
    /// - Returns: false if the record is malformed.
    package mutating func restore(_ number: UInt32, _ content: ByteView) -> Bool {
        guard let stored = Topic.read(stored: content) else { return false }
        self.restored[number] = stored
        return true
    }

    /// The names of the topics in the restored records, by number; empty after `finishRestoring`.
    package var restoredNames: [String] {
        self.restored.sorted { $0.key < $1.key }.map { $0.value.name.withByteView { $0.string } }
    }

    /// Creates the topics of all restored records. Counts before `beginSteps` need not be stored.
    ///
    /// - Throws: `StoreError` if a record is missing or duplicated.
    package mutating func finishRestoring(_ configuration: EngineConfiguration) throws(StoreError) {
        for number in 0..<UInt32(self.restored.count) {
            guard let stored = self.restored[number] else {
                throw .unreadable("topic \(number), which is missing")
            }
            guard stored.name.withByteView({ self.names.find($0) }) == nil else {
                throw .unreadable("topic \(number), which is there twice")
            }
            let topic = stored.name.withByteView { self.insert($0, configuration) }
            self.topics[Int(topic.rawValue)].counters = stored.counters
            if stored.isPaused { _ = self.setPaused(topic, true, at: .distantPast) }
        }
        self.restored = [:]
    }

    /// Ends restoring: computes the totals and discards the changes, since the store has all of them.
    package mutating func beginSteps() {
        self.totals = self.topics.reduce(into: ActivityCounters()) { $0 += $1.counters }
        _ = self.takeChanges()
    }
}

/// An index of topics by the bytes of their names, which avoids creating strings.
package struct TopicNames: ~Copyable {
    private var cells: [UInt32] = Array(repeating: 0, count: 64)
    /// The concatenated names, and the end of each.
    private var text = ByteBuffer()
    private var ends: [Int] = []
    /// The hash key. It prevents clients from choosing names that collide.
    let key: HashKey

    /// Creates an empty index.
    ///
    /// - Parameter key: the key of the hash of names.
    package init(key: HashKey) {
        self.key = key
    }

    /// Returns the number of the topic with this name; nil if there is none.
    package func find(_ name: ByteView) -> TopicIndex? {
        var place = self.place(name)
        while self.cells[place] != 0 {
            let topic = self.cells[place] - 1
            if self.isName(name, of: TopicIndex(rawValue: topic)) { return TopicIndex(rawValue: topic) }
            place = (place + 1) & (self.cells.count - 1)
        }
        return nil
    }

    func isName(_ name: ByteView, of topic: TopicIndex) -> Bool {
        self.name(Int(topic.rawValue)) == name
    }

    /// Adds a new name. Topics are numbered in the order in which they are added.
    package mutating func insert(_ name: ByteView) -> TopicIndex {
        self.text.append(name)
        self.ends.append(self.text.count)
        if self.ends.count * 2 > self.cells.count {
            self.cells = Array(repeating: 0, count: self.cells.count * 2)
            for number in self.ends.indices.dropLast() { self.link(number) }
        }
        self.link(self.ends.count - 1)
        return TopicIndex(rawValue: UInt32(self.ends.count - 1))
    }

    private func name(_ number: Int) -> ByteView {
        self.text.view[(number == 0 ? 0 : self.ends[number - 1])..<self.ends[number]]
    }

    private mutating func link(_ number: Int) {
        var place = self.place(self.name(number))
        while self.cells[place] != 0 { place = (place + 1) & (self.cells.count - 1) }
        self.cells[place] = UInt32(number + 1)
    }

    private func place(_ name: ByteView) -> Int {
        Int(truncatingIfNeeded: self.key.hash(name)) & (self.cells.count - 1)
    }
}

/// The stored form of a topic. Sizes are in bytes. A list of counts is its length (1), then a code (1) and a count (8)
/// for each entry. The fields:
///
/// - the length of the name (2), and the name;
/// - `accepted`, `noWake`, `completed`, `coalesced` and `launched` (8 each);
/// - the lists of discards and of results;
/// - for each kind of task with launches: its code (1), its launches (8), and the list of its results;
/// - if there ever was a request: `requestsCode` (1), `replaced` and `cancelled` (8 each), and the lists of submitted,
///   refused and discarded requests;
/// - if a transfer ever finished: `sessionsCode` (1), `finished`, `refused` and `completed` (8 each), and the list of
///   discarded transfers;
/// - while the topic is paused: `pausedCode` (1).
///
/// Gauges (pending, in flight, registered, held) are recomputed from the devices. A version rejects a record with an
/// unknown code. Parts of newer versions, such as the count of cancelled pushes, are therefore written only if they
/// have content.
extension Topic {
    /// Codes above those of task kinds.
    private static let requestsCode: UInt8 = 32
    private static let sessionsCode: UInt8 = 33
    private static let pausedCode: UInt8 = 34

    /// Appends the stored form of the topic, with its name.
    func store(_ name: String, to buffer: inout ByteBuffer) {
        buffer.appendLittleEndian(UInt16(name.utf8.count))
        buffer.append(name)
        for count in [
            self.counters.accepted, self.counters.noWake, self.counters.completed, self.counters.coalesced,
            self.counters.launched,
        ] {
            buffer.appendLittleEndian(count)
        }
        Self.store(self.counters.discarded, DiscardReason.ofPushes, leavingOut: [.cancelled], to: &buffer)
        Self.store(self.counters.results, to: &buffer)
        for kind in TaskKind.allCases where self.counters.tasks.launched[kind] > 0 {
            buffer.append(kind.storedCode)
            buffer.appendLittleEndian(self.counters.tasks.launched[kind])
            Self.store(self.counters.tasks[kind], to: &buffer)
        }
        Self.store(self.counters.requests, to: &buffer)
        Self.store(self.counters.sessions, to: &buffer)
        if self.isPaused { buffer.append(Self.pausedCode) }
    }

    private static func store(_ requests: TaskCounters, to buffer: inout ByteBuffer) {
        guard requests.submitted.sum + requests.refused.sum > 0 else { return }
        buffer.append(self.requestsCode)
        buffer.appendLittleEndian(requests.replaced)
        buffer.appendLittleEndian(requests.cancelled)
        self.store(requests.submitted, to: &buffer)
        self.store(requests.refused, to: &buffer)
        self.store(requests.discarded, DiscardReason.ofTasks, to: &buffer)
    }

    private static func store(_ sessions: SessionCounters, to buffer: inout ByteBuffer) {
        guard sessions.finished + sessions.refused > 0 else { return }
        buffer.append(self.sessionsCode)
        buffer.appendLittleEndian(sessions.finished)
        buffer.appendLittleEndian(sessions.refused)
        buffer.appendLittleEndian(sessions.completed)
        self.store(sessions.discarded, DiscardReason.ofTasks, to: &buffer)
    }

    /// A decoded record of a topic.
    struct Stored {
        let name: [UInt8]
        var counters = ActivityCounters()
        var isPaused = false
    }

    /// Decodes the output of `store`; nil if it is malformed or has an impossible name or count.
    static func read(stored bytes: ByteView) -> Stored? {
        var reader = RecordReader(bytes)
        var stored = Stored(name: reader.view(Int(reader.integer(UInt16.self))).array)
        var counters = ActivityCounters()
        counters.accepted = reader.count()
        counters.noWake = reader.count()
        counters.completed = reader.count()
        counters.coalesced = reader.count()
        counters.launched = reader.count()
        guard Self.read(&counters.discarded, &reader, DiscardReason.ofPushes), Self.read(&counters.results, &reader),
            Self.readParts(&counters, &stored.isPaused, &reader), reader.isWhole,
            String(validating: stored.name, as: UTF8.self) != nil
        else { return nil }
        stored.counters = counters
        return stored
    }

    private static func readParts(
        _ counters: inout ActivityCounters,
        _ isPaused: inout Bool,
        _ reader: inout RecordReader
    ) -> Bool {
        while reader.hasMore {
            let code: UInt8 = reader.integer()
            let isRead =
                switch code {
                case self.requestsCode: self.read(&counters.requests, &reader)
                case self.sessionsCode: self.read(&counters.sessions, &reader)
                case self.pausedCode: self.read(&isPaused)
                default: TaskKind(storedCode: code).map { self.read(&counters.tasks, $0, &reader) } ?? false
                }
            guard isRead else { return false }
        }
        return true
    }

    /// - Returns: false if the part occurs twice.
    private static func read(_ isPaused: inout Bool) -> Bool {
        defer { isPaused = true }
        return !isPaused
    }

    private static func read(_ tasks: inout TaskWakeCounters, _ kind: TaskKind, _ reader: inout RecordReader) -> Bool {
        guard tasks.launched[kind] == 0 else { return false }
        tasks.launched[kind] = reader.count()
        return tasks.launched[kind] > 0 && self.read(&tasks[kind], &reader)
    }

    private static func read(_ requests: inout TaskCounters, _ reader: inout RecordReader) -> Bool {
        guard requests == TaskCounters() else { return false }
        requests.replaced = reader.count()
        requests.cancelled = reader.count()
        return self.read(&requests.submitted, &reader) && self.read(&requests.refused, &reader)
            && self.read(&requests.discarded, &reader, DiscardReason.ofTasks) && requests != TaskCounters()
    }

    private static func read(_ sessions: inout SessionCounters, _ reader: inout RecordReader) -> Bool {
        guard sessions == SessionCounters() else { return false }
        sessions.finished = reader.count()
        sessions.refused = reader.count()
        sessions.completed = reader.count()
        return self.read(&sessions.discarded, &reader, DiscardReason.ofTasks) && sessions != SessionCounters()
    }

    /// - `keys`: the cases in the order of their codes, which start at 1.
    /// - `later`: cases that are left out if their count is zero.
    private static func store<Case>(
        _ counts: PerCase<Case>,
        _ keys: [Case] = Case.allCases,
        leavingOut later: [Case] = [],
        to buffer: inout ByteBuffer
    ) {
        let kept = keys.filter { counts[$0] != 0 || !later.contains($0) }
        buffer.append(UInt8(kept.count))
        for key in kept {
            buffer.append(keys.code(key))
            buffer.appendLittleEndian(counts[key])
        }
    }

    private static func read<Case>(
        _ counts: inout PerCase<Case>,
        _ reader: inout RecordReader,
        _ keys: [Case] = Case.allCases
    ) -> Bool {
        for _ in 0..<reader.integer(UInt8.self) {
            guard let key = keys.element(code: reader.integer()) else { return false }
            counts[key] = reader.count()
        }
        return true
    }
}

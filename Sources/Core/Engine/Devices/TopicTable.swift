package import Policy
package import Wire

/// The place of a topic in the engine's table; it never changes while the engine lives.
package struct TopicIndex: Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }
}

/// One topic: its policy and its books.
struct Topic {
    var parameters: Parameters
    var books = Books()
    /// How many devices the topic has, removed ones included.
    var deviceCount = 0
    /// Nothing of the topic launches by itself.
    var isPaused = false
    /// When it was resumed last, since this engine has been there: nothing has waited for a slot for longer.
    var resumedAt = Instant.distantPast
    /// Whether the topic is among the changes of the step.
    var isChanged = false
}

/// All topics: their names, policies and books, and which of them have changed.
///
/// What is counted of one topic is counted of all together, too.
package struct TopicTable: ~Copyable {
    private var topics: [Topic] = []
    private var names: TopicNames
    /// By topic number.
    private var texts: [String] = []
    /// The topics that have changed, each once.
    private var changed: [TopicIndex] = []
    /// The books of all topics together.
    package private(set) var totals = Books()
    /// What records say, by topic number, until all are there.
    private var restored: [UInt32: Topic.Stored] = [:]
    /// The topics that are paused.
    package private(set) var paused: Set<TopicIndex> = []

    /// The secret key that names are hashed with.
    var key: HashKey { self.names.key }

    /// No topics.
    ///
    /// - `key`: what names are hashed with.
    package init(key: HashKey) {
        self.names = TopicNames(key: key)
    }

    package var count: Int { self.topics.count }

    /// Every topic, in the order of their making.
    package var indices: [TopicIndex] { self.topics.indices.map { TopicIndex(rawValue: UInt32($0)) } }

    package func find(_ name: ByteView) -> TopicIndex? { self.names.find(name) }

    package func isName(_ name: ByteView, of topic: TopicIndex) -> Bool { self.names.isName(name, of: topic) }

    package func name(_ topic: TopicIndex) -> String { self.texts[Int(topic.rawValue)] }

    package func parameters(_ topic: TopicIndex) -> Parameters { self.topics[Int(topic.rawValue)].parameters }

    package func books(_ topic: TopicIndex) -> Books { self.topics[Int(topic.rawValue)].books }

    /// Whether nothing of the topic launches by itself.
    package func isPaused(_ topic: TopicIndex) -> Bool {
        !self.paused.isEmpty && self.topics[Int(topic.rawValue)].isPaused
    }

    /// When the topic was resumed last; long ago when it never was.
    package func resumedAt(_ topic: TopicIndex) -> Instant { self.topics[Int(topic.rawValue)].resumedAt }

    /// Pauses or resumes a topic.
    ///
    /// - Returns: whether it was the other way before.
    package mutating func setPaused(_ topic: TopicIndex, _ isPaused: Bool, at now: Instant) -> Bool {
        let place = Int(topic.rawValue)
        guard self.topics[place].isPaused != isPaused else { return false }
        self.topics[place].isPaused = isPaused
        if isPaused {
            self.paused.insert(topic)
        } else {
            self.paused.remove(topic)
            self.topics[place].resumedAt = now
        }
        self.noteChange(topic)
        return true
    }

    /// How many devices the topic has, removed ones included.
    package func deviceCount(_ topic: TopicIndex) -> Int { self.topics[Int(topic.rawValue)].deviceCount }

    /// Adds a topic of a name that is not there yet, which a store has to keep.
    package mutating func insert(_ name: ByteView, _ configuration: EngineConfiguration) -> TopicIndex {
        let text = name.string
        self.texts.append(text)
        self.topics.append(Topic(parameters: configuration.parameters(topic: text)))
        let topic = self.names.insert(name)
        // Kept at once: topics are numbered without gaps.
        self.noteChange(topic)
        return topic
    }

    /// Counts something in the books of a topic, and in those of all.
    package mutating func count(_ topic: TopicIndex, _ change: (inout Books) -> Void) {
        change(&self.topics[Int(topic.rawValue)].books)
        change(&self.totals)
        self.noteChange(topic)
    }

    /// The topic has more devices, or fewer.
    package mutating func countDevices(_ topic: TopicIndex, _ change: Int) {
        self.topics[Int(topic.rawValue)].deviceCount += change
    }

    /// Goes on from books of a topic that somebody else has kept. No change that a store has to keep.
    mutating func set(_ topic: TopicIndex, to books: Books) {
        self.topics[Int(topic.rawValue)].books = books
        self.topics[Int(topic.rawValue)].deviceCount = Int(books.stock.devices)
    }

    /// Goes on from books of all topics together that somebody else has kept.
    mutating func set(to totals: Books) { self.totals = totals }

    /// Goes on with the policies of another configuration.
    ///
    /// - Returns: whether a topic's is another than before.
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

// MARK: - Keeping

extension TopicTable {
    /// Whether a topic changed since changes were last taken.
    package var hasChanges: Bool { !self.changed.isEmpty }

    /// Takes the topics that changed since changes were last taken, each once.
    package mutating func takeChanges() -> [TopicIndex] {
        for topic in self.changed { self.topics[Int(topic.rawValue)].isChanged = false }
        defer { self.changed.removeAll(keepingCapacity: true) }
        return self.changed
    }

    /// Takes the topics that changed since changes were last taken as records, each as it is now.
    package mutating func takeChanges(into batch: inout RecordBatch) {
        for topic in self.changed {
            let place = Int(topic.rawValue)
            self.topics[place].isChanged = false
            batch.append(RecordKey(.topic, topic.rawValue)) { self.topics[place].store(self.texts[place], to: &$0) }
        }
        self.changed.removeAll(keepingCapacity: true)
    }

    /// Takes the record of the topic with this number.
    ///
    /// - Returns: false when it is none that `takeChanges` wrote.
    package mutating func restore(_ number: UInt32, _ content: ByteView) -> Bool {
        guard let stored = Topic.read(stored: content) else { return false }
        self.restored[number] = stored
        return true
    }

    /// The names of the topics whose records were taken, by their numbers; empty once they are made.
    package var restoredNames: [String] {
        self.restored.sorted { $0.key < $1.key }.map { $0.value.name.withByteView { $0.string } }
    }

    /// Makes the topics of all records. What is counted from here on is no change, until `beginSteps`.
    ///
    /// - Throws: `StoreError` when a record is missing, or there twice.
    package mutating func finishRestoring(_ configuration: EngineConfiguration) throws(StoreError) {
        for number in 0..<UInt32(self.restored.count) {
            guard let stored = self.restored[number] else {
                throw .unreadable("topic \(number), which is missing")
            }
            guard stored.name.withByteView({ self.names.find($0) }) == nil else {
                throw .unreadable("topic \(number), which is there twice")
            }
            let topic = stored.name.withByteView { self.insert($0, configuration) }
            self.topics[Int(topic.rawValue)].books = stored.books
            if stored.isPaused { _ = self.setPaused(topic, true, at: .distantPast) }
        }
        self.restored = [:]
    }

    /// Everything that records say is counted: the topics are as a store has them.
    package mutating func beginSteps() {
        self.totals = self.topics.reduce(into: Books()) { $0 += $1.books }
        _ = self.takeChanges()
    }
}

/// Finds a topic by the bytes of its name, without making a string of them.
package struct TopicNames: ~Copyable {
    private var cells: [UInt32] = Array(repeating: 0, count: 64)
    /// The names, one behind the other, and where each ends.
    private var text = ByteBuffer()
    private var ends: [Int] = []
    /// Keeps strangers from choosing names that collide.
    let key: HashKey

    /// No names.
    ///
    /// - Parameter key: what names are hashed with.
    package init(key: HashKey) {
        self.key = key
    }

    /// The number of the topic with this name; nil when there is none.
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

    /// Adds a name that is not there yet; topics are numbered in the order of their adding.
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

/// How a topic is kept: name (2 bytes and its own), `accepted`, `noWake`, `completed`, `coalesced`, `launched`
/// (8 each), then discards and results as pairs of a code (1) and a count (8), each list behind its length (1). Then
/// parts behind their codes (1): of each kind of task that ever launched a wake its code, its launches (8) and its
/// results as such a list; behind `requestsCode`, when there ever was a request, `replaced` and `cancelled` (8 each)
/// and lists of what was submitted, refused and discarded; behind `sessionsCode`, when a transfer ever finished,
/// `finished`, `refused` and `completed` (8 each) and the list of what was discarded; `pausedCode` alone while the
/// topic is paused. What waits, is in flight, registered or held is counted from the devices.
///
/// Programs that do not know a code refuse the record. So what came later than they did is written where there is
/// something to say of it, and nowhere else: a state in which no push was ever cancelled has no count of those.
extension Topic {
    /// Beyond the codes of kinds.
    private static let requestsCode: UInt8 = 32
    private static let sessionsCode: UInt8 = 33
    private static let pausedCode: UInt8 = 34

    /// Appends the topic as it is kept, with its name.
    func store(_ name: String, to buffer: inout ByteBuffer) {
        buffer.appendLittleEndian(UInt16(name.utf8.count))
        buffer.append(name)
        for count in [
            self.books.accepted, self.books.noWake, self.books.completed, self.books.coalesced, self.books.launched,
        ] {
            buffer.appendLittleEndian(count)
        }
        Self.store(self.books.discarded, DiscardReason.ofPushes, leavingOut: [.cancelled], to: &buffer)
        Self.store(self.books.results, to: &buffer)
        for kind in TaskKind.allCases where self.books.tasks.launched[kind] > 0 {
            buffer.append(kind.storedCode)
            buffer.appendLittleEndian(self.books.tasks.launched[kind])
            Self.store(self.books.tasks[kind], to: &buffer)
        }
        Self.store(self.books.requests, to: &buffer)
        Self.store(self.books.sessions, to: &buffer)
        if self.isPaused { buffer.append(Self.pausedCode) }
    }

    private static func store(_ requests: TaskBooks, to buffer: inout ByteBuffer) {
        guard requests.submitted.sum + requests.refused.sum > 0 else { return }
        buffer.append(self.requestsCode)
        buffer.appendLittleEndian(requests.replaced)
        buffer.appendLittleEndian(requests.cancelled)
        self.store(requests.submitted, to: &buffer)
        self.store(requests.refused, to: &buffer)
        self.store(requests.discarded, DiscardReason.ofTasks, to: &buffer)
    }

    private static func store(_ sessions: SessionBooks, to buffer: inout ByteBuffer) {
        guard sessions.finished + sessions.refused > 0 else { return }
        buffer.append(self.sessionsCode)
        buffer.appendLittleEndian(sessions.finished)
        buffer.appendLittleEndian(sessions.refused)
        buffer.appendLittleEndian(sessions.completed)
        self.store(sessions.discarded, DiscardReason.ofTasks, to: &buffer)
    }

    /// What `store` wrote of a topic.
    struct Stored {
        let name: [UInt8]
        var books = Books()
        var isPaused = false
    }

    /// What `store` wrote; nil when it did not, or when no topic comes to such a name or count.
    static func read(stored bytes: ByteView) -> Stored? {
        var reader = RecordReader(bytes)
        var stored = Stored(name: reader.view(Int(reader.integer(UInt16.self))).array)
        var books = Books()
        books.accepted = reader.count()
        books.noWake = reader.count()
        books.completed = reader.count()
        books.coalesced = reader.count()
        books.launched = reader.count()
        guard Self.read(&books.discarded, &reader, DiscardReason.ofPushes), Self.read(&books.results, &reader),
            Self.readParts(&books, &stored.isPaused, &reader), reader.isWhole,
            String(validating: stored.name, as: UTF8.self) != nil
        else { return nil }
        stored.books = books
        return stored
    }

    private static func readParts(
        _ books: inout Books,
        _ isPaused: inout Bool,
        _ reader: inout RecordReader
    ) -> Bool {
        while reader.hasMore {
            let code: UInt8 = reader.integer()
            let isRead =
                switch code {
                case self.requestsCode: self.read(&books.requests, &reader)
                case self.sessionsCode: self.read(&books.sessions, &reader)
                case self.pausedCode: self.read(&isPaused)
                default: TaskKind(storedCode: code).map { self.read(&books.tasks, $0, &reader) } ?? false
                }
            guard isRead else { return false }
        }
        return true
    }

    /// - Returns: false when it was read before.
    private static func read(_ isPaused: inout Bool) -> Bool {
        defer { isPaused = true }
        return !isPaused
    }

    private static func read(_ tasks: inout TaskWakeBooks, _ kind: TaskKind, _ reader: inout RecordReader) -> Bool {
        guard tasks.launched[kind] == 0 else { return false }
        tasks.launched[kind] = reader.count()
        return tasks.launched[kind] > 0 && self.read(&tasks[kind], &reader)
    }

    private static func read(_ requests: inout TaskBooks, _ reader: inout RecordReader) -> Bool {
        guard requests == TaskBooks() else { return false }
        requests.replaced = reader.count()
        requests.cancelled = reader.count()
        return self.read(&requests.submitted, &reader) && self.read(&requests.refused, &reader)
            && self.read(&requests.discarded, &reader, DiscardReason.ofTasks) && requests != TaskBooks()
    }

    private static func read(_ sessions: inout SessionBooks, _ reader: inout RecordReader) -> Bool {
        guard sessions == SessionBooks() else { return false }
        sessions.finished = reader.count()
        sessions.refused = reader.count()
        sessions.completed = reader.count()
        return self.read(&sessions.discarded, &reader, DiscardReason.ofTasks) && sessions != SessionBooks()
    }

    /// - `keys`: the cases in the order of their codes, which count from 1.
    /// - `later`: cases that are left out while nothing is counted of them.
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

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

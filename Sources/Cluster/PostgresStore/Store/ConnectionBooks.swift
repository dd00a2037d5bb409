import Engine

/// What one connection has counted since its gateway was attached: the rows that it alone writes.
struct ConnectionBooks {
    /// All topics together, as a topic's number in the tables.
    static let everyTopic: Int32 = -1

    /// By topic's number in the tables.
    private(set) var counts: [Int32: Books] = [:]

    /// What the rows say after a transaction, in the order of topics' numbers in the tables.
    typealias Step = [(topic: Int32, books: Books)]

    /// What the rows are to say when the transaction commits that adds this.
    func adding(_ added: [(topic: TopicIndex, added: Books)]) -> Step {
        var changed: [Int32: Books] = [:]
        for (topic, books) in added {
            for place in [Int32(bitPattern: topic.rawValue), Self.everyTopic] {
                changed[place, default: self.counts[place] ?? Books()] += books
            }
        }
        return changed.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// The transaction has committed.
    mutating func take(_ step: Step) {
        for (topic, books) in step { self.counts[topic] = books }
    }
}

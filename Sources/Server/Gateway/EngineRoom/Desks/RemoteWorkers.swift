import Engine

/// The workers of the other gateways on a shared store, as these said last; one thread uses it.
package final class RemoteWorkers {
    private var total = Dispatcher.WorkerCounts()
    private var byTopic: [TopicIndex: Dispatcher.WorkerCounts] = [:]
    /// Topics of which a stream of another gateway hears of conditions.
    private var hearing: Set<TopicIndex> = []
    /// How long the device has waited that waits longest for a worker, or for an engine, in milliseconds.
    var oldestDueMilliseconds: Int64 = 0
    /// How the gateways are, this one included, as of the last second; nil before the first time.
    var status: ClusterStatus?
    /// The locks of other sessions of the database that devices wait for.
    var locks: [DeviceLocks] = []

    package init() {}

    /// Forgets the workers.
    func removeAll() {
        self.total = Dispatcher.WorkerCounts()
        self.byTopic = [:]
        self.hearing = []
    }

    /// Another gateway has these workers of a topic.
    func append(_ counts: Dispatcher.WorkerCounts, of topic: TopicIndex, hearsConditions: Bool) {
        Self.add(counts, to: &self.total)
        Self.add(counts, to: &self.byTopic[topic, default: Dispatcher.WorkerCounts()])
        if hearsConditions { self.hearing.insert(topic) }
    }

    /// Adds the workers of one topic, or of all, to `counts`.
    func add(_ topic: TopicIndex?, to counts: inout Dispatcher.WorkerCounts) {
        Self.add(topic.map { self.byTopic[$0] ?? Dispatcher.WorkerCounts() } ?? self.total, to: &counts)
    }

    /// Whether another gateway has streams of a topic.
    func hasStreams(_ topic: TopicIndex) -> Bool { (self.byTopic[topic]?.connected ?? 0) > 0 }

    /// Whether another gateway has a free slot of a topic.
    func hasFreeSlot(_ topic: TopicIndex) -> Bool {
        self.byTopic[topic].map { $0.busy < $0.slots } ?? false
    }

    /// Whether a stream of another gateway hears of conditions of a topic.
    func hearsConditions(_ topic: TopicIndex) -> Bool { self.hearing.contains(topic) }

    private static func add(_ more: Dispatcher.WorkerCounts, to counts: inout Dispatcher.WorkerCounts) {
        counts.connected += more.connected
        counts.slots += more.slots
        counts.busy += more.busy
    }
}

package import Engine
import Policy
import Wire

/// What a batch is performed on: devices in memory, the streams their wakes go to, and how the wall clock stands.
///
/// Who has put the devices there, and which of all there are, is not seen from here.
package struct Workspace {
    let engine: EmbeddedEngine
    let dispatcher: Dispatcher
    /// Wall clock minus policy time.
    let offset: WallOffset
    /// Why nothing is taken any more; nil as long as everything can be stored.
    let failure: StoreFailure?
    /// The workers of other gateways on the same store; nil where there is but one.
    let remote: RemoteWorkers?

    package init(
        engine: EmbeddedEngine,
        dispatcher: Dispatcher,
        offset: WallOffset,
        failure: StoreFailure? = nil,
        remote: RemoteWorkers? = nil
    ) {
        self.engine = engine
        self.dispatcher = dispatcher
        self.offset = offset
        self.failure = failure
        self.remote = remote
    }

    /// Workers of one topic, or of all; after a failure those there were.
    func workerCounts(_ topic: TopicIndex?) -> Dispatcher.WorkerCounts {
        var counts = self.failure?.workers[topic] ?? self.dispatcher.workerCounts(topic)
        self.remote?.add(topic, to: &counts)
        return counts
    }

    /// How many devices wait for a worker of this topic: none while it is paused.
    func readyCount(_ topic: TopicIndex) -> Int {
        guard !self.engine.isPaused(topic) else { return 0 }
        guard self.remote != nil else { return self.engine.readyCount(topic) }
        return Int(clamping: self.engine.booksShown(topic).held[.worker])
    }

    /// How long the device has waited that waits longest for a worker, or for an engine, in milliseconds.
    var oldestDueMilliseconds: Int64 { self.remote?.oldestDueMilliseconds ?? self.engine.oldestDueMilliseconds }

    /// The counters of all topics together.
    func statistics(_ records: GatewayRecords, _ limits: LimitCounts) -> Statistics {
        Statistics(
            books: self.engine.totalsShown,
            rejected: records.rejectionsShown.total,
            workers: self.workerCounts(nil),
            since: records.countingSince,
            limits: limits.met(self.dispatcher),
            acceptedLoss: records.acceptedLoss,
            cluster: self.remote.map { $0.status ?? ClusterStatus(nil, own: nil) }
        )
    }

    /// The counters of one topic.
    func statistics(_ topic: TopicIndex, _ records: GatewayRecords) -> Statistics {
        Statistics(
            books: self.engine.booksShown(topic),
            rejected: records.rejectionsShown[topic],
            workers: self.workerCounts(topic),
            since: records.countingSince
        )
    }
}

/// Nothing can be stored, any more or for now: why, and what is still known.
package final class StoreFailure {
    let error: StoreError
    let workers: WorkersAtFailure
    /// Why the last durable state could not be read either; nil when it was.
    let durableError: StoreError?
    /// Whether it passes, as a connection to a database comes again.
    let isPassing: Bool

    package init(error: StoreError, workers: WorkersAtFailure, durableError: StoreError?, isPassing: Bool = false) {
        self.error = error
        self.workers = workers
        self.durableError = durableError
        self.isPassing = isPassing
    }

    /// What somebody is answered whose request this is the cause for not doing.
    func refusal(_ cause: StoreError) -> APIError {
        self.isPassing ? .storeUnavailable(cause) : .storeFailed(cause)
    }
}

/// The workers there were when a commit failed; the dispatcher that knew them is gone.
package struct WorkersAtFailure {
    private let total: Dispatcher.WorkerCounts
    private let byTopic: [TopicIndex: Dispatcher.WorkerCounts]

    package init(_ dispatcher: Dispatcher, _ engine: EmbeddedEngine) {
        self.total = dispatcher.workerCounts(nil)
        let topics = engine.topicSnapshots.map { ($0.index, dispatcher.workerCounts($0.index)) }
        self.byTopic = Dictionary(uniqueKeysWithValues: topics)
    }

    /// - Parameter topic: nil for all together.
    subscript(topic: TopicIndex?) -> Dispatcher.WorkerCounts {
        guard let topic else { return self.total }
        return self.byTopic[topic] ?? Dispatcher.WorkerCounts()
    }
}

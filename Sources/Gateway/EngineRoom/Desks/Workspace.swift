package import DeviceEngine
package import WakeDispatch

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

    package init(engine: EmbeddedEngine, dispatcher: Dispatcher, offset: WallOffset, failure: StoreFailure? = nil) {
        self.engine = engine
        self.dispatcher = dispatcher
        self.offset = offset
        self.failure = failure
    }

    /// Workers of one topic, or of all; after a failure those there were.
    func workerCounts(_ topic: TopicIndex?) -> Dispatcher.WorkerCounts {
        self.failure?.workers[topic] ?? self.dispatcher.workerCounts(topic)
    }

    /// The counters of all topics together.
    func statistics(_ records: GatewayRecords, _ limits: LimitCounts) -> Statistics {
        Statistics(
            books: self.engine.totals,
            rejected: records.rejections.total,
            workers: self.workerCounts(nil),
            since: records.countingSince,
            limits: limits.met(self.dispatcher),
            acceptedLoss: records.acceptedLoss
        )
    }

    /// The counters of one topic.
    func statistics(_ topic: TopicIndex, _ records: GatewayRecords) -> Statistics {
        Statistics(
            books: self.engine.snapshot(topic).books,
            rejected: records.rejections[topic],
            workers: self.workerCounts(topic),
            since: records.countingSince
        )
    }
}

/// Nothing can be stored any more: why, and what is still known.
package final class StoreFailure {
    let error: StoreError
    let workers: WorkersAtFailure
    /// Why the last durable state could not be read either; nil when it was.
    let durableError: StoreError?

    package init(error: StoreError, workers: WorkersAtFailure, durableError: StoreError?) {
        self.error = error
        self.workers = workers
        self.durableError = durableError
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

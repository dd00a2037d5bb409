import DeviceEngine
import WakeDispatch

/// Nothing can be stored any more: why, and what is still known.
struct StoreFailure {
    let error: StoreError
    let workers: WorkersAtFailure
    /// Why the last durable state could not be read either; nil when it was.
    let durableError: StoreError?
}

/// The workers there were when a commit failed; the dispatcher that knew them is gone.
struct WorkersAtFailure {
    private let total: Dispatcher.WorkerCounts
    private let byTopic: [TopicIndex: Dispatcher.WorkerCounts]

    init(_ dispatcher: Dispatcher, _ engine: EmbeddedEngine) {
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

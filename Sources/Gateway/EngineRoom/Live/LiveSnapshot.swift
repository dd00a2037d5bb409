import DeviceEngine
import WakeDispatch

/// How the engine and its workers are at one moment, for those who watch.
struct LiveSnapshot: Sendable {
    /// The most topics that are listed: those with the most pushes.
    static let topicsMax = 50
    /// The most workers' streams that are listed: those that hold the most wakes.
    static let streamsMax = 100

    /// One topic.
    struct Topic: Sendable {
        let name: String
        let books: Books
        let workers: Dispatcher.WorkerCounts
        /// How its webhook is; nil when it has none.
        let webhook: WebhookStatus?
    }

    /// One worker's stream.
    struct Stream: Sendable {
        let topic: String
        let snapshot: StreamSnapshot
        /// How long it has held the oldest of its wakes, in milliseconds; nil when it holds none.
        let lag: Int64?
        /// How long a wake of its topic may take at first, in milliseconds.
        let executionWindow: Int64
    }

    /// In milliseconds since 1970.
    let at: Int64
    let statistics: Statistics
    let topics: [Topic]
    let topicCount: Int
    let streams: [Stream]
    let streamCount: Int
    let loopCount: Int
    let isDraining: Bool
    /// Why nothing can be stored any more; nil while everything can.
    let failure: String?
}

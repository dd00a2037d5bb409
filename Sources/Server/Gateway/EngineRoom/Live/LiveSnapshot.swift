import Engine
import Platform

/// How the engine and its workers are at one moment, for those who watch.
struct LiveSnapshot: Sendable {
    /// The most topics that are listed: those with the most pushes.
    static let topicsMax = 50
    /// The most workers' streams that are listed, of all topics or of each: those that hold the most wakes.
    static let streamsMax = 100

    /// One topic.
    struct Topic: Sendable {
        let name: String
        let books: Books
        let isPaused: Bool
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

/// How the gateway's process is, as those who watch are told each second.
package struct ProcessFacts: Sendable {
    /// Connections open on all listeners.
    let connections: Int
    let uptimeSeconds: Int64
    /// Memory that is resident.
    let memoryBytes: Int64
    /// Processor time spent, of all threads, in milliseconds.
    let cpuMilliseconds: Int64

    /// How it is now.
    ///
    /// - `startedAt`: when it started, on the monotonic clock in milliseconds.
    package init(connections: Int, startedAt: Int64) {
        self.connections = connections
        self.uptimeSeconds = (SystemClock.monotonic - startedAt) / 1000
        self.memoryBytes = ProcessFigures.residentBytes
        self.cpuMilliseconds = Int64(ProcessFigures.processorSeconds * 1000)
    }
}

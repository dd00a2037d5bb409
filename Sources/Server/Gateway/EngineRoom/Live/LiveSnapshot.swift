import Engine
import Platform

/// The state of the engine and its workers at one time, for watching operators.
struct LiveSnapshot: Sendable {
    /// The maximum number of topics listed. If there are more, the topics with the most accepted pushes are listed.
    static let topicsMax = 50
    /// The maximum number of workers' streams listed, in a snapshot or for a topic in the list of topics. If there are
    /// more, the streams that hold the most wakes are listed.
    static let streamsMax = 100
    /// The maximum number of workers' streams in the list of topics, shared equally by the topics. Each topic may list
    /// at least one.
    static let streamsOfTopicsMax = 1000

    /// One topic.
    struct Topic: Sendable {
        let name: String
        let counters: ActivityCounters
        let isPaused: Bool
        let workers: Dispatcher.WorkerCounts
        /// The status of the topic's webhook; nil if it has none.
        let webhook: WebhookStatus?
        /// The counts of the last hour and the last day.
        let recent: [(name: StaticString, counts: PeriodCounts)]
    }

    /// One worker's stream.
    struct Stream: Sendable {
        let topic: String
        let snapshot: StreamSnapshot
        /// The age of the oldest wake that the stream holds, in milliseconds; nil if it holds none.
        let lag: Int64?
        /// The initial execution time of the oldest wake that the stream holds, in milliseconds. If it holds none, the
        /// initial execution time of a push wake of its topic.
        let executionWindow: Int64
    }

    /// The time of the snapshot, in milliseconds since 1970.
    let at: Int64
    let statistics: Statistics
    let topics: [Topic]
    let topicCount: Int
    let streams: [Stream]
    let streamCount: Int
    let loopCount: Int
    let isDraining: Bool
    /// The reason why the gateway can store nothing more; nil while it can.
    let failure: String?
}

/// The figures of the gateway's process, which watching operators receive each second.
package struct ProcessFacts: Sendable {
    /// The number of open connections on all listeners.
    let connections: Int
    let uptimeSeconds: Int64
    /// The resident memory in bytes.
    let memoryBytes: Int64
    /// The processor time of all threads, in milliseconds.
    let cpuMilliseconds: Int64

    /// Reads the current figures.
    ///
    /// - `startedAt`: the start of the process, in milliseconds of the monotonic clock.
    package init(connections: Int, startedAt: Int64) {
        self.connections = connections
        self.uptimeSeconds = (SystemClock.monotonic - startedAt) / 1000
        self.memoryBytes = ProcessFigures.residentBytes
        self.cpuMilliseconds = Int64(ProcessFigures.processorSeconds * 1000)
    }
}

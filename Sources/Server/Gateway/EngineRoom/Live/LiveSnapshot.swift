import Engine
import Platform

/// The state of the engine and its workers at one time, for operators who watch.
struct LiveSnapshot: Sendable {
    /// The maximum number of topics listed: those with the most pushes.
    static let topicsMax = 50
    /// The maximum number of workers' streams listed, in total and per topic: those that hold the most wakes.
    static let streamsMax = 100
    /// The maximum number of workers' streams in a list of topics, beyond one per topic.
    static let streamsOfTopicsMax = 1000

    /// One topic.
    struct Topic: Sendable {
        let name: String
        let counters: ActivityCounters
        let isPaused: Bool
        let workers: Dispatcher.WorkerCounts
        /// The status of its webhook; nil if it has none.
        let webhook: WebhookStatus?
        /// The counts of the last hour and day.
        let recent: [(name: StaticString, counts: PeriodCounts)]
    }

    /// One worker's stream.
    struct Stream: Sendable {
        let topic: String
        let snapshot: StreamSnapshot
        /// The age of the oldest wake it holds, in milliseconds; nil if it holds none.
        let lag: Int64?
        /// The initial time limit of a wake of its topic, in milliseconds.
        let executionWindow: Int64
    }

    /// The time, in milliseconds since 1970.
    let at: Int64
    let statistics: Statistics
    let topics: [Topic]
    let topicCount: Int
    let streams: [Stream]
    let streamCount: Int
    let loopCount: Int
    let isDraining: Bool
    /// The reason for which nothing more can be stored; nil while storing is possible.
    let failure: String?
}

/// The figures of the gateway's process that operators who watch receive each second.
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

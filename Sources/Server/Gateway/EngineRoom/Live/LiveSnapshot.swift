import Engine
import Platform
import Policy
import Wire

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
        let snapshot: TopicSnapshot
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

// MARK: - JSON

/// The event of `GET /v1/live`.
extension LiveSnapshot {
    /// Returns the server-sent event: `event: sample`, the time as its id, and one line of JSON.
    ///
    /// - `edge`: the address of the edge; nil while the edge is off.
    func event(_ facts: ProcessFacts, edge: String?) -> [UInt8] {
        let json = JSONWriter.object { writer in
            writer.member("at", self.at)
            writer.key("stats")
            self.statistics.write(to: &writer)
            self.writeTasks(to: &writer)
            self.writeTopics(to: &writer)
            self.writeStreams(to: &writer)
            self.writeGateway(facts, edge, to: &writer)
        }
        var event = ByteBuffer()
        event.append("event: sample\nid: ")
        event.appendDecimal(self.at)
        event.append("\ndata: ")
        json.withByteView { event.append($0) }
        event.append("\n\n")
        return event.view.array
    }

    /// Writes the task counters by group and name. The sample fields `tasks.<group>.<name>` use the same words.
    private func writeTasks(to writer: inout JSONWriter) {
        writer.beginObject("tasks")
        for (group, counts) in self.statistics.counters.chartedTasks {
            writer.key(group)
            writer.counts(counts)
        }
        writer.endObject()
    }

    private func writeTopics(to writer: inout JSONWriter) {
        writer.beginObject("topics")
        writer.member("count", self.topicCount)
        writer.array("listed", self.topics) { writer, topic in
            let counters = topic.snapshot.countersShown
            writer.beginObject()
            writer.member("topic", topic.snapshot.name)
            writer.member("devices", counters.registered)
            writer.member("workers", topic.workers.connected)
            writer.member("slots", topic.workers.slots)
            writer.member("busy", topic.workers.busy)
            writer.member("accepted", counters.accepted)
            writer.member("coalesced", counters.coalesced)
            writer.member("completed", counters.completed)
            writer.member("launched", counters.launched)
            writer.member("pending", counters.pending)
            writer.member("inFlight", counters.inFlight)
            writer.member("held", counters.held.sum)
            writer.member("waiting", counters.held[.worker])
            writer.member("paused", topic.snapshot.isPaused)
            writer.beginObject("recent")
            for (name, counts) in topic.recent {
                writer.key(name)
                counts.writeSums(to: &writer)
            }
            writer.endObject()
            if let webhook = topic.webhook {
                writer.key("webhook")
                webhook.write(to: &writer)
            }
            writer.endObject()
        }
        writer.endObject()
    }

    private func writeStreams(to writer: inout JSONWriter) {
        writer.beginObject("streams")
        writer.member("count", self.streamCount)
        writer.array("listed", self.streams) { writer, stream in
            writer.beginObject()
            writer.member("stream", stream.snapshot.address.place(loopCount: self.loopCount))
            writer.member("name", stream.snapshot.label)
            writer.member("topic", stream.topic)
            writer.member("slots", stream.snapshot.slots)
            writer.member("busy", stream.snapshot.busy)
            writer.member("wakes", stream.snapshot.wakesGiven)
            writer.member("lag", stream.lag)
            writer.member("executionWindow", stream.executionWindow)
            writer.member("state", stream.snapshot.state.rawValue)
            writer.key("takes")
            stream.snapshot.request.writeTakes(to: &writer)
            writer.member("reason", ifPresent: stream.snapshot.trouble)
            writer.endObject()
        }
        writer.endObject()
    }

    private func writeGateway(_ facts: ProcessFacts, _ edge: String?, to writer: inout JSONWriter) {
        writer.beginObject("gateway")
        writer.member("version", wakeGateVersion)
        writer.member("commit", wakeGateCommit)
        writer.member("build", BuildKind.name)
        writer.member("edge", edge)
        let state = self.failure != nil ? "failed" : self.isDraining ? "draining" : "ready"
        writer.member("state", state)
        writer.member("problem", self.failure)
        writer.member("uptime", facts.uptimeSeconds)
        writer.member("connections", facts.connections)
        writer.member("memory", facts.memoryBytes)
        writer.member("cpu", facts.cpuMilliseconds)
        writer.endObject()
    }
}

extension StreamAddress {
    /// Returns four numbers that identify a stream for operators; they are not a credential. For a webhook, the first
    /// number is the loop count.
    func place(loopCount: Int) -> String {
        switch self {
        case .stream(let stream), .faulted(let stream): stream.place
        case .webhook(let number): "\(loopCount)-\(number)-0-0"
        case .webhookReport(let number): "\(loopCount)-\(number)-0-1"
        }
    }
}

extension LoopStream {
    /// Four numbers that identify a stream.
    var place: String { "\(self.loop)-\(self.connectionIndex)-\(self.connectionGeneration)-\(self.number)" }
}

import Engine
import Policy
import Wire

/// An event of `GET /v1/live`: the state of the gateway at one time.
struct LiveReport {
    let snapshot: LiveSnapshot
    let facts: ProcessFacts
    /// The address of the edge; nil while the edge is off.
    let edge: String?

    /// The event in wire format: `event: sample`, its time as its id, and one line of JSON.
    var event: [UInt8] {
        var writer = JSONWriter()
        self.write(to: &writer)
        var event = ByteBuffer()
        event.append("event: sample\nid: ")
        event.appendDecimal(self.snapshot.at)
        event.append("\ndata: ")
        event.append(writer.buffer.view)
        event.append("\n\n")
        return event.view.array
    }

    private func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("at")
        writer.integer(self.snapshot.at)
        writer.key("stats")
        self.snapshot.statistics.write(to: &writer)
        writer.key("tasks")
        self.writeTasks(to: &writer)
        writer.key("topics")
        self.writeTopics(to: &writer)
        writer.key("streams")
        self.writeStreams(to: &writer)
        writer.key("gateway")
        self.writeGateway(to: &writer)
        writer.endObject()
    }

    /// Uses the names of the sample fields that begin with `tasks.`.
    private func writeTasks(to writer: inout JSONWriter) {
        writer.beginObject()
        for (group, counts) in self.snapshot.statistics.counters.chartedTasks {
            writer.key(group)
            writer.counts(counts)
        }
        writer.endObject()
    }

    private func writeTopics(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("count")
        writer.integer(self.snapshot.topicCount)
        writer.key("listed")
        writer.beginArray()
        for topic in self.snapshot.topics {
            writer.beginObject()
            writer.key("topic")
            writer.string(topic.name)
            for (name, count) in Self.counts(of: topic) {
                writer.key(name)
                writer.integer(count)
            }
            writer.key("paused")
            writer.bool(topic.isPaused)
            writer.key("recent")
            writer.beginObject()
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
        writer.endArray()
        writer.endObject()
    }

    private static func counts(of topic: LiveSnapshot.Topic) -> [(StaticString, Int64)] {
        [
            ("devices", topic.counters.registered), ("workers", Int64(topic.workers.connected)),
            ("slots", Int64(topic.workers.slots)), ("busy", Int64(topic.workers.busy)),
            ("accepted", topic.counters.accepted), ("coalesced", topic.counters.coalesced),
            ("completed", topic.counters.completed), ("launched", topic.counters.launched),
            ("pending", topic.counters.pending), ("inFlight", topic.counters.inFlight),
            ("held", topic.counters.held.sum), ("waiting", topic.counters.held[.worker]),
        ]
    }

    private func writeStreams(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("count")
        writer.integer(self.snapshot.streamCount)
        writer.key("listed")
        writer.beginArray()
        for stream in self.snapshot.streams {
            writer.beginObject()
            writer.key("stream")
            writer.string(stream.snapshot.address.place(loopCount: self.snapshot.loopCount))
            writer.key("name")
            writer.string(stream.snapshot.label)
            writer.key("topic")
            writer.string(stream.topic)
            writer.key("slots")
            writer.integer(stream.snapshot.slots)
            writer.key("busy")
            writer.integer(stream.snapshot.busy)
            writer.key("wakes")
            writer.integer(stream.snapshot.wakesGiven)
            writer.key("lag")
            writer.optional(stream.lag) { writer, lag in writer.integer(lag) }
            writer.key("executionWindow")
            writer.integer(stream.executionWindow)
            writer.key("state")
            writer.string(stream.snapshot.state.rawValue)
            writer.key("takes")
            stream.snapshot.request.writeTakes(to: &writer)
            if let trouble = stream.snapshot.trouble {
                writer.key("reason")
                writer.string(trouble)
            }
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
    }

    private func writeGateway(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("version")
        writer.string(wakeGateVersion)
        writer.key("commit")
        writer.optional(wakeGateCommit) { writer, commit in writer.string(commit) }
        writer.key("build")
        writer.string(BuildKind.name)
        writer.key("edge")
        writer.optional(self.edge) { writer, address in writer.string(address) }
        writer.key("state")
        writer.string(self.snapshot.failure != nil ? "failed" : self.snapshot.isDraining ? "draining" : "ready")
        writer.key("problem")
        writer.optional(self.snapshot.failure) { writer, problem in writer.string(problem) }
        writer.key("uptime")
        writer.integer(self.facts.uptimeSeconds)
        writer.key("connections")
        writer.integer(self.facts.connections)
        writer.key("memory")
        writer.integer(self.facts.memoryBytes)
        writer.key("cpu")
        writer.integer(self.facts.cpuMilliseconds)
        writer.endObject()
    }
}

extension StreamAddress {
    /// Returns four numbers that identify a stream for readers; they prove nothing. Webhooks are numbered after the
    /// last loop.
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

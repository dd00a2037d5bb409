import Engine
import Policy
import Wire

/// An event of `GET /v1/live`: the state of the gateway at one time.
struct LiveReport {
    let snapshot: LiveSnapshot
    let facts: ProcessFacts
    /// The address of the edge; nil while the edge is off.
    let edge: String?

    /// The server-sent event: `event: sample`, the time as its id, and one line of JSON.
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
        writer.member("at", self.snapshot.at)
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

    /// Writes the task counters by group and name. The sample fields `tasks.<group>.<name>` use the same words.
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
        writer.member("count", self.snapshot.topicCount)
        writer.beginArray("listed")
        for topic in self.snapshot.topics {
            writer.beginObject()
            writer.member("topic", topic.name)
            for (name, count) in Self.counts(of: topic) {
                writer.key(name)
                writer.integer(count)
            }
            writer.member("paused", topic.isPaused)
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
        writer.member("count", self.snapshot.streamCount)
        writer.beginArray("listed")
        for stream in self.snapshot.streams {
            writer.beginObject()
            writer.member("stream", stream.snapshot.address.place(loopCount: self.snapshot.loopCount))
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
        writer.endArray()
        writer.endObject()
    }

    private func writeGateway(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("version", wakeGateVersion)
        writer.member("commit", wakeGateCommit)
        writer.member("build", BuildKind.name)
        writer.member("edge", self.edge)
        let state = self.snapshot.failure != nil ? "failed" : self.snapshot.isDraining ? "draining" : "ready"
        writer.member("state", state)
        writer.member("problem", self.snapshot.failure)
        writer.member("uptime", self.facts.uptimeSeconds)
        writer.member("connections", self.facts.connections)
        writer.member("memory", self.facts.memoryBytes)
        writer.member("cpu", self.facts.cpuMilliseconds)
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

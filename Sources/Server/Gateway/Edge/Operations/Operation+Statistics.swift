import Engine
import Policy
import Wire

extension Operation {
    /// Numbers, of everything and topic by topic.
    package static let statistics = [totals, topicStatistics, topics, metrics]

    package static let totals = Operation(
        "statistics",
        .get,
        "/v1/stats",
        on: .admin,
        by: .operator,
        reaching: .everyTopic,
        answers: [200, 400],
        afterFailedStore: .answeredFromDurableState
    ) { call throws(APIError) in
        .asked(.statistics(since: try call.since()))
    }

    package static let topicStatistics = Operation(
        "topicStatistics",
        .get,
        "/v1/stats/topics/{topic}",
        on: .admin,
        by: .operator,
        reaching: .topicInPath,
        answers: [200, 400, 404],
        afterFailedStore: .answeredFromDurableState
    ) { call throws(APIError) in
        .asked(.topicStatistics(topic: try call.topic(), since: try call.since()))
    }

    package static let topics = Operation(
        "topics",
        .get,
        "/v1/topics",
        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [200],
        afterFailedStore: .answeredFromDurableState
    ) { _ in
        .asked(.topics)
    }

    package static let metrics = Operation(
        "metrics",
        .get,
        "/metrics",
        on: .admin,
        by: .operator,
        reaching: .everyTopic,
        answers: [200],
        afterFailedStore: .answered
    ) { call in
        call.services.metrics.ask(reply: call.reply, for: call.caller, afterFailedStore: call.afterFailedStore)
        return .handedOn
    }
}

extension OperationCall {
    /// The only parameter of statistics: the start of a period, in milliseconds since 1970.
    fileprivate func since() throws(APIError) -> Int64? {
        var since: Int64?
        try QueryParameter.forEach(of: self.query) { parameter throws(APIError) in
            guard parameter.name == "since" else {
                throw parameter.unknown(among: ["since"], "statistics take since")
            }
            since = Int64(try parameter.integer(0...9_999_999_999_999))
        }
        return since
    }
}

// MARK: - At the engine

extension EngineWork {
    package static func statistics(since: Int64? = nil) -> EngineWork {
        EngineWork(.counts(.none)) { .outcome(.statistics($0.workspace.statistics($0.room, since: since))) }
    }

    package static func topicStatistics(topic name: [UInt8], since: Int64? = nil) -> EngineWork {
        EngineWork(.counts(.one(name))) { scope throws(APIError) in
            guard let topic = name.withByteView({ scope.engine.findTopic($0) }) else { throw .unknownTopic }
            return .outcome(.statistics(scope.workspace.statistics(topic, scope.room, since: since)))
        }
    }

    package static let topics = EngineWork(.counts(.every)) { scope in
        let (caller, room) = (scope.caller, scope.room)
        return .list(LongList { $0.writeTopics(for: caller, room.webhooks, to: &$1) })
    }

    package static func metrics(_ figures: GatewayFigures) -> EngineWork {
        EngineWork(.counts(.every)) { .outcome(.document(EngineMetrics($0).document(figures))) }
    }
}

extension Workspace {
    /// The bytes of a list of topics after which it omits streams, so that long patterns do not delay other requests.
    private static let topicsBytesMax = 4 << 20

    /// Appends the topics that a caller reaches.
    fileprivate func writeTopics(
        for caller: Caller,
        _ webhooks: [String: WebhookStatus],
        to writer: inout JSONWriter
    ) {
        let (countMax, totalMax) = (LiveSnapshot.streamsMax, LiveSnapshot.streamsOfTopicsMax)
        let streams = self.dispatcher.streamsByTopic(countMax: countMax, totalMax: totalMax)
        let durations = self.durations(nil).filter { $0.worker == nil && $0.kind == .push }
        let durationsByTopic = Dictionary(uniqueKeysWithValues: durations.map { ($0.topic, $0.counts) })
        writer.key("topics")
        writer.beginArray()
        for topic in self.engine.topicSnapshots where caller.reaches(topic.name) {
            writer.beginObject()
            writer.key("topic")
            writer.string(topic.name)
            writer.key("devices")
            writer.integer(topic.counters.registered)
            let workers = self.workerCounts(topic.index)
            writer.key("workers")
            writer.integer(workers.connected)
            workers.writeStalls(to: &writer)
            writer.key("pending")
            writer.integer(topic.counters.pending)
            writer.key("inFlight")
            writer.integer(topic.counters.inFlight)
            writer.key("paused")
            writer.bool(topic.isPaused)
            writer.key("durations")
            writer.beginObject()
            (durationsByTopic[topic.index] ?? DurationCounts()).writeMembers(to: &writer)
            writer.endObject()
            writer.key("streams")
            writer.beginArray()
            for stream in (streams[topic.index] ?? []).sorted(by: { $0.label < $1.label })
            where writer.buffer.count < Self.topicsBytesMax { stream.write(to: &writer) }
            writer.endArray()
            if let webhook = webhooks[topic.name] {
                writer.key("webhook")
                webhook.write(to: &writer)
            }
            writer.endObject()
        }
        writer.endArray()
    }
}

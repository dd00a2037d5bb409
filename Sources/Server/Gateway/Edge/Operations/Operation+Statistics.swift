import Engine
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
        answers: [200],
        afterFailedStore: .answeredFromDurableState
    ) { _ in
        .asked(.statistics)
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
        .asked(.topicStatistics(topic: try call.topic()))
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

// MARK: - At the engine

extension EngineWork {
    package static let statistics = EngineWork(.counts(.none)) { reach in
        .outcome(.statistics(reach.workspace.statistics(reach.room.records, reach.room.limits)))
    }

    package static func topicStatistics(topic name: [UInt8]) -> EngineWork {
        EngineWork(.counts(.one(name))) { reach throws(APIError) in
            guard let topic = name.withByteView({ reach.engine.findTopic($0) }) else { throw .unknownTopic }
            return .outcome(.statistics(reach.workspace.statistics(topic, reach.room.records)))
        }
    }

    package static let topics = EngineWork(.counts(.every)) { reach in
        let (caller, room) = (reach.caller, reach.room)
        return .list(LongList { $0.writeTopics(for: caller, room.webhooks, to: &$1) })
    }

    package static func metrics(_ figures: GatewayFigures) -> EngineWork {
        EngineWork(.counts(.every)) { .outcome(.document(EngineMetrics($0).document(figures))) }
    }
}

extension Workspace {
    /// Appends the topics that a caller reaches.
    fileprivate func writeTopics(
        for caller: Caller,
        _ webhooks: [String: WebhookStatus],
        to writer: inout JSONWriter
    ) {
        let streams = self.dispatcher.streamsByTopic(countMax: LiveSnapshot.streamsMax)
        writer.key("topics")
        writer.beginArray()
        for topic in self.engine.topicSnapshots where caller.reaches(topic.name) {
            writer.beginObject()
            writer.key("topic")
            writer.string(topic.name)
            writer.key("devices")
            writer.integer(topic.books.registered)
            let workers = self.workerCounts(topic.index)
            writer.key("workers")
            writer.integer(workers.connected)
            workers.writeStalls(to: &writer)
            writer.key("pending")
            writer.integer(topic.books.pending)
            writer.key("inFlight")
            writer.integer(topic.books.inFlight)
            writer.key("paused")
            writer.bool(topic.isPaused)
            writer.key("streams")
            writer.beginArray()
            for stream in (streams[topic.index] ?? []).sorted(by: { $0.label < $1.label }) { stream.write(to: &writer) }
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

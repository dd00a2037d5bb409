import Engine
import Policy
import Wire

extension Operation {
    /// The operations on counters and metrics, in total and per topic.
    package static let statistics: [Operation] = [
        ofEngine("statistics", .get, "/v1/stats", by: .operator, reaching: .everyTopic) { call throws(APIError) in
            .statistics(of: try call.period())
        },
        ofEngine("topicStatistics", .get, "/v1/stats/topics/{topic}", by: .operator, reaching: .topicInPath) {
            call throws(APIError) in
            .topicStatistics(topic: try call.topic(), of: try call.period())
        },
        ofEngine("topics", .get, "/v1/topics", by: .operator) { _ in
            .topics
        },
        ofOperators("metrics", .get, "/metrics", reaching: .everyTopic) { call in
            call.services.metrics.ask(reply: call.reply, for: call.caller, afterFailedStore: call.afterFailedStore)
            return .handedOn
        },
    ]
}

extension OperationCall {
    /// Returns the period from the query's `since` to its `until`, in milliseconds since 1970. Without `until`, the
    /// period has no end; without `since`, the result is nil.
    ///
    /// - Throws: `APIError` if `until` comes without `since` or is not later, or if a parameter is invalid.
    fileprivate func period() throws(APIError) -> Range<Int64>? {
        var (since, until): (Int64?, Int64?)
        try QueryParameter.forEach(of: self.query) { parameter throws(APIError) in
            switch parameter.name {
            case "since": since = try parameter.moment()
            case "until": until = try parameter.moment()
            default: throw parameter.unknown(among: ["since", "until"], "statistics take since and until")
            }
        }
        guard let since else {
            guard until == nil else { throw .badQuery("until needs since, the start of the period.") }
            return nil
        }
        return try QueryParameter.period(since: since, until: until)
    }
}

// MARK: - At the engine

extension EngineWork {
    /// - `period`: the period to count, in milliseconds since 1970; nil for the last hour and the last day.
    package static func statistics(of period: Range<Int64>? = nil) -> EngineWork {
        EngineWork(.counts(.none)) { scope throws(APIError) in
            try scope.workspace.check(period)
            return .outcome(.statistics(scope.workspace.statistics(nil, scope.room, of: period)))
        }
    }

    package static func topicStatistics(topic name: [UInt8], of period: Range<Int64>? = nil) -> EngineWork {
        EngineWork(.counts(.one(name))) { scope throws(APIError) in
            guard let topic = name.withByteView({ scope.engine.findTopic($0) }) else { throw .unknownTopic }
            try scope.workspace.check(period)
            return .outcome(.statistics(scope.workspace.statistics(topic, scope.room, of: period)))
        }
    }

    package static let topics = EngineWork(.counts(.every)) { scope in
        let (caller, room) = (scope.caller, scope.room)
        return .list(LongList { $0.writeTopics(for: caller, room.webhooks, to: &$1) })
    }

    package static func metrics(_ figures: GatewayFigures) -> EngineWork {
        EngineWork(.counts(.every)) { .outcome(.document(EngineMetrics($0, figures).document)) }
    }
}

extension Workspace {
    /// The time by which a caller's clock may be ahead, in milliseconds.
    private static let clockSlack: Int64 = 60_000

    /// Refuses a period that begins in the future.
    ///
    /// - Throws: `APIError` if the start is later than now by more than `clockSlack`.
    fileprivate func check(_ period: Range<Int64>?) throws(APIError) {
        let now = self.offset.wall(self.engine.now)
        guard let since = period?.lowerBound, since > now + Self.clockSlack else { return }
        throw .badQuery("since must be in the past, not \(since): now is \(now).")
    }

    /// The size of a list of topics, in bytes, beyond which its streams are omitted. Streams with many long patterns
    /// would otherwise delay other requests.
    private static let topicsBytesMax = 4 << 20

    /// Appends the topics that the caller may access, as the array `topics`.
    fileprivate func writeTopics(
        for caller: Caller,
        _ webhooks: [String: WebhookStatus],
        to writer: inout JSONWriter
    ) {
        let (countMax, totalMax) = (LiveSnapshot.streamsMax, LiveSnapshot.streamsOfTopicsMax)
        let streams = self.dispatcher.streamsByTopic(countMax: countMax, totalMax: totalMax)
        let durations = self.durations(nil, byWorker: false).filter { $0.kind == .push }
        let durationsByTopic = Dictionary(uniqueKeysWithValues: durations.map { ($0.topic, $0.counts) })
        writer.beginArray("topics")
        for topic in self.engine.topicSnapshots where caller.reaches(topic.name) {
            writer.beginObject()
            writer.member("topic", topic.name)
            writer.member("devices", topic.counters.registered)
            let workers = self.workerCounts(topic.index)
            writer.member("workers", workers.connected)
            workers.writeStalls(to: &writer)
            writer.member("pending", topic.counters.pending)
            writer.member("inFlight", topic.counters.inFlight)
            writer.member("paused", topic.isPaused)
            writer.beginObject("durations")
            (durationsByTopic[topic.index] ?? DurationCounts()).writeMembers(to: &writer)
            writer.endObject()
            writer.beginArray("streams")
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

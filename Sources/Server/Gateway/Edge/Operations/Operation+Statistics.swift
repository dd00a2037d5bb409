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

import Wire

extension Operation {
    /// What operators do to what waits, topic by topic and device by device.
    package static let waiting = [pauseTopic, resumeTopic, pendingPush, dropPending]

    package static let pauseTopic = switching("pauseTopic", "/v1/topics/{topic}/pause", isPaused: true)
    package static let resumeTopic = switching("resumeTopic", "/v1/topics/{topic}/resume", isPaused: false)

    private static func switching(_ name: String, _ path: PathPattern, isPaused: Bool) -> Operation {
        Operation(
            name,
            .post,
            path,
            on: .admin,
            by: .operator,
            reaching: .topicInPath,
            answers: [200, 400, 404, 409],
            afterFailedStore: .refused
        ) { call throws(APIError) in
            .asked(.pauseTopic(topic: try call.topic(), isPaused))
        }
    }

    package static let pendingPush = Operation(
        "pendingPush",
        .get,
        "/v1/devices/{token}/pending",
        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [200, 400, 404],
        afterFailedStore: .answeredFromDurableState
    ) { call throws(APIError) in
        .asked(.pendingPush(try call.device()))
    }

    package static let dropPending = Operation(
        "dropPending",
        .delete,
        "/v1/devices/{token}/pending",
        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [200, 400, 404, 409],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        .asked(.cancelPending(try call.device()))
    }
}

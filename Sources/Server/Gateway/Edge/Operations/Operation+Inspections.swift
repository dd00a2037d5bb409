import Engine
import Wire

extension Operation {
    /// What operators ask about devices and pushes.
    package static let inspections = [explainDevice, devicePushes, deviceEvents, listPushes, pushWay, whatIf]

    package static let explainDevice = Operation(
        "explainDevice",
        .get,
        "/v1/devices/{token}",
        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [200, 400, 404],
        afterFailedStore: .answeredFromDurableState
    ) { call throws(APIError) in
        .asked(.explain(try call.device()))
    }

    package static let devicePushes = Operation(
        "devicePushes",
        .get,
        "/v1/devices/{token}/pushes",
        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [200, 400, 404],
        afterFailedStore: .answeredFromDurableState
    ) { call throws(APIError) in
        .asked(.devicePushes(try call.device()))
    }

    package static let deviceEvents = Operation(
        "deviceEvents",
        .get,
        "/v1/devices/{token}/events",
        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [200, 400, 404],
        afterFailedStore: .answeredFromDurableState
    ) { call throws(APIError) in
        let selection = try EventQuery(call.query).selection
        return .asked(.deviceEvents(try call.device(), selection))
    }

    /// Of all topics: the history knows pushes without theirs.
    package static let listPushes = Operation(
        "listPushes",
        .get,
        "/v1/pushes",
        on: .admin,
        by: .operator,
        reaching: .everyTopic,
        answers: [200, 400],
        afterFailedStore: .answered
    ) { call throws(APIError) in
        .asked(.pushes(try PushQuestion(query: call.query)))
    }

    /// Of all topics: the history knows pushes without theirs.
    package static let pushWay = Operation(
        "pushWay",
        .get,
        "/v1/pushes/{apnsID}",
        on: .admin,
        by: .operator,
        reaching: .everyTopic,
        answers: [200, 400, 404],
        afterFailedStore: .answered
    ) { call throws(APIError) in
        let query = try PushQuery(call.query)
        guard let apnsID = APNsID(call.parameter) else { throw .unknownPush }
        return .asked(.push(apnsID, device: query.device))
    }

    package static let whatIf = Operation(
        "whatIf",
        .post,
        "/v1/devices/{token}/what-if",
        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [200, 400, 404, 500],
        afterFailedStore: .answeredFromDurableState
    ) { call throws(APIError) in
        let whatIf = try WhatIf(try RequestBody.object(call.body, reason: "BadPolicy"))
        return .asked(.whatIf(try call.device(), whatIf))
    }
}

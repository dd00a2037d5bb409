import Engine
import Wire

extension Operation {
    /// Background tasks and sessions, as those ask for them who stand for a device.
    package static let tasks = [
        submitTask, listTasks, cancelTasks, cancelTask, transfersFinished, resources, allTasks,
    ]

    package static let submitTask = Operation(
        "submitTask",
        .post,
        "/v1/devices/{token}/tasks",
        on: .all,
        by: .worker,
        reaching: .topicOfSubject,
        answers: [201, 400, 403, 404, 409, 410],
        rate: .submissions,
        afterFailedStore: .refused
    ) { call throws(APIError) in
        var task = try TaskRequest(try RequestBody.object(call.body, reason: "BadTaskRequest"))
        task.details.trace = call.trace.array
        return .asked(.submitTask(try call.device(), task))
    }

    package static let listTasks = Operation(
        "listTasks",
        .get,
        "/v1/devices/{token}/tasks",
        on: .all,
        by: .worker,
        reaching: .topicOfSubject,
        answers: [200, 400, 404, 410],
        afterFailedStore: .answeredFromDurableState
    ) { call throws(APIError) in
        .asked(.listTasks(try call.device()))
    }

    package static let cancelTasks = Operation(
        "cancelTasks",
        .delete,
        "/v1/devices/{token}/tasks",
        on: .all,
        by: .worker,
        reaching: .topicOfSubject,
        answers: [204, 400, 404, 410],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        // Whoever means one request is not to lose all of them.
        guard call.query.isEmpty else {
            let message =
                "Every request is cancelled, and no parameter is taken; .../tasks/<identifier> cancels one."
            throw APIError(400, "BadQuery", message)
        }
        return .asked(.cancelTask(try call.device(), identifier: nil))
    }

    package static let cancelTask = Operation(
        "cancelTask",
        .delete,
        "/v1/devices/{token}/tasks/{identifier}",
        on: .all,
        by: .worker,
        reaching: .topicOfSubject,
        answers: [204, 400, 404, 410],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        .asked(.cancelTask(try call.device(), identifier: try call.identifier()))
    }

    package static let transfersFinished = Operation(
        "transfersFinished",
        .post,
        "/v1/devices/{token}/sessions/{session}",
        on: .all,
        by: .worker,
        reaching: .topicOfSubject,
        answers: [202, 400, 404, 409, 410],
        rate: .submissions,
        afterFailedStore: .refused
    ) { call throws(APIError) in
        let object = try RequestBody.object(call.body, reason: "BadSession")
        let finished = try FinishedTransfers(object, session: try call.session())
        return .asked(.transfersFinished(try call.device(), finished))
    }

    package static let resources = Operation(
        "resources",
        .get,
        "/v1/topics/{topic}/resources",
        on: .all,
        by: .worker,
        reaching: .topicInPath,
        answers: [200, 400],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        .asked(.resources(topic: try call.topic()))
    }

    package static let allTasks = Operation(
        "allTasks",
        .get,
        "/v1/tasks",
        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [200, 400],
        afterFailedStore: .answeredFromDurableState
    ) { call throws(APIError) in
        .asked(.tasks(try TaskQuestion(query: call.query)))
    }
}

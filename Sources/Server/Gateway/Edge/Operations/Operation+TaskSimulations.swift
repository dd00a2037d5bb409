import Wire

extension Operation {
    /// What operators have background tasks go through: the commands of the debugger of iOS.
    package static let taskSimulations = [simulateTaskLaunch, simulateTaskExpiration]

    package static let simulateTaskLaunch = Operation(
        "simulateTaskLaunch",
        .post,
        "/v1/devices/{token}/tasks/{identifier}/simulate-launch",
        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [202, 400, 404, 409, 410],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        .asked(.simulateTaskLaunch(try call.device(), identifier: try call.identifier()))
    }

    package static let simulateTaskExpiration = Operation(
        "simulateTaskExpiration",
        .post,
        "/v1/devices/{token}/tasks/{identifier}/simulate-expiration",
        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [202, 400, 404, 409],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        .asked(.simulateTaskExpiration(try call.device(), identifier: try call.identifier()))
    }
}

import Wire

extension Operation {
    /// What operators have devices go through.
    package static let simulations = [simulateLaunch, simulateExpiration]

    package static let simulateLaunch = Operation(
        "simulateLaunch",
        .post,
        "/v1/devices/{token}/simulate-launch",
        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [202, 400, 404, 409, 410],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        var isOfPendingAlone = false
        try QueryParameter.forEach(of: call.query) { parameter throws(APIError) in
            guard parameter.name == "pending" else {
                throw parameter.unknown(among: ["pending"], "a launch takes pending alone")
            }
            isOfPendingAlone = try parameter.flag()
        }
        return .asked(.simulateLaunch(try call.device(), ofPendingAlone: isOfPendingAlone))
    }

    package static let simulateExpiration = Operation(
        "simulateExpiration",
        .post,
        "/v1/devices/{token}/simulate-expiration",
        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [202, 400, 404, 409],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        .asked(.simulateExpiration(try call.device()))
    }
}

import Wire

extension Operation {
    /// What keeps the gateway as it should be.
    package static let upkeep = [backUp, reload]

    package static let backUp = Operation(
        "backUp",
        .post,
        "/v1/backup",
        on: .admin,
        by: .operator,
        reaching: .everyTopic,
        answers: [201, 400, 409, 500],
        afterFailedStore: .answered
    ) { call throws(APIError) in
        let object = try RequestBody.object(call.body, reason: "BadName")
        guard case .string(let name)? = object["name"] else { throw .badName }
        try call.services.backups.start(name, reply: call.reply)
        return .handedOn
    }

    package static let reload = Operation(
        "reload",
        .post,
        "/v1/reload",
        on: .admin,
        by: .operator,
        reaching: .everyTopic,
        answers: [200, 400, 409],
        afterFailedStore: .answered
    ) { call throws(APIError) in
        try call.services.reloads.start(reply: call.reply)
        return .handedOn
    }
}

import Wire

extension Operation {
    /// The operations that maintain the gateway.
    package static let upkeep: [Operation] = [
        ofOperators("backUp", .post, "/v1/backup", reaching: .everyTopic) { call throws(APIError) in
            let object = try RequestBody.object(call.body, reason: "BadName")
            guard case .string(let name)? = object["name"] else { throw .badName }
            try call.services.backups.start(name, reply: call.reply)
            return .handedOn
        },
        ofOperators("reload", .post, "/v1/reload", reaching: .everyTopic) { call throws(APIError) in
            try call.services.reload(call.reply)
            return .handedOn
        },
    ]
}

extension Operation {
    /// The operations that report the gateway's health and version.
    package static let health: [Operation] = [
        ofOperators("alive", .get, "/healthz", reaching: .nothing) { _ in
            .answered(OperationAnswer(Array(#"{"alive":true}"#.utf8)))
        },
        ofOperators("ready", .get, "/readyz", reaching: .nothing) { _ in
            .asked(.readiness)
        },
        ofOperators("version", .get, "/version", reaching: .nothing) { _ in
            let body = JSONWriter.object { writer in
                writer.member("version", wakeGateVersion)
                writer.member("commit", wakeGateCommit)
                writer.member("build", BuildKind.name)
            }
            return .answered(OperationAnswer(body))
        },
    ]
}

// MARK: - At the engine

extension EngineWork {
    /// Answers with success if the gateway accepts requests, otherwise with the failure of its store or the shutdown.
    package static let readiness = EngineWork(isReadiness: true) { scope throws(APIError) in
        if let failure = scope.workspace.failure { throw failure.refusal(failure.error) }
        guard !scope.room.isDraining else { throw .shutdown }
        return .object { $0.member("ready", true) }
    }
}

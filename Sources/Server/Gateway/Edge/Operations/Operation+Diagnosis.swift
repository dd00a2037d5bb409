import Engine
import Policy
package import Wire

extension Operation {
    package static let diagnoseDevice = ofSubject(
        "diagnoseDevice",
        .get,
        "/v1/devices/{token}/diagnosis",
        on: .admin,
        by: .operator,
        answers: [200, 400, 404]
    ) { call throws(APIError) in
        let task = try call.task()
        return .diagnosis(try call.device(), task: task)
    }
}

// MARK: - At the engine

extension EngineWork {
    /// Answers with the checks that decide when a push to a device, or one of its task requests, launches.
    ///
    /// - `task`: the identifier of the task request; nil for a push.
    package static func diagnosis(_ device: Named<DeviceToken>, task: String?) -> EngineWork {
        EngineWork(reading: device) { scope, device in
            let snapshot = scope.workspace.snapshot(device.index)
            let topic = scope.engine.topic(of: device.index)
            var outlook = task.map { scope.dispatcher.outlook(ofTask: $0, device.index) }
            if let found = outlook {
                let takers = scope.workspace.takersShown(found.launch.takers, of: found.target, topic)
                outlook?.launch.takers = takers
            }
            let diagnosis = Diagnosis(
                device: snapshot,
                task: outlook,
                webhook: scope.room.webhooks[snapshot.topic],
                workers: scope.workspace.workerCounts(topic),
                now: scope.engine.now,
                offset: scope.workspace.offset
            )
            return .json { diagnosis.write(to: &$0) }
        }
    }
}

// MARK: - Query

extension OperationCall {
    /// Returns the identifier of the task request in the query, `task=<identifier>`; nil for a push.
    ///
    /// - Throws: `APIError` if a parameter is unknown or repeated, or if the identifier is invalid.
    fileprivate func task() throws(APIError) -> String? {
        var task: String?
        try QueryParameter.forEach(of: self.query) { parameter throws(APIError) in
            guard parameter.name == "task" else {
                throw parameter.unknown(among: ["task"], "a diagnosis takes task alone")
            }
            guard IdentifierPattern.isIdentifier(parameter.value.utf8) else { throw .badTaskIdentifier }
            task = parameter.value
        }
        return task
    }
}

import Engine
package import Wire

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

// MARK: - At the engine

extension EngineWork {
    /// Launches what is pending; an empty wake when nothing is, unless that is not wanted.
    package static func simulateLaunch(_ device: Named<DeviceToken>, ofPendingAlone: Bool = false) -> EngineWork {
        EngineWork(changing: device) { reach, device throws(APIError) in
            switch reach.dispatcher.simulateLaunch(try reach.registered(device), ofPendingAlone: ofPendingAlone) {
            case .launched: return .outcome(.accepted)
            case .laneIsFull: throw .wakeInFlight
            case .noWorker: throw .noWorker
            case .notWaiting: throw .nothingPending
            }
        }
    }

    package static func simulateExpiration(_ device: Named<DeviceToken>) -> EngineWork {
        EngineWork(changing: device) { reach, device throws(APIError) in
            guard reach.dispatcher.simulateExpiration(device.index) else { throw .noWakeInFlight }
            return .outcome(.accepted)
        }
    }
}

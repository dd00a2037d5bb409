import Engine
import Policy
package import Wire

extension Operation {
    /// The operations on the pending launches of topics and devices.
    package static let waiting: [Operation] = [
        switching("pauseTopic", "/v1/topics/{topic}/pause", isPaused: true),
        switching("resumeTopic", "/v1/topics/{topic}/resume", isPaused: false),
        ofEngine("pendingPush", .get, "/v1/devices/{token}/pending", by: .operator) { call throws(APIError) in
            .pendingPush(try call.device())
        },
        ofEngine("dropPending", .delete, "/v1/devices/{token}/pending", by: .operator) { call throws(APIError) in
            .cancelPending(try call.device())
        },
    ]

    private static func switching(_ name: String, _ path: PathPattern, isPaused: Bool) -> Operation {
        ofEngine(name, .post, path, by: .operator, reaching: .topicInPath) { call throws(APIError) in
            .pauseTopic(topic: try call.topic(), isPaused)
        }
    }
}

// MARK: - At the engine

extension EngineWork {
    /// Pauses the automatic launches of a topic, or resumes them.
    package static func pauseTopic(topic name: [UInt8], _ isPaused: Bool) -> EngineWork {
        EngineWork(.pause(topic: name, isPaused)) { scope throws(APIError) in
            let topic = try scope.topic(name)
            scope.dispatcher.setPaused(topic, isPaused)
            return .object { writer in
                writer.member("topic", scope.engine.topicName(topic))
                writer.member("paused", isPaused)
            }
        }
    }

    /// Answers with the content of a device's pending push, including the fields by which its provider can identify it.
    package static func pendingPush(_ device: Named<DeviceToken>) -> EngineWork {
        EngineWork(reading: device) { scope, device throws(APIError) in
            guard let (push, content) = scope.engine.pendingPush(device.index) else { throw .nothingPending }
            let offset = scope.workspace.offset
            return .object { writer in
                writer.hex("apnsID") { content.apnsID.write(to: &$0) }
                writer.member("priority", push.priority.rawValue)
                writer.member("receivedAt", push.receivedAt, offset)
                writer.member("expiresAt", push.expiry, offset)
                writer.member("collapseID", content.collapseID.isEmpty ? nil : content.collapseID) { $0.string($1) }
                writer.key("payload")
                writer.raw(content.payload)
            }
        }
    }

    /// Drops a device's pending push, if there is one.
    package static func cancelPending(_ device: Named<DeviceToken>) -> EngineWork {
        EngineWork(changing: device) { scope, device in
            let count = scope.dispatcher.cancelPending(device.index) ? 1 : 0
            return .object { $0.member("dropped", count) }
        }
    }
}

extension Operation {
    /// The operations that simulate events of a device.
    package static let simulations: [Operation] = [
        ofEngine("simulateLaunch", .post, "/v1/devices/{token}/simulate-launch", by: .operator) {
            call throws(APIError) in
            var isOfPendingAlone = false
            try QueryParameter.forEach(of: call.query) { parameter throws(APIError) in
                guard parameter.name == "pending" else {
                    throw parameter.unknown(among: ["pending"], "a launch takes pending alone")
                }
                isOfPendingAlone = try parameter.flag()
            }
            return .simulateLaunch(try call.device(), ofPendingAlone: isOfPendingAlone)
        },
        ofEngine("simulateExpiration", .post, "/v1/devices/{token}/simulate-expiration", by: .operator) {
            call throws(APIError) in
            .simulateExpiration(try call.device())
        },
    ]
}

// MARK: - At the engine

extension EngineWork {
    /// Launches a device's pending push. If there is none, launches an empty wake, unless `ofPendingAlone` is true.
    package static func simulateLaunch(_ device: Named<DeviceToken>, ofPendingAlone: Bool = false) -> EngineWork {
        EngineWork(changing: device) { scope, device throws(APIError) in
            switch scope.dispatcher.simulateLaunch(try scope.registered(device), ofPendingAlone: ofPendingAlone) {
            case .launched: return .outcome(.accepted)
            case .laneIsFull: throw .wakeInFlight
            case .noWorker: throw .noWorker
            case .notPending: throw .nothingPending
            }
        }
    }

    package static func simulateExpiration(_ device: Named<DeviceToken>) -> EngineWork {
        EngineWork(changing: device) { scope, device throws(APIError) in
            guard scope.dispatcher.simulateExpiration(device.index) else { throw .noWakeInFlight }
            return .outcome(.accepted)
        }
    }
}

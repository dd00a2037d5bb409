import Engine
import Wire

extension Operation {
    /// What operators push to try out devices and workers.
    package static let testPushes = [testPush]

    package static let testPush = Operation(
        "testPush",
        .post,
        "/v1/devices/{token}/push",
        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        bodyLimit: .testPush,
        answers: [200, 400, 404],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        guard let rules = call.services.testPushes.rules else { throw .testPushesNotPermitted }
        let body = try RequestBody.object(call.body, reason: "BadPush")
        let (device, apnsID) = (try call.device(), call.services.newAPNsID())
        return .asked(.testPush(try TestPushBody(body).push(to: device, call.parameter, apnsID, rules)))
    }
}

// MARK: - At the engine

extension EngineWork {
    /// Takes a push of an operator's, as one of a provider's.
    package static func testPush(_ push: TestPush) -> EngineWork {
        EngineWork(pushingTo: push.device, of: push.topic) { reach throws(APIError) in
            let topic: [UInt8]
            if let named = push.topic {
                topic = named
            } else {
                let device = try reach.device(push.device)
                topic = Array(reach.engine.topicName(reach.engine.topic(of: device.index)).utf8)
            }
            guard let token = push.device.pushed(of: topic, by: reach.caller) else { throw .unknownTopic }
            return .push(push, to: token, of: topic)
        }
    }
}

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

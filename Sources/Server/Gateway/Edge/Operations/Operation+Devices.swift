import Engine
import Policy
import Wire

extension Operation {
    /// What workers and operators do with devices.
    package static let devices = [registerDevice, removeDevice, reportConditions, listDevices]

    package static let registerDevice = Operation(
        "registerDevice",
        .post,
        "/v1/topics/{topic}/devices",
        on: .all,
        by: .worker,
        reaching: .topicInPath,
        answers: [201, 400, 409],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        let topic = try call.topic()
        let token = try Operation.registrationToken(call.body) ?? call.services.newDeviceToken()
        return .asked(.register(token, topic: topic))
    }

    package static let removeDevice = Operation(
        "removeDevice",
        .delete,
        "/v1/devices/{token}",
        on: .all,
        by: .worker,
        reaching: .topicOfSubject,
        answers: [204, 400, 404],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        .asked(.unregister(try call.device()))
    }

    package static let reportConditions = Operation(
        "reportConditions",
        .patch,
        "/v1/devices/{token}/conditions",
        on: .all,
        by: .worker,
        reaching: .topicOfSubject,
        answers: [200, 400, 404, 410],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        let device = try call.device()
        let report = try ConditionsReport(try RequestBody.object(call.body, reason: "BadCondition"))
        return .asked(.conditions(device, report))
    }

    package static let listDevices = Operation(
        "listDevices",
        .get,
        "/v1/devices",
        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [200, 400],
        afterFailedStore: .answeredFromDurableState
    ) { call throws(APIError) in
        .asked(.devices(try DeviceQuestion(query: call.query)))
    }

    /// The token a registration names; nil when its body is empty or names none.
    private static func registrationToken(_ body: ByteView) throws(APIError) -> DeviceToken? {
        guard !body.isEmpty else { return nil }
        let object = try RequestBody.object(body, reason: "BadDeviceToken")
        if let other = object.members.map(\.name).first(where: { $0 != "token" }) {
            throw APIError(400, "BadDeviceToken", "\(other) is not a member of a registration; it takes token alone.")
        }
        switch object["token"] {
        case nil, .null?: return nil
        case .string(let text)?:
            guard let token = text.withByteView({ DeviceToken(hex: $0) }) else { throw .badDeviceToken }
            return token
        case .bool?, .number?, .array?, .object?: throw .badDeviceToken
        }
    }
}

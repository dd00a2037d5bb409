import Access
import Answers
import Bytes
import DeviceEngine
import EngineRoom
import LaunchPolicy
import Text
import WakeDispatch

extension Operation {
    /// Wakes: workers subscribe to them and answer them.
    package static let workers = [subscribe, reportResult, extendWake, drainStream]

    package static let subscribe = Operation(
        "subscribe",
        .get,
        "/v1/topics/{topic}/wakes",
        on: .edge,
        by: .worker,
        reaching: .topicInPath,
        answers: [200, 400],
        isStream: true,
        afterFailedStore: .refused
    ) { call throws(APIError) in
        let query = try SubscriptionQuery(call.query)
        return .subscribed(topic: try call.topic(), query.request)
    }

    package static let reportResult = Operation(
        "reportResult",
        .post,
        "/v1/wakes/{wake}",
        on: .edge,
        by: .worker,
        reaching: .topicOfSubject,
        answers: [204, 400, 404, 409],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        let result = try Self.result(call.body)
        return .asked(.report(try call.wake(), result))
    }

    package static let extendWake = Operation(
        "extendWake",
        .post,
        "/v1/wakes/{wake}/extend",
        on: .edge,
        by: .worker,
        reaching: .topicOfSubject,
        answers: [200, 400, 404, 409],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        let milliseconds = try RequestBody.extension(call.body)
        return .asked(.extend(try call.wake(), milliseconds: milliseconds))
    }

    package static let drainStream = Operation(
        "drainStream",
        .post,
        "/v1/streams/{stream}/drain",
        on: .edge,
        by: .worker,
        reaching: .topicOfSubject,
        answers: [204, 404],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        guard let stream = call.services.streamNames.stream(call.parameter.string) else { throw .unknownStream }
        return .asked(.drainStream(.stream(stream)))
    }

    private static func result(_ body: ByteView) throws(APIError) -> FetchResult {
        let object = try RequestBody.object(body, reason: "BadResult")
        guard case .string(let text)? = object["result"], let result = FetchResult(rawValue: text) else {
            let message = "result is \(object["result"]?.described ?? "missing"); send newData, noData or failed."
            throw APIError(400, "BadResult", message)
        }
        return result
    }
}

import Engine
import Policy
import Wire

extension Operation {
    /// Wakes: workers subscribe to them and answer them.
    package static let workers = [
        subscribe, reportResult, extendWake, releaseWake, reportProgress, drainStream,
    ]

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
        let report = try RequestBody.report(call.body)
        return .asked(.report(try call.wake(), report))
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

    package static let releaseWake = Operation(
        "releaseWake",
        .post,
        "/v1/wakes/{wake}/release",
        on: .edge,
        by: .worker,
        reaching: .topicOfSubject,
        answers: [204, 400, 404, 409],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        let reason = try RequestBody.release(call.body)
        return .asked(.release(try call.wake(), reason: reason))
    }

    package static let reportProgress = Operation(
        "reportProgress",
        .post,
        "/v1/wakes/{wake}/progress",
        on: .edge,
        by: .worker,
        reaching: .topicOfSubject,
        answers: [200, 400, 404, 409],
        rate: .progress,
        afterFailedStore: .refused
    ) { call throws(APIError) in
        let progress = try RequestBody.progress(call.body)
        return .asked(.progress(try call.wake(), progress))
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
}

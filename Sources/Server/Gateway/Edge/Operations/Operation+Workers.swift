package import Engine
import Policy
package import Wire

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

// MARK: - At the engine

extension EngineWork {
    package static func subscribe(topic: [UInt8], _ subscription: SubscriptionRequest) -> EngineWork {
        EngineWork(.topic(topic)) { reach throws(APIError) in
            guard !reach.room.isDraining else { throw .shutdown }
            if let limit = topic.withByteView({ reach.dispatcher.limitMet(topic: $0, subscription) }) {
                reach.room.limits.met(limit)
                throw limit == .streamsPerDeviceMax ? .tooManyStreamsOfDevice : .full
            }
            return .stream(topic: topic, subscription)
        }
    }

    package static func report(_ wake: Named<WakeID>, _ report: WakeReport) -> EngineWork {
        EngineWork(wake: wake, freesSlot: true) { reach, wake throws(APIError) in
            switch reach.dispatcher.report(report, wake: wake) {
            case .ended, .repeated: return .outcome(.done)
            case .endedOtherwise(let outcome): throw .wakeEnded(outcome.name)
            case .otherKind:
                switch report {
                case .push: throw .successExpected
                case .task: throw .resultExpected
                }
            case .unknown: throw .unknownWake
            }
        }
    }

    /// More time for a wake, in milliseconds from now; nil for as long as a wake has at first.
    package static func extend(_ wake: Named<WakeID>, milliseconds: Int64?) -> EngineWork {
        EngineWork(wake: wake) { reach, wake throws(APIError) in
            guard let window = reach.engine.executionWindow(ofWake: wake) else { throw .unknownWake }
            switch reach.dispatcher.extend(wake, by: milliseconds ?? window) {
            case .lasts(let deadline):
                let timeLeft = deadline.milliseconds - reach.engine.now.milliseconds
                return .outcome(.extended(wake, deadline: reach.wall(deadline), timeLeft: timeLeft))
            case .limitReached(let deadline):
                let isContinued = reach.engine.launchedWake(wake)?.kind == .continued
                throw .extensionLimitReached(reach.wall(deadline), isContinued: isContinued)
            case .ended(let outcome): throw .wakeEnded(outcome.name)
            case .unknown: throw .unknownWake
            }
        }
    }

    /// Gives back a wake that the worker could not begin, with what it says about that.
    package static func release(_ wake: Named<WakeID>, reason: String) -> EngineWork {
        EngineWork(wake: wake) { reach, wake throws(APIError) in
            switch reach.dispatcher.release(wake, reason: reason) {
            case .released: return .outcome(.done)
            case .ended(let outcome): throw .wakeEnded(outcome.name)
            case .unknown: throw .unknownWake
            }
        }
    }

    /// How far a continued task is.
    package static func progress(_ wake: Named<WakeID>, _ progress: TaskProgress) -> EngineWork {
        EngineWork(wake: wake) { reach, wake throws(APIError) in
            switch reach.dispatcher.progress(progress, wake: wake) {
            case .lasts(let deadline): return .outcome(.progressed(deadline: reach.wall(deadline)))
            case .notContinued: throw .notContinued
            case .ended(let outcome): throw .wakeEnded(outcome.name)
            case .unknown: throw .unknownWake
            }
        }
    }

    /// No more wakes for a stream, which ends after its last.
    package static func drainStream(_ stream: StreamAddress) -> EngineWork {
        EngineWork { reach throws(APIError) in
            let isThere = reach.dispatcher.streamDraining(stream) { reach.caller.reaches($0, in: reach.engine) }
            guard isThere else { throw .unknownStream }
            return .outcome(.done)
        }
    }
}

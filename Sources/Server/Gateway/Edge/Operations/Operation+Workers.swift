package import Engine
import Policy
package import Wire

extension Operation {
    /// The operations with which workers subscribe to wakes and answer them.
    package static let workers: [Operation] = [
        Operation(
            "subscribe",
            .get,
            "/v1/topics/{topic}/wakes",
            by: .worker,
            reaching: .topicInPath,
            isStream: true,
            afterFailedStore: .refused
        ) { call throws(APIError) in
            let query = try SubscriptionQuery(call.query)
            return .subscribed(topic: try call.topic(), query.request)
        },
        ofEngine("reportResult", .post, "/v1/wakes/{wake}", by: .worker) { call throws(APIError) in
            let report = try RequestBody.report(call.body)
            return .report(try call.wake(), report)
        },
        ofEngine("extendWake", .post, "/v1/wakes/{wake}/extend", by: .worker) { call throws(APIError) in
            let milliseconds = try RequestBody.extension(call.body)
            return .extend(try call.wake(), milliseconds: milliseconds)
        },
        ofEngine("releaseWake", .post, "/v1/wakes/{wake}/release", by: .worker) { call throws(APIError) in
            let reason = try RequestBody.release(call.body)
            return .release(try call.wake(), reason: reason)
        },
        ofEngine("reportProgress", .post, "/v1/wakes/{wake}/progress", by: .worker, rate: .progress) {
            call throws(APIError) in
            let progress = try RequestBody.progress(call.body)
            return .progress(try call.wake(), progress)
        },
        ofEngine("drainStream", .post, "/v1/streams/{stream}/drain", by: .worker) { call throws(APIError) in
            guard let stream = call.services.streamNames.stream(call.parameter.string) else { throw .unknownStream }
            return .drainStream(.stream(stream))
        },
    ]
}

// MARK: - Engine work

extension EngineWork {
    package static func subscribe(topic: [UInt8], _ subscription: SubscriptionRequest) -> EngineWork {
        EngineWork(.topic(topic)) { scope throws(APIError) in
            guard !scope.room.isDraining else { throw .shutdown }
            if let limit = topic.withByteView({ scope.dispatcher.limitMet(topic: $0, subscription) }) {
                scope.room.limits.met(limit)
                throw limit == .streamsPerDeviceMax ? .tooManyStreamsOfDevice : .full
            }
            return .stream(topic: topic, subscription)
        }
    }

    package static func report(_ wake: Named<WakeID>, _ report: WakeReport) -> EngineWork {
        EngineWork(wake: wake, freesSlot: true) { scope, wake throws(APIError) in
            switch scope.dispatcher.report(report, wake: wake) {
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

    /// Moves a wake's deadline to `milliseconds` from now. For nil, uses the time that a new wake gets.
    package static func extend(_ wake: Named<WakeID>, milliseconds: Int64?) -> EngineWork {
        EngineWork(wake: wake) { scope, wake throws(APIError) in
            guard let window = scope.engine.executionWindow(ofWake: wake) else { throw .unknownWake }
            switch scope.dispatcher.extend(wake, by: milliseconds ?? window) {
            case .lasts(let deadline): return .outcome(scope.lasts(wake, until: deadline))
            case .limitReached(let deadline):
                let isContinued = scope.engine.launchedWake(wake)?.kind == .continued
                throw .extensionLimitReached(scope.wall(deadline), isContinued: isContinued)
            case .ended(let outcome): throw .wakeEnded(outcome.name)
            case .unknown: throw .unknownWake
            }
        }
    }

    /// Releases a wake that the worker could not begin, with the worker's reason.
    package static func release(_ wake: Named<WakeID>, reason: String) -> EngineWork {
        EngineWork(wake: wake) { scope, wake throws(APIError) in
            switch scope.dispatcher.release(wake, reason: reason) {
            case .released: return .outcome(.done)
            case .ended(let outcome): throw .wakeEnded(outcome.name)
            case .unknown: throw .unknownWake
            }
        }
    }

    /// Reports the progress of a continued task.
    package static func progress(_ wake: Named<WakeID>, _ progress: TaskProgress) -> EngineWork {
        EngineWork(wake: wake) { scope, wake throws(APIError) in
            switch scope.dispatcher.progress(progress, wake: wake) {
            case .lasts(let deadline): return .outcome(scope.lasts(wake, until: deadline))
            case .notContinued: throw .notContinued
            case .ended(let outcome): throw .wakeEnded(outcome.name)
            case .unknown: throw .unknownWake
            }
        }
    }

    /// Drains a stream: it gets no more wakes and ends after its last wake has ended.
    package static func drainStream(_ stream: StreamAddress) -> EngineWork {
        EngineWork { scope throws(APIError) in
            let isThere = scope.dispatcher.streamDraining(stream) { scope.caller.reaches($0, in: scope.engine) }
            guard isThere else { throw .unknownStream }
            return .outcome(.done)
        }
    }
}

/// The query of a subscription: `slots=16&name=<label>&push=0&conditions=1` and, repeatable, `device=<token>`,
/// `task=<pattern>`, `session=<pattern>`, `resource=<name>`.
package struct SubscriptionQuery {
    /// The maximum number of devices, tasks or sessions in a subscription.
    package static let namesMax = 64
    /// The maximum size of a stream's label in bytes.
    static let nameBytesMax = 128

    private static let parameters = [
        "slots", "name", "device", "task", "session", "resource", "push", "conditions",
    ]

    /// The subscription. By default it has one slot and accepts the pushes of every device, but no tasks.
    package private(set) var request = SubscriptionRequest(slots: 1, devices: [])
    /// The resources in the order of the query, with repetitions.
    private var resources: [String] = []

    /// - Throws: `APIError` with the parameter's name, the fault and the valid values.
    package init(_ query: ByteView) throws(APIError) {
        try QueryParameter.forEach(of: query, repeatable: ["device", "task", "session", "resource"]) {
            parameter throws(APIError) in try self.take(parameter)
        }
        self.request.resources = self.resources
        guard self.request.takesPushes || self.request.reportsConditions || self.request.takesTasks else {
            throw .badQuery("With push=0 alone nothing comes on the stream; name what it takes with task or session.")
        }
    }

    private mutating func take(_ parameter: QueryParameter) throws(APIError) {
        let (name, value) = (parameter.name, parameter.value)
        switch name {
        case "slots": self.request.slots = try parameter.integer(1...SubscriptionRequest.slotsMax)
        case "name":
            guard value.utf8.count <= Self.nameBytesMax else {
                throw .badQuery("name is a label of at most \(Self.nameBytesMax) bytes.")
            }
            self.request.label = value.percentDecoded ?? value
        case "device":
            guard let token = value.withByteView({ DeviceToken(hex: $0) }) else { throw APIError.badDeviceToken }
            if !self.request.devices.contains(token) { try Self.append(token, to: &self.request.devices, name) }
        case "task": try Self.append(try Self.pattern(parameter), to: &self.request.tasks, once: name)
        case "session": try Self.append(try Self.pattern(parameter), to: &self.request.sessions, once: name)
        case "resource":
            let resource = value.percentDecoded ?? value
            guard TaskRequestReader.isResource(resource) else {
                throw .badQuery("resource is \(TaskRequestReader.resourceRequirement).")
            }
            try Self.append(resource, to: &self.resources, name, countMax: SubscriptionRequest.resourcesMax)
        case "push": self.request.takesPushes = try parameter.flag()
        case "conditions": self.request.reportsConditions = try parameter.flag()
        default:
            let takes = "a subscription takes \(Self.parameters.joined(separator: ", "))"
            throw parameter.unknown(among: Self.parameters, takes)
        }
    }

    private static func append<Value>(
        _ value: Value,
        to values: inout [Value],
        _ parameter: String,
        countMax: Int = namesMax
    ) throws(APIError) {
        guard values.count < countMax else {
            throw .badQuery("\(parameter) may come at most \(countMax) times.")
        }
        values.append(value)
    }

    private static func append(
        _ pattern: IdentifierPattern,
        to patterns: inout [IdentifierPattern],
        once parameter: String
    ) throws(APIError) {
        guard !patterns.contains(pattern) else {
            throw APIError(
                400,
                "DuplicateTask",
                "\(parameter)=\(pattern.text) comes twice; a stream handles each name once."
            )
        }
        try self.append(pattern, to: &patterns, parameter)
    }

    private static func pattern(_ parameter: QueryParameter) throws(APIError) -> IdentifierPattern {
        let pattern = IdentifierPattern(parameter.value.percentDecoded ?? parameter.value)
        guard pattern.isWellFormed else {
            throw .badQuery(
                "\(parameter.name) is 1 to 255 characters out of A-Z, a-z, 0-9, '.', '-' and '_', or those and '.*' "
                    + "for all names that begin so."
            )
        }
        return pattern
    }
}

extension RequestBody {
    /// Parses a worker's report about a finished wake: `result` of a push, `success` of a task or a session.
    ///
    /// - Throws: `APIError` with reason `BadResult`.
    package static func report(_ body: ByteView) throws(APIError) -> WakeReport {
        if let report = self.shortReport(body) { return report }
        let object = try self.object(body, reason: "BadResult")
        switch (object["result"], object["success"]) {
        case (let result, nil):
            guard case .string(let text)? = result, let result = FetchResult(rawValue: text) else {
                let message =
                    "result is \(result?.described ?? "missing"); send newData, noData or failed, or of a "
                    + "task or a session success, true or false."
                throw APIError(400, "BadResult", message)
            }
            return .push(result)
        case (nil, let success?):
            guard case .bool(let isSuccess) = success else {
                throw APIError(400, "BadResult", "success is \(success.described); send true or false.")
            }
            return .task(isSuccess ? .success : .failure)
        case (_?, _?):
            throw APIError(400, "BadResult", "A push takes result, a task or a session success; send one of them.")
        }
    }

    /// Returns a report in the exact form that the SDKs write, without parsing JSON; nil for any other body.
    private static func shortReport(_ body: ByteView) -> WakeReport? {
        if body == #"{"result":"newData"}"# { return .push(.newData) }
        if body == #"{"result":"noData"}"# { return .push(.noData) }
        if body == #"{"result":"failed"}"# { return .push(.failed) }
        if body == #"{"success":true}"# { return .task(.success) }
        if body == #"{"success":false}"# { return .task(.failure) }
        return nil
    }

    /// Parses the requested extension of a wake, in milliseconds from now; nil if the worker names no duration.
    ///
    /// - Throws: `APIError` with reason `BadExtension`.
    static func `extension`(_ body: ByteView) throws(APIError) -> Int64? {
        guard !body.isEmpty else { return nil }
        let object = try self.object(body, reason: "BadExtension")
        if let other = object.members.map(\.name).first(where: { $0 != "seconds" }) {
            throw APIError(400, "BadExtension", "\(other) is not a member of an extension; it takes seconds alone.")
        }
        guard let seconds = object["seconds"] else { return nil }
        guard case .number(let number) = seconds, number.double > 0, number.double <= Self.extensionSecondsMax else {
            let message = "seconds is \(seconds.described); send a number more than 0, and at most a day's."
            throw APIError(400, "BadExtension", message)
        }
        return max(1, Int64(number.double * 1000))
    }

    private static let extensionSecondsMax = 86_400.0

    /// Parses the progress of a continued task.
    ///
    /// - Throws: `APIError` with reason `BadProgress`.
    package static func progress(_ body: ByteView) throws(APIError) -> TaskProgress {
        let object = try self.object(body, reason: "BadProgress")
        let fields = ["completed", "total", "title", "subtitle"]
        if let other = object.members.map(\.name).first(where: { !fields.contains($0) }) {
            let nearest = NearestMatch.find(other, in: fields).map { " (\($0)?)" } ?? ""
            let message = "\(other) is not a field of progress\(nearest); it takes \(fields.joined(separator: ", "))."
            throw APIError(400, "BadProgress", message)
        }
        return TaskProgress(
            completed: try self.units("completed", of: object),
            total: try self.units("total", of: object),
            title: try self.text("title", of: object, reason: "BadProgress"),
            subtitle: try self.text("subtitle", of: object, reason: "BadProgress")
        )
    }

    /// Returns the reason that a worker gives for releasing a wake, or an empty string if the body has none.
    ///
    /// - Throws: `APIError` with reason `BadRelease`.
    package static func release(_ body: ByteView) throws(APIError) -> String {
        guard !body.isEmpty else { return "" }
        let object = try self.object(body, reason: "BadRelease")
        if let other = object.members.map(\.name).first(where: { $0 != "reason" }) {
            throw APIError(400, "BadRelease", "\(other) is not a member of a release; it takes reason alone.")
        }
        return try self.text("reason", of: object, reason: "BadRelease") ?? ""
    }

    private static func units(_ field: String, of object: JSONValue) throws(APIError) -> UInt64 {
        guard case .number(let number)? = object[field], let units = UInt64(exactly: number.double),
            units <= Self.unitsMax
        else {
            let found = object[field]?.described ?? "missing"
            let message = "\(field) is \(found); it takes a whole number from 0 to \(Self.unitsMax)."
            throw APIError(400, "BadProgress", message)
        }
        return units
    }

    /// The maximum count. JSON numbers represent integers up to this value exactly.
    private static let unitsMax: UInt64 = 1 << 53 - 1
}

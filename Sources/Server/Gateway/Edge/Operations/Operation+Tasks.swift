package import Engine
import Policy
package import Wire

extension Operation {
    /// The operations on a device's background tasks and sessions.
    package static let tasks: [Operation] = [
        ofEngine("submitTask", .post, "/v1/devices/{token}/tasks", on: .all, by: .worker, rate: .submissions) {
            call throws(APIError) in
            var task = try IncomingTask(try RequestBody.object(call.body, reason: "BadTaskRequest"))
            task.details.trace = call.trace.array
            return .submitTask(try call.device(), task)
        },
        ofEngine("listTasks", .get, "/v1/devices/{token}/tasks", on: .all, by: .worker) { call throws(APIError) in
            .listTasks(try call.device())
        },
        ofEngine("cancelTasks", .delete, "/v1/devices/{token}/tasks", on: .all, by: .worker) { call throws(APIError) in
            // A misspelled request to cancel one task must not cancel all.
            guard call.query.isEmpty else {
                throw .badQuery(
                    "Every request is cancelled, and no parameter is taken; .../tasks/<identifier> cancels one."
                )
            }
            return .cancelTask(try call.device(), identifier: nil)
        },
        ofEngine("cancelTask", .delete, "/v1/devices/{token}/tasks/{identifier}", on: .all, by: .worker) {
            call throws(APIError) in
            .cancelTask(try call.device(), identifier: try call.identifier())
        },
        ofEngine(
            "transfersFinished",
            .post,
            "/v1/devices/{token}/sessions/{session}",
            on: .all,
            by: .worker,
            rate: .submissions
        ) { call throws(APIError) in
            let object = try RequestBody.object(call.body, reason: "BadSession")
            let finished = try FinishedTransfers(object, session: try call.session())
            return .transfersFinished(try call.device(), finished)
        },
        ofEngine(
            "resources",
            .get,
            "/v1/topics/{topic}/resources",
            on: .all,
            by: .worker,
            reaching: .topicInPath,
            afterFailedStore: .refused
        ) { call throws(APIError) in
            .resources(topic: try call.topic())
        },
        ofEngine("allTasks", .get, "/v1/tasks", by: .operator) { call throws(APIError) in
            .tasks(try TaskQuestion(query: call.query))
        },
    ]
}

extension Operation {
    /// The operations that simulate a task's launch and expiration, like the commands of the iOS debugger.
    package static let taskSimulations: [Operation] = [
        ofEngine("simulateTaskLaunch", .post, "/v1/devices/{token}/tasks/{identifier}/simulate-launch", by: .operator) {
            call throws(APIError) in
            .simulateTaskLaunch(try call.device(), identifier: try call.identifier())
        },
        ofEngine(
            "simulateTaskExpiration",
            .post,
            "/v1/devices/{token}/tasks/{identifier}/simulate-expiration",
            by: .operator
        ) { call throws(APIError) in
            .simulateTaskExpiration(try call.device(), identifier: try call.identifier())
        },
    ]
}

// MARK: - Engine work

extension EngineWork {
    /// - `request`: the request. Its earliest start is a time of the wall clock.
    package static func submitTask(_ device: Named<DeviceToken>, _ request: IncomingTask) -> EngineWork {
        EngineWork(changing: device, beginsWork: true) { scope, device throws(APIError) in
            let device = try scope.registered(device)
            let offset = scope.workspace.offset
            var task = request
            task.earliestBegin = request.earliestBegin.map { $0 - offset.milliseconds }
            do throws(TaskRejection) {
                let answer = try scope.dispatcher.submit(task, device)
                var submitted = SubmittedTask(
                    identifier: request.identifier,
                    kind: request.kind.taskKind,
                    answer: answer,
                    offset: offset
                )
                if answer.wake == nil { submitted.hint = scope.hint(task, device) }
                return .object(status: 201) { submitted.writeMembers(to: &$0) }
            } catch {
                throw scope.refusal(error, of: request.identifier, device)
            }
        }
    }

    package static func transfersFinished(
        _ device: Named<DeviceToken>,
        _ finished: FinishedTransfers
    ) -> EngineWork {
        EngineWork(changing: device, beginsWork: true) { scope, device throws(APIError) in
            let device = try scope.registered(device)
            do throws(TaskRejection) {
                try scope.dispatcher.transfersFinished(
                    session: finished.session,
                    count: finished.count,
                    id: finished.id,
                    device
                )
                return .outcome(.accepted)
            } catch {
                throw scope.refusal(error, of: finished.session, device)
            }
        }
    }

    /// Cancels the request with an identifier; nil cancels every request of the device.
    package static func cancelTask(_ device: Named<DeviceToken>, identifier: String?) -> EngineWork {
        EngineWork(changing: device) { scope, device throws(APIError) in
            let device = try scope.registered(device)
            scope.dispatcher.cancelTask(identifier, device)
            return .outcome(.done)
        }
    }

    /// Lists the pending and running tasks of one device.
    package static func listTasks(_ device: Named<DeviceToken>) -> EngineWork {
        EngineWork(reading: device) { scope, device throws(APIError) in
            let snapshot = scope.workspace.snapshot(try scope.registered(device))
            return .json { TaskList(device: snapshot, offset: scope.workspace.offset).write(to: &$0) }
        }
    }

    /// Lists the pending and running tasks of all devices.
    package static func tasks(_ question: TaskQuestion) -> EngineWork {
        EngineWork(.list(.tasks(question))) { scope in
            var search = scope.workspace.search(question, for: scope.caller)
            return .list(
                LongList(
                    search: { $0.engine.look(&search, placesMax: LongList.placesMax) },
                    write: { $0.write(search, to: &$1) }
                )
            )
        }
    }

    /// Lists the resources that the connected streams of a topic offer.
    package static func resources(topic: [UInt8]) -> EngineWork {
        EngineWork { scope in
            let topic = topic.withByteView { scope.engine.findTopic($0) }
            let resources = topic.map { scope.dispatcher.resources($0) } ?? []
            return .object { $0.array("resources", resources) { $0.string($1) } }
        }
    }

    package static func simulateTaskLaunch(_ device: Named<DeviceToken>, identifier: String) -> EngineWork {
        EngineWork(changing: device) { scope, device throws(APIError) in
            switch scope.dispatcher.simulateLaunch(try scope.registered(device), identifier: identifier) {
            case .launched: return .outcome(.accepted)
            case .laneIsFull: throw .laneIsFull
            case .notPending: throw .taskNotWaiting
            case .noWorker: throw .noWorkerForTask
            }
        }
    }

    package static func simulateTaskExpiration(_ device: Named<DeviceToken>, identifier: String) -> EngineWork {
        EngineWork(changing: device) { scope, device throws(APIError) in
            let isEnded = scope.dispatcher.simulateExpiration(device.index, identifier: identifier)
            guard isEnded else { throw .taskNotRunning }
            return .outcome(.accepted)
        }
    }
}

extension AuthorizedScope {
    /// Returns advice if the minimum interval between launches may delay the requested start; nil otherwise.
    fileprivate func hint(_ request: IncomingTask, _ device: DeviceIndex) -> String? {
        let kind = request.kind.taskKind
        guard let begin = request.earliestBegin,
            let interval = self.engine.interval(kind, topic: self.engine.topic(of: device))
        else { return nil }
        let wait = begin.milliseconds - self.engine.now.milliseconds
        // Tolerate 5%, because some time has passed since a client computed a start of exactly one interval from now.
        guard wait > 0, wait < interval - interval / 20 else { return nil }
        let isProcessing = kind == .processing
        let key = isProcessing ? "processingInterval" : "launchInterval"
        let kinds = isProcessing ? "processing tasks of a device" : "launches"
        return "earliestBegin is \((wait + 999) / 1000) s away, but \(kinds) are at least "
            + "\(Reasoning.seconds(interval)) s apart (policy.\(key)): it may launch later."
    }

    /// Returns the error for a refused task request or session report.
    fileprivate func refusal(_ rejection: TaskRejection, of name: String, _ device: DeviceIndex) -> APIError {
        switch rejection {
        case .policy(let refusal):
            let topic = self.engine.topicName(self.engine.topic(of: device))
            return APIError(refusal, identifier: name, topic: topic)
        case .tooManySessions: return .tooManySessions
        case .bound(let limit):
            self.room.limits.met(limit)
            return .tooManyTasks(limit: limit.rawValue)
        }
    }
}

extension Workspace {
    /// Appends the pending and running tasks that a search has found.
    fileprivate func write(_ search: TaskSearch, to writer: inout JSONWriter) {
        writer.beginArray("tasks")
        var list: TaskList?
        for var task in self.engine.tasks(search) {
            guard let device = self.engine.find(task.device) else { continue }
            if list?.device.token != task.device {
                list = TaskList(device: self.engine.snapshot(device), offset: self.offset)
            }
            self.dispatcher.noteTakers(of: &task, device)
            self.noteRemoteTakers(of: &task, self.engine.topic(of: device))
            list?.write(task, to: &writer)
        }
        writer.endArray()
    }
}

// MARK: - Query

extension TaskQuestion {
    /// Parses the query of a list of tasks: `topic=<topic>&kind=<kind>&state=waiting|running`, each at most once.
    ///
    /// - Throws: `APIError` with the parameter's name, the fault and the valid values.
    package init(query: ByteView) throws(APIError) {
        self.init()
        try QueryParameter.forEach(of: query) { parameter throws(APIError) in
            switch parameter.name {
            case "topic": self.topic = try parameter.topic()
            case "kind": self.kind = try parameter.word(of: TaskKind.allCases) { $0.rawValue }
            case "state": self.state = try parameter.word(of: TaskFilter.State.allCases) { $0.rawValue }
            default:
                throw .badQuery("\(parameter.name) is not a parameter; tasks are filtered by topic, kind and state.")
            }
        }
    }
}

extension IncomingTask {
    /// Parses the body of a submission. The earliest start of the result is a time of the wall clock.
    ///
    /// - Throws: `APIError` with reason `BadTaskRequest`.
    package init(_ object: JSONValue) throws(APIError) {
        self = try TaskRequestReader(object).request()
    }
}

extension FinishedTransfers {
    /// The maximum number of transfers in one report.
    private static let countMax = 100_000
    /// The maximum length of an id in characters.
    private static let idCharactersMax = 64

    /// Parses the body of a session's report.
    ///
    /// - Throws: `APIError` with reason `BadSession`.
    package init(_ object: JSONValue, session: String) throws(APIError) {
        let fields = ["finished", "id"]
        if let other = object.members.map(\.name).first(where: { !fields.contains($0) }) {
            throw APIError(400, "BadSession", "\(other) is not a field of a session; it takes finished and id.")
        }
        guard case .number(let number)? = object["finished"], let count = Int(exactly: number.double),
            (1...Self.countMax).contains(count)
        else {
            let found = object["finished"]?.described ?? "missing"
            let message = "finished is \(found); it takes a whole number from 1 to \(Self.countMax)."
            throw APIError(400, "BadSession", message)
        }
        var id: String?
        if let value = object["id"] {
            guard case .string(let text) = value, (1...Self.idCharactersMax).contains(text.unicodeScalars.count) else {
                let message = "id is \(value.described); it takes a text of 1 to \(Self.idCharactersMax) characters."
                throw APIError(400, "BadSession", message)
            }
            id = text
        }
        self.init(session: session, count: UInt64(count), id: id)
    }
}

/// Parses the request for a background task field by field.
struct TaskRequestReader {
    static let resourceRequirement = "1 to 64 characters out of A-Z, a-z, 0-9, '.', '-' and '_'"

    /// The fields of a request, each with the kinds of task that allow it.
    private static let fields: [(name: String, kinds: Set<TaskKind>)] = [
        ("identifier", Set(TaskKind.requestable)), ("kind", Set(TaskKind.requestable)),
        ("earliestBegin", Set(TaskKind.requestable)), ("requiresNetworkConnectivity", [.processing]),
        ("requiresExternalPower", [.processing]), ("title", [.continued]), ("subtitle", [.continued]),
        ("strategy", [.continued]), ("resources", [.continued]),
    ]

    private let object: JSONValue

    /// - Parameter object: a JSON object.
    /// - Throws: `APIError` with reason `BadTaskRequest` if it has an unknown field.
    init(_ object: JSONValue) throws(APIError) {
        self.object = object
        let names = Self.fields.map(\.name)
        for member in object.members where !names.contains(member.name) {
            let nearest = NearestMatch.find(member.name, in: names).map { "; did you mean \($0)?" } ?? "."
            let fields = names.joined(separator: ", ")
            throw Self.fault("\(member.name) is not a field of a request\(nearest) Fields are \(fields).")
        }
    }

    /// - Throws: `APIError` with reason `BadTaskRequest`, the field's name, the fault and the valid values.
    func request() throws(APIError) -> IncomingTask {
        guard case .string(let identifier)? = self.object["identifier"], IdentifierPattern.isIdentifier(identifier.utf8)
        else { throw self.fault("identifier", "1 to 255 characters out of A-Z, a-z, 0-9, '.', '-' and '_'") }
        let kinds = TaskKind.requestable
        guard case .string(let name)? = self.object["kind"], let kind = TaskKind(rawValue: name), kinds.contains(kind)
        else { throw self.fault("kind", Self.oneOf(kinds.map(\.rawValue))) }
        for member in self.object.members {
            let owners = Self.fields.first { $0.name == member.name }?.kinds ?? []
            guard owners.contains(kind) else {
                let owner = owners.map(\.rawValue).sorted().joined(separator: " or ")
                throw Self.fault("\(member.name) is a field of \(owner) alone; leave it out of \(kind.rawValue).")
            }
        }
        return IncomingTask(
            identifier: identifier,
            kind: try self.submission(kind),
            earliestBegin: try self.moment("earliestBegin"),
            details: TaskDetails(
                title: try self.text("title"),
                subtitle: try self.text("subtitle"),
                resources: try self.resources()
            )
        )
    }

    private func submission(_ kind: TaskKind) throws(APIError) -> TaskSubmission.Kind {
        switch kind {
        case .appRefresh, .urlSession: return .appRefresh
        case .processing:
            var needs: TaskNeeds = []
            if try self.flag("requiresNetworkConnectivity") { needs.insert(.network) }
            if try self.flag("requiresExternalPower") { needs.insert(.externalPower) }
            return .processing(needs)
        case .continued:
            guard let value = self.object["strategy"] else { return .continued(.queue) }
            guard case .string(let name) = value, let strategy = TaskSubmission.Strategy(rawValue: name) else {
                throw self.fault("strategy", Self.oneOf(TaskSubmission.Strategy.allCases.map(\.rawValue)))
            }
            return .continued(strategy)
        }
    }

    private func flag(_ field: String) throws(APIError) -> Bool {
        guard let value = self.object[field] else { return false }
        guard let flag = value.bool else { throw self.fault(field, "true or false") }
        return flag
    }

    private func moment(_ field: String) throws(APIError) -> Instant? {
        guard let value = self.object[field] else { return nil }
        guard case .number(let number) = value, let moment = Int64(exactly: number.double),
            (0...Self.momentMax).contains(moment)
        else { throw self.fault(field, "a whole number of milliseconds since 1970, before the year 10000") }
        return Instant(milliseconds: moment)
    }

    /// The end of the year 9999, in milliseconds since 1970.
    private static let momentMax: Int64 = 253_402_300_799_999

    private func text(_ field: String) throws(APIError) -> String? {
        try RequestBody.text(field, of: self.object, reason: "BadTaskRequest")
    }

    private func resources() throws(APIError) -> [String] {
        guard let value = self.object["resources"] else { return [] }
        let countMax = SubscriptionRequest.resourcesMax
        let takes = "a list of at most \(countMax) names, each of \(Self.resourceRequirement)"
        guard case .array(let elements) = value, elements.count <= countMax else {
            throw self.fault("resources", takes)
        }
        var resources: [String] = []
        for element in elements {
            guard case .string(let name) = element, Self.isResource(name) else { throw self.fault("resources", takes) }
            if !resources.contains(name) { resources.append(name) }
        }
        return resources
    }

    static func isResource(_ name: String) -> Bool {
        name.utf8.count <= 64 && IdentifierPattern.isIdentifier(name.utf8)
    }

    private static func oneOf(_ words: [String]) -> String {
        "one of \(words.map { "\"\($0)\"" }.joined(separator: ", "))"
    }

    private func fault(_ field: String, _ takes: String) -> APIError {
        Self.fault("\(field) is \(self.object[field]?.described ?? "missing"); it takes \(takes).")
    }

    private static func fault(_ message: String) -> APIError { APIError(400, "BadTaskRequest", message) }
}

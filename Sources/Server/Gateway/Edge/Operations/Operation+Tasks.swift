import Engine
import Policy
package import Wire

extension Operation {
    /// Background tasks and sessions, as those ask for them who stand for a device.
    package static let tasks = [
        submitTask, listTasks, cancelTasks, cancelTask, transfersFinished, resources, allTasks,
    ]

    package static let submitTask = Operation(
        "submitTask",
        .post,
        "/v1/devices/{token}/tasks",
        on: .all,
        by: .worker,
        reaching: .topicOfSubject,
        answers: [201, 400, 403, 404, 409, 410],
        rate: .submissions,
        afterFailedStore: .refused
    ) { call throws(APIError) in
        var task = try TaskRequest(try RequestBody.object(call.body, reason: "BadTaskRequest"))
        task.details.trace = call.trace.array
        return .asked(.submitTask(try call.device(), task))
    }

    package static let listTasks = Operation(
        "listTasks",
        .get,
        "/v1/devices/{token}/tasks",
        on: .all,
        by: .worker,
        reaching: .topicOfSubject,
        answers: [200, 400, 404, 410],
        afterFailedStore: .answeredFromDurableState
    ) { call throws(APIError) in
        .asked(.listTasks(try call.device()))
    }

    package static let cancelTasks = Operation(
        "cancelTasks",
        .delete,
        "/v1/devices/{token}/tasks",
        on: .all,
        by: .worker,
        reaching: .topicOfSubject,
        answers: [204, 400, 404, 410],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        // Whoever means one request is not to lose all of them.
        guard call.query.isEmpty else {
            let message =
                "Every request is cancelled, and no parameter is taken; .../tasks/<identifier> cancels one."
            throw APIError(400, "BadQuery", message)
        }
        return .asked(.cancelTask(try call.device(), identifier: nil))
    }

    package static let cancelTask = Operation(
        "cancelTask",
        .delete,
        "/v1/devices/{token}/tasks/{identifier}",
        on: .all,
        by: .worker,
        reaching: .topicOfSubject,
        answers: [204, 400, 404, 410],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        .asked(.cancelTask(try call.device(), identifier: try call.identifier()))
    }

    package static let transfersFinished = Operation(
        "transfersFinished",
        .post,
        "/v1/devices/{token}/sessions/{session}",
        on: .all,
        by: .worker,
        reaching: .topicOfSubject,
        answers: [202, 400, 404, 409, 410],
        rate: .submissions,
        afterFailedStore: .refused
    ) { call throws(APIError) in
        let object = try RequestBody.object(call.body, reason: "BadSession")
        let finished = try FinishedTransfers(object, session: try call.session())
        return .asked(.transfersFinished(try call.device(), finished))
    }

    package static let resources = Operation(
        "resources",
        .get,
        "/v1/topics/{topic}/resources",
        on: .all,
        by: .worker,
        reaching: .topicInPath,
        answers: [200, 400],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        .asked(.resources(topic: try call.topic()))
    }

    package static let allTasks = Operation(
        "allTasks",
        .get,
        "/v1/tasks",
        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [200, 400],
        afterFailedStore: .answeredFromDurableState
    ) { call throws(APIError) in
        .asked(.tasks(try TaskQuestion(query: call.query)))
    }
}

extension Operation {
    /// What operators have background tasks go through: the commands of the debugger of iOS.
    package static let taskSimulations = [simulateTaskLaunch, simulateTaskExpiration]

    package static let simulateTaskLaunch = Operation(
        "simulateTaskLaunch",
        .post,
        "/v1/devices/{token}/tasks/{identifier}/simulate-launch",
        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [202, 400, 404, 409, 410],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        .asked(.simulateTaskLaunch(try call.device(), identifier: try call.identifier()))
    }

    package static let simulateTaskExpiration = Operation(
        "simulateTaskExpiration",
        .post,
        "/v1/devices/{token}/tasks/{identifier}/simulate-expiration",
        on: .admin,
        by: .operator,
        reaching: .topicOfSubject,
        answers: [202, 400, 404, 409],
        afterFailedStore: .refused
    ) { call throws(APIError) in
        .asked(.simulateTaskExpiration(try call.device(), identifier: try call.identifier()))
    }
}

// MARK: - At the engine

extension EngineWork {
    package static func submitTask(_ device: Named<DeviceToken>, _ request: TaskRequest) -> EngineWork {
        EngineWork(changing: device) { reach, device throws(APIError) in
            guard !reach.room.isDraining else { throw .shutdown }
            let device = try reach.registered(device)
            let offset = reach.workspace.offset
            do throws(TaskRejection) {
                let answer = try reach.dispatcher.submit(request.incoming(offset), device)
                let kind = request.kind.taskKind
                return .outcome(
                    .submitted(
                        SubmittedTask(identifier: request.identifier, kind: kind, answer: answer, offset: offset)
                    )
                )
            } catch {
                throw reach.refusal(error)
            }
        }
    }

    package static func transfersFinished(
        _ device: Named<DeviceToken>,
        _ finished: FinishedTransfers
    ) -> EngineWork {
        EngineWork(changing: device) { reach, device throws(APIError) in
            guard !reach.room.isDraining else { throw .shutdown }
            let device = try reach.registered(device)
            do throws(TaskRejection) {
                try reach.dispatcher.transfersFinished(
                    session: finished.session,
                    count: finished.count,
                    id: finished.id,
                    device
                )
                return .outcome(.accepted)
            } catch {
                throw reach.refusal(error)
            }
        }
    }

    /// Drops the request of an identifier; nil for every request of the device.
    package static func cancelTask(_ device: Named<DeviceToken>, identifier: String?) -> EngineWork {
        EngineWork(changing: device) { reach, device throws(APIError) in
            let device = try reach.registered(device)
            reach.dispatcher.cancelTask(identifier, device)
            return .outcome(.done)
        }
    }

    /// What waits and runs of one device.
    package static func listTasks(_ device: Named<DeviceToken>) -> EngineWork {
        EngineWork(reading: device) { reach, device throws(APIError) in
            let snapshot = reach.dispatcher.snapshot(try reach.registered(device))
            var writer = JSONWriter()
            TaskList(device: snapshot, offset: reach.workspace.offset).write(to: &writer)
            return .outcome(.json(writer))
        }
    }

    /// What waits and runs of all devices.
    package static func tasks(_ question: TaskQuestion) -> EngineWork {
        EngineWork(.list(.tasks(question))) { reach in
            let caller = reach.caller
            return .list(LongList { $0.write(question, for: caller, to: &$1) })
        }
    }

    /// What connected streams of a topic offer.
    package static func resources(topic: [UInt8]) -> EngineWork {
        EngineWork { reach in
            let topic = topic.withByteView { reach.engine.findTopic($0) }
            var writer = JSONWriter()
            writer.beginObject()
            writer.key("resources")
            writer.beginArray()
            for resource in topic.map({ reach.dispatcher.resources($0) }) ?? [] { writer.string(resource) }
            writer.endArray()
            writer.endObject()
            return .outcome(.json(writer))
        }
    }

    package static func simulateTaskLaunch(_ device: Named<DeviceToken>, identifier: String) -> EngineWork {
        EngineWork(changing: device) { reach, device throws(APIError) in
            switch reach.dispatcher.simulateLaunch(try reach.registered(device), identifier: identifier) {
            case .launched: return .outcome(.accepted)
            case .laneIsFull: throw .laneIsFull
            case .notWaiting: throw .taskNotWaiting
            case .noWorker: throw .noWorkerForTask
            }
        }
    }

    package static func simulateTaskExpiration(_ device: Named<DeviceToken>, identifier: String) -> EngineWork {
        EngineWork(changing: device) { reach, device throws(APIError) in
            let isEnded = reach.dispatcher.simulateExpiration(device.index, identifier: identifier)
            guard isEnded else { throw .taskNotRunning }
            return .outcome(.accepted)
        }
    }
}

extension Reach {
    /// Why a request of a task, or a session's report, is not taken.
    fileprivate func refusal(_ rejection: TaskRejection) -> APIError {
        switch rejection {
        case .policy(let refusal): return APIError(refusal)
        case .tooManySessions: return .tooManySessions
        case .bound(let limit):
            self.room.limits.met(limit)
            return .tooManyTasks(limit: limit.rawValue)
        }
    }
}

extension Workspace {
    /// Appends what waits and runs on the devices that a caller reaches.
    fileprivate func write(_ question: TaskQuestion, for caller: Caller, to writer: inout JSONWriter) {
        writer.key("tasks")
        writer.beginArray()
        let topics = self.topics(question.topic, for: caller)
        let filter = TaskFilter(topics: topics, kind: question.kind, state: question.state)
        var list: TaskList?
        for var task in self.engine.tasks(filter, countMax: Self.tasksMax) {
            guard let device = self.engine.find(task.device) else { continue }
            if list?.device.token != task.device {
                list = TaskList(device: self.engine.snapshot(device), offset: self.offset)
            }
            self.dispatcher.noteTakers(of: &task, device)
            list?.write(task, to: &writer)
        }
        writer.endArray()
    }
}

// MARK: - Query

extension TaskQuestion {
    /// The query of a question about tasks: `topic=<topic>&kind=<kind>&state=waiting|running`, each at most once.
    ///
    /// - Throws: `APIError` that names the parameter, what is wrong and what it takes.
    package init(query: ByteView) throws(APIError) {
        self.init()
        try QueryParameter.forEach(of: query) { parameter throws(APIError) in
            switch parameter.name {
            case "topic": self.topic = try parameter.topic()
            case "kind": self.kind = try parameter.word(of: TaskKind.allCases) { $0.rawValue }
            case "state": self.state = try parameter.word(of: TaskFilter.State.allCases) { $0.rawValue }
            default:
                let message = "\(parameter.name) is not a parameter; tasks are filtered by topic, kind and state."
                throw APIError(400, "BadQuery", message)
            }
        }
    }
}

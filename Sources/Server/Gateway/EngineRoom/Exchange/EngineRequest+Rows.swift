import Engine
import Wire

/// The row of a shared store that a request is about.
enum RequestedRow: Hashable, Sendable {
    case device(DeviceToken)
    /// The device of a wake.
    case wake(WakeID)
}

/// What a request needs, so that it can be performed on rows of a shared store.
enum RequestNeeds {
    /// Nothing but what this gateway knows by itself.
    case nothing
    /// A topic of this name, to be made where there is none; nothing else.
    case topic([UInt8])
    case row(RequestedRow)
    /// The last committed version of a device, which the request reads and does not change.
    case reading(DeviceToken)
    /// What all gateways have counted: of all topics, of one, or of all together alone.
    case counts(CountedTopics)
    /// The rows of many devices.
    case list(ListedRows)
    /// All gateways have to know whether a topic is paused.
    case pause(topic: [UInt8], Bool)
}

/// The topics of which counts are needed, besides those of all together.
enum CountedTopics {
    case none, every
    case one([UInt8])
}

extension EngineRequest {
    /// Whether streams may have to hear of other conditions of a device.
    var mayChangeConditions: Bool {
        switch self.verb {
        case .conditions, .register: true
        case .subscribe, .report, .progress, .extend, .release, .drainStream, .unregister, .submitTask, .cancelTask,
            .transfersFinished, .listTasks, .tasks, .devices, .resources, .simulateTaskLaunch, .simulateTaskExpiration,
            .simulateLaunch, .simulateExpiration, .pauseTopic, .testPush, .pendingPush, .cancelPending, .explain,
            .devicePushes, .deviceEvents, .whatIf, .push, .pushes, .listedPushes, .statistics, .topicStatistics,
            .topics,
            .readiness, .metrics:
            false
        }
    }

    var needs: RequestNeeds {
        switch self.verb {
        case .subscribe(let topic, _): .topic(topic)
        case .drainStream, .resources, .push, .pushes, .listedPushes, .readiness: .nothing
        case .report(let wake, _), .progress(let wake, _), .extend(let wake, _), .release(let wake, _):
            .row(.wake(wake.rowName))
        case .register(let token, _): .row(.device(token))
        case .unregister(let device), .conditions(let device, _), .submitTask(let device, _),
            .cancelTask(let device, _), .transfersFinished(let device, _), .simulateTaskLaunch(let device, _),
            .simulateTaskExpiration(let device, _), .simulateLaunch(let device, _), .simulateExpiration(let device),
            .cancelPending(let device):
            .row(.device(device.rowName))
        case .explain(let device), .listTasks(let device), .pendingPush(let device), .devicePushes(let device),
            .deviceEvents(let device, _), .whatIf(let device, _):
            .reading(device.rowName)
        case .testPush(let push): .row(.device(push.device.rowName))
        case .tasks(let question): .list(.tasks(question))
        case .devices(let question): .list(.devices(question))
        case .statistics: .counts(.none)
        case .topicStatistics(let topic): .counts(.one(topic))
        case .topics, .metrics: .counts(.every)
        case .pauseTopic(let topic, let isPaused): .pause(topic: topic, isPaused)
        }
    }
}

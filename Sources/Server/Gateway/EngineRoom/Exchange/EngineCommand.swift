package import Engine
package import Platform
package import Policy
package import Wire

/// What a loop has for the engine besides pushes.
package enum EngineCommand: Sendable {
    /// Somebody asks for something, and waits.
    case request(EngineRequest)
    /// A push was refused before it reached the engine.
    case rejected(reason: Int, topic: [UInt8])
    case streamEnded(StreamAddress)
    case streamPaused(StreamAddress, Bool)
    /// A stream may hold more or fewer wakes from now on.
    case slotsChanged(StreamAddress, Int)
    /// A stream goes on without a wake it held, whose attempt counts unless its worker never got it.
    case lost(StreamAddress, WakeID, takingBackAttempt: Bool)
    /// How a topic's webhook is; nil when it has none any more.
    case webhookChanged(topic: String, WebhookStatus?)
    /// Another configuration is in force from here on.
    indirect case configure(EngineSettings)
    /// The first token was issued: workers are asked who they are.
    case workersAsked
    /// Launch nothing new from now on.
    case drain

    /// Whether it takes the engine no longer than a push.
    var isBrief: Bool {
        switch self {
        case .request(let request): request.verb.isBrief
        case .rejected: true
        case .streamEnded, .streamPaused, .slotsChanged, .lost, .webhookChanged, .configure, .workersAsked, .drain:
            false
        }
    }
}

/// What a caller asks of the engine, and who waits for the answer.
///
/// Immutable, and a reference: it is large, and handed on several times on its way.
package final class EngineRequest: Sendable {
    package let reply: StreamAddress
    /// Whose topics alone it reaches.
    package let caller: Caller
    package let afterFailedStore: AfterFailedStore
    package let verb: EngineVerb

    package init(reply: StreamAddress, caller: Caller, afterFailedStore: AfterFailedStore, _ verb: EngineVerb) {
        self.reply = reply
        self.caller = caller
        self.afterFailedStore = afterFailedStore
        self.verb = verb
    }

    /// Another wish for the same caller, who goes on waiting.
    func going(on verb: EngineVerb) -> EngineRequest {
        EngineRequest(reply: self.reply, caller: self.caller, afterFailedStore: self.afterFailedStore, verb)
    }
}

/// What the engine does for a caller who waits for its answer.
package enum EngineVerb: Sendable {
    case subscribe(topic: [UInt8], SubscriptionRequest)
    case report(Named<WakeID>, WakeReport)
    /// How far a continued task is.
    case progress(Named<WakeID>, TaskProgress)
    /// More time for a wake, in milliseconds from now; nil for as long as a wake has at first.
    case extend(Named<WakeID>, milliseconds: Int64?)
    /// Gives back a wake that the worker could not begin, with what it says about that.
    case release(Named<WakeID>, reason: String)
    /// No more wakes for a stream, which ends after its last.
    case drainStream(StreamAddress)
    case register(DeviceToken, topic: [UInt8])
    case unregister(Named<DeviceToken>)
    case conditions(Named<DeviceToken>, ConditionsReport)
    case submitTask(Named<DeviceToken>, TaskRequest)
    /// Drops the request of an identifier; nil for every request of the device.
    case cancelTask(Named<DeviceToken>, identifier: String?)
    case transfersFinished(Named<DeviceToken>, FinishedTransfers)
    /// What waits and runs of one device.
    case listTasks(Named<DeviceToken>)
    /// What waits and runs of all devices.
    case tasks(TaskQuestion)
    /// Devices, in the order of their tokens.
    case devices(DeviceQuestion)
    /// What connected streams of a topic offer.
    case resources(topic: [UInt8])
    case simulateTaskLaunch(Named<DeviceToken>, identifier: String)
    case simulateTaskExpiration(Named<DeviceToken>, identifier: String)
    /// Launches what is pending; an empty wake when nothing is, unless that is not wanted.
    case simulateLaunch(Named<DeviceToken>, ofPendingAlone: Bool = false)
    /// Has a topic launch nothing by itself, or again what waits.
    case pauseTopic(topic: [UInt8], Bool)
    /// Takes a push of an operator's, as one of a provider's.
    indirect case testPush(TestPush)
    /// The push that waits, with its payload.
    case pendingPush(Named<DeviceToken>)
    /// Drops the push that waits.
    case cancelPending(Named<DeviceToken>)
    case simulateExpiration(Named<DeviceToken>)
    case explain(Named<DeviceToken>)
    /// The last pushes to a device.
    case devicePushes(Named<DeviceToken>)
    /// What happened to a device.
    case deviceEvents(Named<DeviceToken>, EventSelection)
    /// What would have become of a device's pushes under another policy.
    case whatIf(Named<DeviceToken>, WhatIf)
    /// Pushes to all devices, the newest first.
    case pushes(PushQuestion)
    /// What the history has found of those, to be shown with the devices.
    case listedPushes(PushListing)
    /// The way of a push, to one device if one is named.
    case push(APNsID, device: DeviceToken?)
    case statistics
    case topicStatistics(topic: [UInt8])
    case topics
    case readiness
    case metrics(GatewayFigures)

    /// Whether it is about one wake or one device, and takes the engine no longer than a push.
    var isBrief: Bool {
        switch self {
        case .report, .progress, .extend, .release, .register: true
        case _: false
        }
    }
}

/// What becomes of a request once the store has failed, when nothing changes any more.
package enum AfterFailedStore: Hashable, Sendable {
    /// The request is refused: it would change something.
    case refused
    /// The request is answered from what was durable last, as far as that can be read.
    case answeredFromDurableState
    /// The request is answered as ever: nothing of what is stored is in it, or it tells of the failure.
    case answered
}

/// What the engine's thread goes on with after a reload.
package struct EngineSettings: Sendable {
    let engine: EngineConfiguration
    /// The bytes of payloads that a worker's stream may hold unanswered.
    let wakeBytesPerStreamMax: Int
    /// Called on the engine's thread when they are in force, with the number of the launch policy.
    let inForce: @Sendable (UInt32) -> Void

    package init(
        engine: EngineConfiguration,
        wakeBytesPerStreamMax: Int = GatewayLimits().wakeBytesPerStreamMax,
        inForce: @escaping @Sendable (UInt32) -> Void
    ) {
        self.engine = engine
        self.wakeBytesPerStreamMax = wakeBytesPerStreamMax
        self.inForce = inForce
    }

    package init(_ configuration: GatewayConfiguration, inForce: @escaping @Sendable (UInt32) -> Void) {
        self.init(
            engine: configuration.engine,
            wakeBytesPerStreamMax: configuration.limits.wakeBytesPerStreamMax,
            inForce: inForce
        )
    }
}

/// What metrics show that the engine does not know.
package struct GatewayFigures: Sendable {
    let process: ProcessFigures
    /// When the gateway started, in milliseconds since 1970.
    let startedAt: Int64
    /// Open connections by listener's role.
    let connections: [(role: ListenerRole, count: Int)]
    /// When the edge's certificate ends, in seconds since 1970; nil when there is none.
    let certificateExpiry: Int64?
    /// The topics that the configuration names, which are shown by name.
    let topics: [String]

    package init(
        process: ProcessFigures,
        startedAt: Int64,
        connections: [(role: ListenerRole, count: Int)],
        certificateExpiry: Int64?,
        topics: [String]
    ) {
        self.process = process
        self.startedAt = startedAt
        self.connections = connections
        self.certificateExpiry = certificateExpiry
        self.topics = topics
    }
}

package import Engine
package import Platform
import Policy
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
        case .request(let request): request.work.isBrief
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
    package let work: EngineWork

    package init(reply: StreamAddress, caller: Caller, afterFailedStore: AfterFailedStore, _ work: EngineWork) {
        self.reply = reply
        self.caller = caller
        self.afterFailedStore = afterFailedStore
        self.work = work
    }

    /// Other work for the same caller, who goes on waiting.
    func going(on work: EngineWork) -> EngineRequest {
        EngineRequest(reply: self.reply, caller: self.caller, afterFailedStore: self.afterFailedStore, work)
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

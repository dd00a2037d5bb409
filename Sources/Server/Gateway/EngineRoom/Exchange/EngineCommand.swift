package import Engine
package import Platform
import Policy
package import Wire

/// A command from a loop to the engine, other than a push.
package enum EngineCommand: Sendable {
    /// A request of a caller who waits for the answer.
    case request(EngineRequest)
    /// A push was refused before it reached the engine.
    case rejected(reason: Int, topic: [UInt8])
    case streamEnded(StreamAddress)
    case streamPaused(StreamAddress, Bool)
    /// The number of wakes that a stream can receive at the same time has changed.
    case slotsChanged(StreamAddress, Int)
    /// A wake is lost although its stream continues. The attempt does not count if the worker never received the wake.
    case lost(StreamAddress, WakeID, takingBackAttempt: Bool)
    /// The status of a topic's webhook; nil if the topic no longer has one.
    case webhookChanged(topic: String, WebhookStatus?)
    /// Another configuration applies to the following commands.
    indirect case configure(EngineSettings)
    /// The first token was issued, so workers must authenticate.
    case requireWorkerAuthentication
    /// Nothing new may be launched from now on.
    case drain

    /// True if the command takes the engine at most as long as a push.
    var isBrief: Bool {
        switch self {
        case .request(let request): request.work.isBrief
        case .rejected: true
        default: false
        }
    }
}

/// A request to the engine, with its caller and the stream for its answer.
///
/// The type is a class, because it is large and passed on several times.
package final class EngineRequest: Sendable {
    package let reply: StreamAddress
    /// The caller, whose scope limits the request.
    package let caller: Caller
    package let afterFailedStore: AfterFailedStore
    package let work: EngineWork

    package init(reply: StreamAddress, caller: Caller, afterFailedStore: AfterFailedStore, _ work: EngineWork) {
        self.reply = reply
        self.caller = caller
        self.afterFailedStore = afterFailedStore
        self.work = work
    }

    /// Returns a copy with other work. The caller continues to wait for the answer.
    func going(on work: EngineWork) -> EngineRequest {
        EngineRequest(reply: self.reply, caller: self.caller, afterFailedStore: self.afterFailedStore, work)
    }
}

/// The handling of a request after the store has failed.
package enum AfterFailedStore: Hashable, Sendable {
    /// The request is refused, because it would change something.
    case refused
    /// The request is answered from the last durable state, if that can be read.
    case answeredFromDurableState
    /// The request is answered as usual. It does not depend on the stored state, or it reports the failure.
    case answered
}

/// The settings that the engine's thread applies after a reload.
package struct EngineSettings: Sendable {
    let engine: EngineConfiguration
    /// The maximum number of unanswered payload bytes on a worker's stream.
    let wakeBytesPerStreamMax: Int
    /// Called on the engine's thread when the settings are in effect, with the number of the launch policy.
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

/// The figures for metrics that the engine does not know.
package struct GatewayFigures: Sendable {
    let process: ProcessFigures
    /// The start of the gateway, in milliseconds since 1970.
    let startedAt: Int64
    /// The numbers of open connections by the listener's role.
    let connections: [(role: ListenerRole, count: Int)]
    /// The expiry of the edge's certificate, in seconds since 1970; nil if there is none.
    let certificateExpiry: Int64?
    /// The topics in the configuration. Metrics show their names.
    let topics: [String]

    package init(
        process: ProcessFigures = .read(),
        startedAt: Int64,
        connections: [(role: ListenerRole, count: Int)] = [],
        certificateExpiry: Int64? = nil,
        topics: [String] = []
    ) {
        self.process = process
        self.startedAt = startedAt
        self.connections = connections
        self.certificateExpiry = certificateExpiry
        self.topics = topics
    }
}

/// A report about finished transfers of a background session.
package struct FinishedTransfers: Hashable, Sendable {
    package let session: String
    /// The number of transfers, at least 1.
    package let count: UInt64
    /// The id of the report. Reports with the same id count once; nil if every report counts.
    package let id: String?

    package init(session: String, count: UInt64, id: String? = nil) {
        self.session = session
        self.count = count
        self.id = id
    }
}

package import Engine
import Platform
import Policy
import Synchronization
package import Wire

/// A request for an operation, with its authorized caller. Its byte views are valid only during the call.
package struct OperationCall {
    package let caller: Caller
    package let afterFailedStore: AfterFailedStore
    /// The address of the stream for the answer.
    package let reply: StreamAddress
    /// The value of the path's first parameter.
    package let parameter: ByteView
    /// The value of the path's second parameter; empty if there is none.
    package let secondParameter: ByteView
    package let query: ByteView
    package let body: ByteView
    /// The trace of a submission, in the form that `PushTrace` stores; empty if there is none.
    package let trace: ByteView
    package let services: GatewayServices

    package init(
        _ operation: Operation,
        by caller: Caller,
        reply: StreamAddress,
        parameter: ByteView,
        secondParameter: ByteView = ByteView(),
        query: ByteView,
        body: ByteView,
        trace: ByteView = ByteView(),
        services: GatewayServices
    ) {
        self.caller = caller
        self.afterFailedStore = operation.afterFailedStore
        self.reply = reply
        self.parameter = parameter
        self.secondParameter = secondParameter
        self.query = query
        self.body = body
        self.trace = trace
        self.services = services
    }

    /// Returns the device whose token is the first parameter.
    package func device() throws(APIError) -> Named<DeviceToken> {
        guard let token = DeviceToken(hex: self.parameter) else { throw .badDeviceToken }
        return Named(token)
    }

    /// Returns the topic in the first parameter.
    package func topic() throws(APIError) -> [UInt8] {
        guard Push.isTopic(self.parameter) else { throw .badTopic }
        return self.parameter.array
    }

    /// Returns the wake whose id is the first parameter.
    package func wake() throws(APIError) -> Named<WakeID> {
        guard let wake = WakeID(self.parameter) else { throw .unknownWake }
        return Named(wake)
    }

    /// Returns the task identifier in the second parameter.
    package func identifier() throws(APIError) -> String {
        guard let name = self.taskName else { throw .badTaskIdentifier }
        return name
    }

    /// Returns the session name in the second parameter.
    package func session() throws(APIError) -> String {
        guard let name = self.taskName else { throw .badSessionName }
        return name
    }

    private var taskName: String? {
        let name = self.secondParameter.string
        return IdentifierPattern.isIdentifier(name.utf8) ? name : nil
    }
}

/// The result of performing a request.
package enum OperationOutcome {
    /// The request is answered immediately.
    case answered(OperationAnswer)
    /// The request is passed to the engine on behalf of the caller; the engine answers.
    case asked(EngineWork)
    /// A subscription is requested from the engine; the worker's stream begins with the engine's answer.
    case subscribed(topic: [UInt8], SubscriptionRequest)
    /// A live stream of samples begins.
    case watching
    /// A stream of events begins.
    case following(EventFilter)
    /// The request was passed to another part of the gateway, which answers.
    case handedOn
}

/// An answer that does not involve the engine.
package struct OperationAnswer {
    package let status: Int
    package let type: StaticString
    /// The header fields other than `content-type`.
    package let fields: [(name: StaticString, value: StaticString)]
    /// The body; empty for an answer without content.
    package let body: [UInt8]

    package init(
        status: Int = 200,
        type: StaticString = "application/json",
        fields: [(name: StaticString, value: StaticString)] = [],
        _ body: [UInt8]
    ) {
        self.status = status
        self.type = type
        self.fields = fields
        self.body = body
    }
}

/// The services that operations use in addition to the engine.
package final class GatewayServices: Sendable {
    /// Starts a reload of the configuration. The stream receives an answer when the new configuration is in effect, or
    /// the error if it was refused. Throws if the gateway has no configuration to read again.
    package typealias Reload = @Sendable (StreamAddress) throws(APIError) -> Void

    package let backups: BackupService
    package let metrics: MetricsService
    /// The service for the live samples that operators watch.
    package let live: LiveService
    /// The service for the events that operators follow.
    package let events: EventService
    let reload: Reload
    /// The fault rules; nil unless this is `wakegate dev`.
    let faults: FaultService?
    /// The rules for operators' test pushes as of the last reload; nil if operators may send none.
    let testPushRules: Mutex<PushRules?>
    /// The names by which workers know their streams.
    let streamNames: StreamNames
    private let random = Mutex(RandomBits())

    package init(
        _ configuration: GatewayConfiguration,
        backups: BackupService,
        metrics: MetricsService,
        reload: @escaping Reload
    ) {
        self.backups = backups
        self.metrics = metrics
        self.live = LiveService(readersMax: configuration.limits.liveStreamsMax)
        self.events = EventService(
            readersMax: configuration.limits.eventStreamsMax,
            heldMax: configuration.limits.eventsHeldMax
        )
        self.reload = reload
        self.testPushRules = Mutex(configuration.testPushRules)
        var random = RandomBits()
        self.streamNames = StreamNames(key: HashKey(random.pair()))
        self.faults = configuration.faultRules.map { FaultService($0) }
    }

    /// Returns a random apns-id.
    func newAPNsID() -> APNsID { APNsID(random: self.random.withLock { $0.pair() }) }

    /// Returns a random device token.
    func newDeviceToken() -> DeviceToken {
        let bytes = self.random.withLock { $0.bytes(32) }
        guard let token = bytes.withByteView({ DeviceToken(bytes: $0) }) else {
            preconditionFailure("32 bytes are a token")
        }
        return token
    }
}

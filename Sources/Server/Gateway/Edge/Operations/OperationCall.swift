package import Engine
import Platform
import Policy
import Synchronization
package import Wire

/// One request of an operation, whose caller was admitted. Its views are valid during the call alone.
package struct OperationCall {
    package let caller: Caller
    package let afterFailedStore: AfterFailedStore
    /// What waits for the answer.
    package let reply: StreamAddress
    /// What stands at the place of the path's first parameter.
    package let parameter: ByteView
    /// What stands at that of the second; empty where there is none.
    package let secondParameter: ByteView
    package let query: ByteView
    package let body: ByteView
    /// What `PushTrace` keeps of the trace that a submission belongs to; empty where there is none.
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

    /// The device whose token is the parameter.
    package func device() throws(APIError) -> Named<DeviceToken> {
        guard let token = DeviceToken(hex: self.parameter) else { throw .badDeviceToken }
        return Named(token)
    }

    /// The topic that is the parameter.
    package func topic() throws(APIError) -> [UInt8] {
        guard Push.isTopic(self.parameter) else { throw .badTopic }
        return self.parameter.array
    }

    /// The wake whose id is the parameter.
    package func wake() throws(APIError) -> Named<WakeID> {
        guard let wake = WakeID(self.parameter) else { throw .unknownWake }
        return Named(wake)
    }

    /// The identifier of a task that is the second parameter.
    package func identifier() throws(APIError) -> String {
        guard let name = self.taskName else { throw .badTaskIdentifier }
        return name
    }

    /// The name of a session that is the second parameter.
    package func session() throws(APIError) -> String {
        guard let name = self.taskName else { throw .badSessionName }
        return name
    }

    private var taskName: String? {
        let name = self.secondParameter.string
        return IdentifierPattern.isIdentifier(name.utf8) ? name : nil
    }
}

/// What comes of a request.
package enum OperationOutcome {
    /// The request is answered at once.
    case answered(OperationAnswer)
    /// The engine is asked, in the name of the caller, and answers.
    case asked(EngineWork)
    /// The engine is asked for a worker's stream, which begins with its answer.
    case subscribed(topic: [UInt8], SubscriptionRequest)
    /// A stream of what the gateway does begins.
    case watching
    /// A stream of what happens begins.
    case following(EventFilter)
    /// Another part of the gateway was asked, and answers.
    case handedOn
}

/// An answer that the engine has no part in.
package struct OperationAnswer {
    package let status: Int
    package let type: StaticString
    /// Fields besides the type of the content.
    package let fields: [(name: StaticString, value: StaticString)]
    /// Empty for an answer without content.
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

/// What operations use of the gateway besides its engine.
package final class GatewayServices: Sendable {
    package let backups: BackupService
    package let metrics: MetricsDesk
    /// What those who watch are shown.
    package let live: LiveDesk
    /// Where those are who follow what happens.
    package let events: EventDesk
    let reloads: any Reloads
    /// The fault rules; nil where there are none, which is everywhere but in `wakegate dev`.
    let faults: FaultDesk?
    /// Whether operators may push, and which pushes are good.
    package let testPushes: TestPushRules
    /// What workers know their streams by.
    let streamNames: StreamNames
    private let random = Mutex(RandomBits())

    package init(
        _ configuration: GatewayConfiguration,
        backups: BackupService,
        metrics: MetricsDesk,
        reloads: any Reloads
    ) {
        self.backups = backups
        self.metrics = metrics
        self.live = LiveDesk(readersMax: configuration.limits.liveStreamsMax)
        self.events = EventDesk(
            readersMax: configuration.limits.eventStreamsMax,
            heldMax: configuration.limits.eventsHeldMax
        )
        self.reloads = reloads
        self.testPushes = TestPushRules(configuration)
        var random = RandomBits()
        self.streamNames = StreamNames(key: HashKey(random.pair()))
        self.faults = configuration.faultRules.map { FaultDesk($0) }
    }

    /// An apns-id that no push has.
    func newAPNsID() -> APNsID { APNsID(random: self.random.withLock { $0.pair() }) }

    /// A token that no device has.
    func newDeviceToken() -> DeviceToken {
        let bytes = self.random.withLock { $0.bytes(32) }
        guard let token = bytes.withByteView({ DeviceToken(bytes: $0) }) else {
            preconditionFailure("32 bytes are a token")
        }
        return token
    }
}

/// Whether operators may push, and which pushes are good, as of the last reload.
package final class TestPushRules: Sendable {
    private let current: Mutex<(isPermitted: Bool, rules: PushRules)>

    package init(_ configuration: GatewayConfiguration) {
        self.current = Mutex(Self.rules(configuration))
    }

    /// Another configuration is in force.
    package func set(_ configuration: GatewayConfiguration) {
        self.current.withLock { $0 = Self.rules(configuration) }
    }

    /// What is asked of a push; nil when operators may not push.
    var rules: PushRules? { self.current.withLock { $0.isPermitted ? $0.rules : nil } }

    private static func rules(_ configuration: GatewayConfiguration) -> (isPermitted: Bool, rules: PushRules) {
        (configuration.permitsTestPushes, configuration.pushRules)
    }
}

/// What has the configuration read again for an operator who asks for that over HTTP.
package protocol Reloads: Sendable {
    /// Begins to reload; the stream is answered once the new configuration is in force, or with why it is not.
    ///
    /// - Throws: when there is nothing to read again.
    func start(reply: StreamAddress) throws(APIError)
}

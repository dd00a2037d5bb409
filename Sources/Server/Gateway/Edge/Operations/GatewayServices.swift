package import Engine
import Platform
import Synchronization
package import Wire

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

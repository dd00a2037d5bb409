package import Engine
package import Policy
package import ServiceManager
package import Wire

/// Everything an operator can set, with the defaults of `wakegate serve`.
///
/// A value read by `ConfigurationLoader` is in range; what a combination of values forbids is found by
/// `faults(serving:)`.
package struct GatewayConfiguration: Sendable {
    /// Where providers and workers connect: HTTP/2 over TLS.
    package var edge = ListenSetting("[::]:2197")
    /// Where operators connect: cleartext.
    package var admin = ListenSetting("127.0.0.1:9197")
    /// The edge routes in cleartext, for test clients that cannot do TLS.
    package var plain = ListenSetting.off
    /// A start goes on with what is there of a journal that lacks what was committed last. No key: it is for one start.
    package var acceptsLoss = false
    /// The listening sockets that the service manager opened, by whose addresses listeners are named; see `adopt`.
    package internal(set) var inheritedSockets: [InheritedSocket] = []
    /// Whether cleartext listeners may stand on addresses other than loopback.
    package var isInsecure = false

    /// Whether workers and operators may be asked for bearer tokens; `wakegate dev` asks nobody.
    package var asksForTokens = true

    /// Whose machines may reach a gateway that asks nobody; none where only this one may, or all are asked.
    package var callerNetworks: [CallerNetwork] = []

    /// Whether workers may go unasked on a state whose workers were asked.
    package var mayWorkersGoUnasked = false

    /// The state folder, mode 0700.
    package var stateFolder = "/var/lib/wakegate"
    package var store = Store.sqlite
    /// How many connections a gateway on PostgreSQL commits over.
    package var databaseConnections = 8
    /// Whether a database on another machine may be one that has not proved who it is.
    package var isDatabaseInsecure = false
    package var registration = Registration.explicit
    /// Whether a background push of priority 10 is refused, as real APNs does.
    package var strictBackgroundPriority = false
    /// Whether operators may push on the listener of operators, to try out devices and workers.
    package var permitsTestPushes = false
    /// Which of the two APNs the gateway stands for; nil when it takes keys and certificates of both.
    package var environment: APNSEnvironment?
    /// Whether a connection may have one stream until somebody was admitted on it, as at real APNs.
    package var appleStreamLimit = false
    /// How long a shutdown waits for wakes in flight.
    package var drainTimeoutMilliseconds: Int64 = 10_000

    /// The longest time that the wall clock is believed to have passed between two boots.
    package var clockJumpMaxMilliseconds: Int64 = 365 * 86_400_000

    /// The PEM file of the server's certificate chain; nil when not set.
    package var certificateFile: String?
    /// The PEM file of the server's private key; nil when not set.
    package var privateKeyFile: String?
    /// The PEM file of the authorities that sign client certificates; nil when none are asked for.
    package var clientCAFile: String?
    /// The PEM file of what those authorities have revoked; nil when that is nothing.
    package var clientCRLFile: String?
    /// The folder of providers' public keys, one file a key; nil when not set.
    package var providerKeysFolder: String?

    /// The launch policy of every topic that has none of its own.
    package var policy = Parameters()
    /// The launch policy of topics that override it, complete: what a topic does not name is as in `policy`.
    package var topicPolicies: [String: Parameters] = [:]

    /// Which identifiers of background tasks the workers of each topic may submit.
    package var permittedTasks = PermittedTasks.none

    /// The webhooks, by topic.
    package var webhooks: [String: WebhookConfiguration] = [:]

    /// The fault rules to begin with; nil where none are taken. No key of a file sets them: `wakegate dev` alone does.
    package var faultRules: [FaultRule]?

    /// Every bound of the gateway.
    package var limits = GatewayLimits()

    package var logLevel = LogLevel.info
    package var logFormat = LogFormat.text

    package init() {}

    /// The launch policy of `topic`.
    package func policy(forTopic topic: String) -> Parameters {
        self.topicPolicies[topic] ?? self.policy
    }
}

extension GatewayConfiguration {
    /// Takes away what keeps somebody from trying things out on one machine.
    package mutating func openForDevelopment() {
        self.permittedTasks = .all
        self.limits.liftForDevelopment()
    }
}

extension GatewayConfiguration {
    /// Where devices and pushes are kept.
    package enum Store: Hashable, Sendable {
        /// A journal in the state folder.
        case sqlite
        /// Memory alone: nothing survives.
        case memory
        /// A database of PostgreSQL, which other gateways may share.
        case postgresql(DatabaseAddress)
    }

    /// How a device token becomes known.
    package enum Registration: String, CaseIterable, Sendable {
        /// Workers and operators register devices; pushes to other tokens are refused.
        case explicit
        /// The first push with a topic registers its token, too.
        case open
    }
}

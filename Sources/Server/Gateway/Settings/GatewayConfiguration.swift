package import Engine
package import HTTPTransport
import Platform
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

extension GatewayConfiguration {
    /// The database that devices and pushes are kept in; nil when they are kept elsewhere.
    package var database: DatabaseAddress? {
        switch self.store {
        case .sqlite, .memory: nil
        case .postgresql(let address): address
        }
    }

    /// What libpq connects with; nil when there is no database.
    package var databaseConnectionString: String? {
        self.database?.connectionString(isInsecure: self.isDatabaseInsecure)
    }

    /// A database on another machine has to prove who it is.
    package func databaseFaults() -> [ConfigurationFault] {
        guard let address = self.database, !address.isLocal, !self.isDatabaseInsecure,
            let mode = address["sslmode"], mode != "verify-full"
        else { return [] }
        let fault = ConfigurationFault(
            key: "store",
            problem: "leads to another machine, of which sslmode=\(mode) asks no proof of who it is",
            remedy: "write sslmode=verify-full, with sslrootcert=/FILE of the authority that signed the server's "
                + "certificate, or databaseInsecure: true if the network is your own"
        )
        return [fault]
    }
}

extension GatewayConfiguration {
    /// Has every listener for which there are sockets take those instead of its own addresses.
    ///
    /// - Throws: `ConfigurationError` that names each socket that is for no listener.
    package mutating func adopt(_ sockets: [InheritedSocket]) throws(ConfigurationError) {
        var faults: [ConfigurationFault] = []
        var addresses: [ListenerRole: [String]] = [:]
        for socket in sockets {
            if let role = ListenerRole.allCases.first(where: { "\($0)" == socket.name }) {
                addresses[role, default: []].append(socket.address)
            } else {
                let names = ListenerRole.allCases.map { "\($0)" }.joined(separator: ", ")
                faults.append(
                    ConfigurationFault(
                        key: "the socket \"\(socket.name)\"",
                        problem: "passed by the service manager for \(socket.address), is for no listener",
                        remedy: "set FileDescriptorName= in its unit to one of: \(names)"
                    )
                )
            }
        }
        guard faults.isEmpty else { throw ConfigurationError(faults: faults, rest: self) }
        for (role, found) in addresses {
            let setting = found.count == 1 ? ListenSetting(found[0]) : ListenSetting(found)
            switch role {
            case .edge: self.edge = setting
            case .admin: self.admin = setting
            case .plain: self.plain = setting
            }
        }
        self.inheritedSockets = sockets
    }
}

extension GatewayConfiguration {
    /// What of it concerns the engine.
    package var engine: EngineConfiguration {
        var engine = EngineConfiguration()
        engine.policy = self.policy
        engine.topicPolicies = self.topicPolicies
        engine.permittedTasks = self.permittedTasks
        engine.openRegistration = self.registration == .open
        engine.devicesMax = self.limits.devicesMax
        engine.devicesPerTopicMax = self.limits.devicesPerTopicMax
        engine.topicsMax = self.limits.topicsMax
        engine.streamsPerDeviceMax = self.limits.streamsPerDeviceMax
        engine.pendingBytesMax = self.pendingBytesMax
        engine.pendingBytesPerTopicMax = self.pendingBytesMax * self.limits.pendingTopicPercentMax / 100
        engine.taskRequestsMax = self.limits.taskRequestsMax
        engine.taskRequestsPerTopicMax = self.taskShare(of: engine.taskRequestsMax)
        engine.taskBytesMax = self.taskBytesMax
        engine.taskBytesPerTopicMax = self.taskShare(of: engine.taskBytesMax)
        engine.pushRate.pushesMax = self.limits.pushesPerDeviceMax
        engine.pushRate.seconds = self.limits.pushesPerDeviceSeconds
        return engine
    }

    /// The bytes of pushes that may wait or be in flight.
    private var pendingBytesMax: Int {
        self.limits.pendingBytesMax > 0 ? self.limits.pendingBytesMax : MachineMemory.bytes() / 2
    }

    /// The bytes of background tasks and sessions that may wait or run.
    private var taskBytesMax: Int {
        self.limits.taskBytesMax > 0 ? self.limits.taskBytesMax : MachineMemory.bytes() / 8
    }

    /// What one topic may have of `bound`; never nothing.
    private func taskShare(of bound: Int) -> Int { max(1, bound * self.limits.taskTopicPercentMax / 100) }
}

extension GatewayConfiguration {
    /// The files of the authorities that client certificates are signed by; nil when nobody is asked for one.
    package var clientTrustFiles: ClientTrustFiles? {
        self.clientCAFile.map { ClientTrustFiles(authorities: $0, revocations: self.clientCRLFile) }
    }

    /// What checks the tokens of workers and operators, which has read nothing yet.
    ///
    /// - Parameter onTrouble: hears, once, why tokens cannot be checked.
    package func tokenCheck(onTrouble: @escaping @Sendable (String) -> Void) -> TokenCheck {
        TokenCheck(
            folder: self.stateFolder,
            asksAnybody: self.asksForTokens,
            asksForCertificates: self.clientCAFile != nil,
            isReachable: !(self.edge.addresses + self.plain.addresses).allSatisfy { ListenSetting.isLocal($0) },
            mayWorkersGoUnasked: self.mayWorkersGoUnasked,
            onTrouble: onTrouble
        )
    }
}

extension GatewayConfiguration {
    /// The operator's choices about the checks of pushes.
    package var pushRules: PushRules {
        // `wakegate dev` alone takes fault rules.
        PushRules(
            strictBackgroundPriority: self.strictBackgroundPriority,
            isForDevelopment: self.faultRules != nil
        )
    }
}

/// What each loop goes on with after a reload, and begins with.
///
/// A class, so that a mailbox without one hands over no more than nothing.
package final class LoopSettings: Sendable {
    package let rules: PushRules
    package let transport: TransportLimits
    package let requestsAtEngineMax: Int

    package init(_ configuration: GatewayConfiguration) {
        self.rules = configuration.pushRules
        self.transport = configuration.limits.transport
        self.requestsAtEngineMax = configuration.limits.requestsAtEngineMax
    }
}

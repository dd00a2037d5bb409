package import Engine
package import HTTPTransport
import Platform
package import Policy
package import ServiceManager
package import Wire

/// All settings of an operator, with the defaults of `wakegate serve`.
///
/// `ConfigurationLoader` sets only values within their ranges. `faults()` finds invalid combinations.
package struct GatewayConfiguration: Sendable {
    /// The listener for providers and workers: HTTP/2 over TLS.
    package var edge = ListenSetting("[::]:2197")
    /// The listener for operators: cleartext.
    package var admin = ListenSetting("127.0.0.1:9197")
    /// A listener with the routes of the edge in cleartext, for test clients without TLS.
    package var plain = ListenSetting.off
    /// True if the start accepts a journal that lacks its last commits. This applies to one start, so a configuration
    /// cannot set it.
    package var acceptsJournalLoss = false
    /// The listening sockets received from the service manager. `adopt` sets them and the listener addresses.
    package internal(set) var inheritedSockets: [InheritedSocket] = []
    /// True if cleartext listeners may use addresses other than loopback.
    package var allowsRemoteCleartext = false

    /// True if the gateway checks bearer tokens of workers and operators; false in `wakegate dev`.
    package var checksTokens = true

    /// The networks from which clients may connect without authentication; empty for this machine only. Ignored if the
    /// gateway requires authentication.
    package var callerNetworks: [CallerNetwork] = []

    /// True if workers may connect without authentication although an earlier start required it.
    package var allowsUnauthenticatedWorkers = false

    /// The state folder, with mode 0700.
    package var stateFolder = "/var/lib/wakegate"
    package var store = Store.sqlite
    /// The number of connections on which a gateway commits to PostgreSQL.
    package var databaseConnections = 8
    /// True if the identity of a database on another machine need not be verified.
    package var allowsUnverifiedDatabase = false
    package var registration = Registration.explicit
    /// True if background pushes of priority 10 are refused, as Apple's APNs does.
    package var strictBackgroundPriority = false
    /// True if operators may send test pushes on the admin listener.
    package var permitsTestPushes = false
    /// The APNs environment of the gateway; nil if it accepts the keys and certificates of both environments.
    package var environment: APNSEnvironment?
    /// True if a connection is limited to one stream until its client has been authenticated, as in Apple's APNs.
    package var appleStreamLimit = false
    /// The maximum time that a shutdown waits for wakes in flight, in milliseconds.
    package var drainTimeoutMilliseconds: Int64 = 10_000

    /// The maximum time between two starts of the machine that is plausible by the wall clock, in milliseconds.
    package var clockJumpMaxMilliseconds: Int64 = 365 * 86_400_000

    /// The PEM file of the server's certificate chain; nil if not set.
    package var certificateFile: String?
    /// The PEM file of the server's private key; nil if not set.
    package var privateKeyFile: String?
    /// The PEM file of the authorities of client certificates; nil if none are requested.
    package var clientCAFile: String?
    /// The PEM file of the revocation lists of these authorities; nil if there are none.
    package var clientCRLFile: String?
    /// The folder of providers' public keys, with one file per key; nil if not set.
    package var providerKeysFolder: String?

    /// The launch policy of all topics without their own policy.
    package var policy = Parameters()
    /// The complete launch policies of topics that override some parameters of `policy`.
    package var topicPolicies: [String: Parameters] = [:]

    /// The identifiers of background tasks that the workers of each topic may submit.
    package var permittedTasks = PermittedTasks.none

    /// The webhooks, by topic.
    package var webhooks: [String: WebhookConfiguration] = [:]

    /// The initial fault rules; nil if none are accepted. Only `wakegate dev` sets them; a configuration cannot.
    package var faultRules: [FaultRule]?

    /// Every limit of the gateway.
    package var limits = GatewayLimits()

    package var logLevel = LogLevel.info
    package var logFormat = LogFormat.text

    package init() {}

    /// Returns the launch policy of `topic`.
    package func policy(forTopic topic: String) -> Parameters {
        self.topicPolicies[topic] ?? self.policy
    }
}

extension GatewayConfiguration {
    /// Replaces all paths of files and folders.
    package mutating func mapPaths(_ map: (String) -> String) {
        self.stateFolder = map(self.stateFolder)
        let files: [WritableKeyPath<Self, String?>] = [
            \.certificateFile, \.privateKeyFile, \.clientCAFile, \.clientCRLFile, \.providerKeysFolder,
        ]
        for file in files { self[keyPath: file] = self[keyPath: file].map(map) }
        let webhookFiles: [WritableKeyPath<WebhookConfiguration, String?>] = [
            \.certificateFile, \.privateKeyFile, \.certificateAuthorityFile, \.secretFile,
        ]
        self.webhooks = self.webhooks.mapValues { webhook in
            var webhook = webhook
            for file in webhookFiles { webhook[keyPath: file] = webhook[keyPath: file].map(map) }
            return webhook
        }
    }

    /// Removes the restrictions that would hinder development on one machine.
    package mutating func openForDevelopment() {
        self.permittedTasks = .all
        self.limits.liftForDevelopment()
    }
}

extension GatewayConfiguration {
    /// The store of devices and pushes.
    package enum Store: Hashable, Sendable {
        /// A journal in the state folder.
        case sqlite
        /// Memory, which a restart clears.
        case memory
        /// A PostgreSQL database, which other gateways may share.
        case postgresql(PostgresAddress)
    }

    /// The ways in which a device token becomes known.
    package enum Registration: String, CaseIterable, Sendable {
        /// Workers and operators register devices; pushes to unknown tokens are refused.
        case explicit
        /// The first push to a token also registers it.
        case open
    }
}

extension GatewayConfiguration {
    /// The database with devices and pushes, with defaults for its connections; nil if they are stored elsewhere.
    package var database: PostgresAddress? {
        guard case .postgresql(let address) = self.store else { return nil }
        return address.completed(allowsUnverifiedServers: self.allowsUnverifiedDatabase)
    }

    /// Returns the fault of a database on another machine whose identity is not verified.
    package func databaseFaults() -> [ConfigurationFault] {
        guard let address = self.database, !address.isLocal, !self.allowsUnverifiedDatabase,
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
    /// Replaces the addresses of all listeners that have sockets from the service manager.
    ///
    /// - Throws: `ConfigurationError` with each socket that has no listener.
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
        guard faults.isEmpty else { throw ConfigurationError(faults: faults, readable: self) }
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
    /// The settings of the engine.
    package var engine: EngineConfiguration {
        var engine = self.limits.engine
        engine.policy = self.policy
        engine.topicPolicies = self.topicPolicies
        engine.permittedTasks = self.permittedTasks
        engine.openRegistration = self.registration == .open
        engine.pendingBytesMax = self.pendingBytesMax
        engine.pendingBytesPerTopicMax = self.pendingBytesMax * self.limits.pendingTopicPercentMax / 100
        engine.taskRequestsPerTopicMax = self.taskShare(of: engine.taskRequestsMax)
        engine.taskBytesMax = self.taskBytesMax
        engine.taskBytesPerTopicMax = self.taskShare(of: engine.taskBytesMax)
        return engine
    }

    /// The maximum size of pending and in-flight pushes, in bytes.
    private var pendingBytesMax: Int {
        self.limits.pendingBytesMax > 0 ? self.limits.pendingBytesMax : MachineMemory.bytes() / 2
    }

    /// The maximum size of pending and running background tasks and sessions, in bytes.
    private var taskBytesMax: Int {
        self.limits.taskBytesMax > 0 ? self.limits.taskBytesMax : MachineMemory.bytes() / 8
    }

    /// Returns the part of a limit that one topic may use; at least 1.
    private func taskShare(of bound: Int) -> Int { max(1, bound * self.limits.taskTopicPercentMax / 100) }
}

extension GatewayConfiguration {
    /// The files for verifying client certificates; nil if none are requested.
    package var clientTrustFiles: ClientTrustFiles? {
        self.clientCAFile.map { ClientTrustFiles(authorities: $0, revocations: self.clientCRLFile) }
    }

    /// Creates the check of workers' and operators' tokens. Reads no file yet.
    ///
    /// - Parameter onFailure: receives the reason once if tokens cannot be checked.
    package func tokenCheck(onFailure: @escaping @Sendable (String) -> Void) -> TokenCheck {
        TokenCheck(
            folder: self.stateFolder,
            requiresTokens: self.checksTokens,
            acceptsCertificates: self.clientCAFile != nil,
            isReachable: !(self.edge.addresses + self.plain.addresses).allSatisfy { ListenSetting.isLocal($0) },
            allowsUnauthenticatedWorkers: self.allowsUnauthenticatedWorkers,
            onFailure: onFailure
        )
    }
}

extension GatewayConfiguration {
    /// The operator's settings for the checks of pushes.
    package var pushRules: PushRules {
        // Only `wakegate dev` accepts fault rules.
        PushRules(
            strictBackgroundPriority: self.strictBackgroundPriority,
            isForDevelopment: self.faultRules != nil
        )
    }

    /// The rules for operators' test pushes; nil if operators may send none.
    var testPushRules: PushRules? { self.permitsTestPushes ? self.pushRules : nil }
}

/// The settings of each loop, set at the start and after a reload.
///
/// The type is a class: without new settings, a mailbox passes only a nil reference.
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

package import HTTPTransport
package import Platform
package import ServiceManager
import Synchronization
import Wire

/// The objects that the handlers of all loops share, the shutdown flag, and the number of open connections.
package final class SharedParts: Sendable {
    /// The roles of the listeners, by listener number.
    let roles: [ListenerRole]
    /// True for each listener that only this machine can reach, by listener number.
    let areLocal: [Bool]
    /// The initial token check of each loop.
    let tokens: TokenCheck
    /// The initial settings of each loop. A reload replaces them in the loop.
    let settings: LoopSettings
    /// The configuration at the start. If a reload may change a setting, the setting is read only from `settings`.
    let configuration: GatewayConfiguration
    package let engine: Mailbox<CommandBatch>
    /// The mailboxes for the engine's effects on the loops and the webhooks.
    package let mailboxes: PerOutput<LoopMailbox>
    /// The services that operations use in addition to the engine.
    package let services: GatewayServices
    /// The heartbeats of the loops, by loop number. `enginePulse` is the heartbeat of the engine thread.
    package let loopPulses: [Pulse]
    package let enginePulse = Pulse()
    /// The counter of reached limits.
    package let tally = LimitTally<GatewayCountedLimit>()
    /// The number of connections of each credential, over all loops.
    package let credentials: ConnectionCounts<Credential>
    /// The number of workers' streams of each credential, over all loops.
    package let workerStreams: ConnectionCounts<StreamHolder>
    /// The number of rate-limited requests of each credential, over all loops.
    package let rates: CredentialRates
    /// The keys that verify providers' tokens; nil if providers need no token.
    package let providerKeys: ProviderKeys?
    /// The trust in client certificates; nil if no certificates are requested.
    package let clientTrusts: ClientTrusts?
    package let log: GatewayLog
    private let draining = Atomic(false)
    /// The number of open connections on all loops, updated at the end of each loop's turn.
    private let connections = Atomic(0)
    private let onIdle: @Sendable () -> Void

    /// - `onIdle`: called during a shutdown when the last connection has ended. It may be called more than once.
    package init(
        configuration: GatewayConfiguration,
        roles: [ListenerRole],
        areLocal: [Bool],
        tokens: TokenCheck,
        loopCount: Int,
        providerKeys: ProviderKeys?,
        clientTrusts: ClientTrusts?,
        reload: @escaping GatewayServices.Reload,
        log: GatewayLog,
        onIdle: @escaping @Sendable () -> Void
    ) {
        self.onIdle = onIdle
        self.roles = roles
        self.areLocal = areLocal
        self.tokens = tokens
        self.settings = LoopSettings(configuration)
        self.configuration = configuration
        self.credentials = ConnectionCounts(connectionsMax: configuration.limits.connectionsPerCredentialMax)
        self.workerStreams = ConnectionCounts(connectionsMax: configuration.limits.streamsPerCredentialMax)
        self.rates = CredentialRates(configuration.limits)
        // If certificates are requested, a client without a certificate needs a token, even if no key can verify one.
        self.providerKeys = providerKeys ?? clientTrusts.map { _ in ProviderKeys([:]) }
        self.clientTrusts = clientTrusts
        self.log = log
        self.engine = Mailbox<CommandBatch>()
        self.mailboxes = PerOutput(loops: (0..<loopCount).map { _ in LoopMailbox() }, webhooks: LoopMailbox())
        self.loopPulses = (0..<loopCount).map { _ in Pulse() }
        self.services = GatewayServices(
            configuration,
            backups: BackupService(store: GatewayStore(configuration), mailboxes: self.mailboxes),
            metrics: MetricsService(engine: self.engine),
            reload: reload
        )
    }

    /// True if the gateway is shutting down.
    package var isDraining: Bool { self.draining.load(ordering: .acquiring) }

    /// The number of open connections, updated at the end of each loop's turn.
    var connectionCount: Int { self.connections.load(ordering: .relaxed) }

    /// Adds the change of a loop's connection count. During the shutdown, each loop calls this in every turn, even for
    /// a change of 0.
    package func connectionsChanged(by change: Int) {
        let count = self.connections.add(change, ordering: .acquiringAndReleasing).newValue
        if count == 0, self.isDraining { self.onIdle() }
    }

    /// Starts the shutdown. The engine launches nothing new. After its last wakes, the engine notifies the loops, which
    /// then end their connections.
    package func drain() {
        self.draining.store(true, ordering: .releasing)
        var batch = CommandBatch()
        batch.append(.drain)
        self.engine.submit(&batch)
    }
}

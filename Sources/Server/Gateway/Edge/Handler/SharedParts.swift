package import HTTPTransport
package import Platform
package import ServiceManager
import Synchronization
import Wire

/// The parts of the gateway that every loop's handler shares. Of itself it changes two things: whether the gateway is
/// shutting down, and how many connections are open.
package final class SharedParts: Sendable {
    /// By listener number.
    let roles: [ListenerRole]
    /// By listener number: whether only this machine reaches it.
    let areLocal: [Bool]
    /// What each loop begins with.
    let tokens: TokenCheck
    /// What each loop begins with, until a reload gives it others.
    let settings: LoopSettings
    /// What the gateway was started with. What a reload may change is asked of `settings` alone.
    let configuration: GatewayConfiguration
    package let engine: Mailbox<CommandBatch>
    /// Where the engine leaves what it has for the loops and the webhooks.
    package let mailboxes: PerOutlet<LoopMailbox>
    /// What operations use besides the engine.
    package let services: GatewayServices
    /// Which of the threads turn: the loops, by number, and the engine.
    package let loopPulses: [Pulse]
    package let enginePulse = Pulse()
    /// How often bounds were met that no other part counts.
    package let tally = LimitTally<GatewayCountedLimit>()
    /// The connections of each credential, of all loops together.
    package let credentials: ConnectionCounts<Credential>
    /// The workers' streams of each credential, of all loops together.
    package let workerStreams: ConnectionCounts<StreamHolder>
    /// How often each credential asks for what has a bound a minute, on all loops together.
    package let rates: CredentialRates
    /// What providers' tokens are verified with; nil when nobody asks for them.
    package let providerKeys: ProviderKeys?
    /// Whose client certificates are trusted; nil when nobody asks for them.
    package let clientTrusts: ClientTrusts?
    package let log: GatewayLog
    private let draining = Atomic(false)
    /// Connections open on all loops, as of their last turns.
    private let connections = Atomic(0)
    private let onIdle: @Sendable () -> Void

    /// - `onIdle`: called during a shutdown when the last connection has ended; more than once, perhaps.
    package init(
        configuration: GatewayConfiguration,
        roles: [ListenerRole],
        areLocal: [Bool],
        tokens: TokenCheck,
        loopCount: Int,
        providerKeys: ProviderKeys?,
        clientTrusts: ClientTrusts?,
        reloads: any Reloads,
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
        // Whoever shows no certificate where they are asked for needs a token, although there may be no key for any.
        self.providerKeys = providerKeys ?? clientTrusts.map { _ in ProviderKeys() }
        self.clientTrusts = clientTrusts
        self.log = log
        self.engine = Mailbox<CommandBatch>()
        self.mailboxes = PerOutlet(loops: (0..<loopCount).map { _ in LoopMailbox() }, webhooks: LoopMailbox())
        self.loopPulses = (0..<loopCount).map { _ in Pulse() }
        self.services = GatewayServices(
            configuration,
            backups: BackupService(store: GatewayStore(configuration), mailboxes: self.mailboxes),
            metrics: MetricsDesk(engine: self.engine),
            reloads: reloads
        )
    }

    /// The gateway is shutting down.
    package var isDraining: Bool { self.draining.load(ordering: .acquiring) }

    /// How many connections are open, as of the loops' last turns.
    var connectionCount: Int { self.connections.load(ordering: .relaxed) }

    /// A loop's count of connections has changed, or a loop has taken note of the shutdown.
    package func connectionsChanged(by change: Int) {
        let count = self.connections.add(change, ordering: .acquiringAndReleasing).newValue
        if count == 0, self.isDraining { self.onIdle() }
    }

    /// Starts the shutdown: nothing new is launched. The loops hear of it from the engine, behind the last wakes it
    /// launched, and then say goodbye to their connections.
    package func drain() {
        self.draining.store(true, ordering: .releasing)
        var batch = CommandBatch()
        batch.append(.drain)
        self.engine.submit(&batch)
    }
}

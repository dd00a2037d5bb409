package import Engine
import HTTPClient
import HTTPTransport
import Platform
package import ServiceManager
import Storage
import Synchronization
import Wire

/// A gateway: listeners, loops, and the engine.
package final class Gateway: Sendable {
    /// The addresses of the listeners, with the actual ports.
    package let addresses: BoundAddresses
    private let server: HTTPServer
    private let engine: EngineThread
    private let history: any HistoryService
    private let shared: SharedParts
    private let reloads: ReloadService
    private let webhooks: WebhookService
    /// The webhooks at the start.
    private let hooks: [Webhook]
    /// Passes events to a function in this process; nil if no function was set.
    private let follower = Mutex<EventFollower?>(nil)

    /// Binds every address and reads the stored state. Connections are accepted after `start`.
    ///
    /// - `database`: the database of the configuration; nil if it has none.
    /// - `source`: reads the configuration again for a reload; nil if that is impossible.
    /// - `log`: receives messages for operators.
    /// - `status`: receives the status of the gateway.
    /// - `onStoreFailed`: called once, when nothing can be stored any more.
    /// - `onIdle`: called from a loop during a shutdown, when the last connection has ended.
    /// - Throws: `TransportError` with the address, certificate or key at fault; `StoreError` or `CredentialError` with
    ///   the file; `ConfigurationError` with the key. `HTTPClientError` means that libcurl cannot be set up for
    ///   webhooks.
    package init(
        _ configuration: GatewayConfiguration,
        database: (any GatewayDatabase)? = nil,
        source: ConfigurationSource? = nil,
        log: GatewayLog,
        status: ServiceStatus = ServiceStatus(),
        onStoreFailed: @escaping @Sendable () -> Void = {},
        onIdle: @escaping @Sendable () -> Void
    ) throws {
        let certificate = try ServerCertificate(configuration)
        let (listeners, roles, areLocal) = try Self.listeners(configuration, certificate)
        let tokens = try Self.tokens(configuration, log)
        let loopCount = HTTPServer.processorCount
        let watches = try CredentialWatches(configuration, log: log)
        let reloads = ReloadService(configuration, source: source, log: log, onStage: { status.reloaded($0) })
        let shared = SharedParts(
            configuration: configuration,
            roles: roles,
            areLocal: areLocal,
            tokens: tokens,
            loopCount: loopCount,
            providerKeys: watches.providerKeys?.keys,
            clientTrusts: watches.clientTrust?.trusts,
            reload: { reply throws(APIError) in try reloads.start(reply: reply) },
            log: log,
            onIdle: onIdle
        )
        self.reloads = reloads
        self.shared = shared
        let server = try HTTPServer(listeners: listeners, limits: configuration.limits.transport, loopCount: loopCount)
        {
            LoopHandler(loop: $0, shared: shared)
        }
        // Loops and handlers refer to each other, so the server is not released if an error is thrown below. Remove at
        // least its socket files.
        var isReady = false
        defer { if !isReady { server.removeSocketFiles() } }
        self.server = server
        self.addresses = Self.addresses(configuration, self.server.boundAddresses)
        shared.services.live.attach(edge: self.addresses.edge.addresses.first)
        shared.services.metrics.attach(Self.metricSources(reloads, roles, self.server))
        // During a shutdown, the webhooks count as one connection until none has a wake in flight.
        self.webhooks = WebhookService(
            mailbox: shared.mailboxes.webhooks,
            engine: shared.engine,
            log: log,
            onBegun: { shared.connectionsChanged(by: 1) },
            onDrained: { shared.connectionsChanged(by: -1) }
        )
        self.hooks = try WebhookService.webhooks(configuration)
        try self.webhooks.prepare(self.hooks)
        let store = GatewayStore(configuration)
        let (history, make) = try Self.engine(
            configuration,
            database,
            shared,
            store,
            workers: tokens.workerAuthentication,
            tallies: server.tallies,
            status,
            name: MemberName.name(of: self.addresses),
            onStoreFailed
        )
        self.history = history
        self.engine = try EngineThread(mailbox: shared.engine, pulse: shared.enginePulse, make: make)
        self.attachReloads(certificate, watches)
        shared.services.backups.removeLeftovers()
        isReady = true
    }

    /// Logs the committed data that the start is about to give up. Waits until the line is written, because the process
    /// could end soon.
    package static func tell(_ loss: StoreLoss, _ log: GatewayLog) {
        log.write(.journalLossAccepted, ["file": loss.file, "cause": loss.summary])
        log.flush()
    }

    private static func tokens(
        _ configuration: GatewayConfiguration,
        _ log: GatewayLog
    ) throws(CredentialError) -> TokenCheck {
        var tokens = configuration.tokenCheck { log.write(.tokensUnreadable, ["cause": $0]) }
        try tokens.refresh()
        // The start records the initial key. Loops report a key that appears later.
        _ = tokens.takeFirstKey()
        return tokens
    }

    private static func history(
        _ store: GatewayStore,
        _ key: HashKey,
        _ shared: SharedParts,
        prepare: @escaping @Sendable () throws(StoreError) -> Void
    ) throws(ThreadFailure) -> HistoryThread {
        let log = shared.log
        return try HistoryThread(
            mailboxes: shared.mailboxes,
            tally: shared.tally,
            journal: store.journalEvents,
            onDropped: { log.write(.historyEventsDropped, ["events": "\($0)"]) },
            onFault: { log.write(.history, ["trouble": "the history is not whole: \($0)"]) },
            prepare: prepare,
            makeFile: { store.openHistory(key: key) { log.write(.history, ["trouble": $0.message]) } }
        )
    }

    /// Returns the history and a function that creates the engine on its thread. The store is a journal or a shared
    /// database.
    private static func engine(
        _ configuration: GatewayConfiguration,
        _ database: (any GatewayDatabase)?,
        _ shared: SharedParts,
        _ store: GatewayStore,
        workers: WorkerAuthentication,
        tallies: [LimitTally<TransportLimit>],
        _ status: ServiceStatus,
        name: String,
        _ onStoreFailed: @escaping @Sendable () -> Void
    ) throws -> (history: any HistoryService, make: @Sendable () throws(StoreError) -> any GatewayEngine) {
        precondition((configuration.database == nil) == (database == nil), "the caller opens a configured database")
        if let database {
            let makeSource = database.history(store.historyLimits)
            let engine = DatabaseEngine(
                database: database,
                configuration: configuration,
                shared: shared,
                workers: workers,
                history: try DatabaseHistory(mailboxes: shared.mailboxes, makeSource: makeSource),
                tallies: tallies,
                status: status,
                name: name
            )
            return (engine.history, { () throws(StoreError) in try engine.make() })
        }
        let historyKey = try store.historyKey()
        let history = try Self.history(store, historyKey.key, shared, prepare: historyKey.save)
        let make = { @Sendable () throws(StoreError) in
            let log = shared.log
            return try LocalEngine(
                configuration: configuration.engine,
                historyKey: historyKey.key,
                workers: workers,
                jumpWatch: ClockJumpWatch(configuration, log),
                wakeBytesPerStreamMax: configuration.limits.wakeBytesPerStreamMax,
                store: try store.openJournal(history.retention, log),
                output: GroupOutput(mailboxes: shared.mailboxes, history: history, events: shared.services.events),
                limits: LimitCounts(loops: tallies, gateway: shared.tally, log: log),
                live: shared.services.live,
                pulse: shared.enginePulse,
                signal: {
                    var nothing = CommandBatch()
                    shared.engine.perform(&nothing)
                },
                onLossAccepted: { Self.tell($0, log) },
                onFailure: { error in
                    log.write(.storeFailed, ["cause": error.message])
                    status.storeFailed(error.message)
                    onStoreFailed()
                }
            ) as any GatewayEngine
        }
        return (history, make)
    }

    private func attachReloads(_ certificate: ServerCertificate?, _ watches: CredentialWatches) {
        let target = ReloadService.Target(
            server: self.server,
            history: self.history,
            webhooks: self.webhooks,
            certificate: certificate,
            watches: watches
        )
        self.reloads.attach(target, self.shared)
    }

    /// Starts to accept connections.
    package func start() throws {
        try self.server.start()
        self.webhooks.begin(self.hooks)
    }

    /// Passes all further events to a function, on a separate queue. Call it once.
    package func follow(_ tell: @escaping EventFollower.Tell) {
        let follower = EventFollower(self.shared.services.events, tell)
        self.follower.withLock { $0 = follower }
    }

    /// The threads that requests depend on: the loops and the engine.
    var watched: [Watchdog.Watched] {
        let loops = zip(self.shared.loopPulses, self.server.loops).map { pulse, loop in
            Watchdog.Watched(pulse) { loop.wake() }
        }
        return loops + [Watchdog.Watched(self.shared.enginePulse) { [engine = self.shared.engine] in engine.signal() }]
    }

    /// Reads the configuration again and applies it. The result is logged.
    package func reload() {
        self.reloads.start()
    }

    /// The maximum time that a shutdown waits for wakes in flight, in milliseconds, according to the last reload.
    package var drainTimeoutMilliseconds: Int64 { self.reloads.drainTimeoutMilliseconds }

    /// True once a shutdown has begun.
    package var isDraining: Bool { self.shared.isDraining }

    /// Begins a shutdown. Nothing new is launched, and results are still accepted. A connection ends when it has no
    /// wake in flight.
    package func drain() {
        self.shared.drain()
    }

    /// Ends every connection and every thread.
    ///
    /// The engine stops first. Otherwise it would count the end of streams as failures of workers. The next start
    /// records wakes in flight as lost, and does not count their attempts.
    package func stop() {
        self.reloads.stop()
        self.engine.stop()
        self.server.stop()
        self.webhooks.stop()
        self.history.stop()
        self.follower.withLock { $0 }?.stop()
    }

    private static func metricSources(
        _ reloads: ReloadService,
        _ roles: [ListenerRole],
        _ server: HTTPServer
    ) -> MetricsService.Sources {
        { startedAt in
            GatewayFigures(
                startedAt: startedAt,
                connections: zip(roles, server.connectionCounts).reduce(into: []) { counts, listener in
                    if let place = counts.firstIndex(where: { $0.role == listener.0 }) {
                        counts[place].count += listener.1
                    } else {
                        counts.append((role: listener.0, count: listener.1))
                    }
                },
                certificateExpiry: server.certificateExpiry,
                topics: reloads.topics
            )
        }
    }

    /// The number of operators' connections that are accepted in addition to `connectionsMax`. Operators can then
    /// examine an overloaded gateway.
    private static let operatorsReserve = 16

    private static func listeners(
        _ configuration: GatewayConfiguration,
        _ certificate: ServerCertificate?
    ) throws -> ([Listener], [ListenerRole], [Bool]) {
        var listeners: [Listener] = []
        var areLocal: [Bool] = []
        var roles: [ListenerRole] = []
        for (setting, role) in Self.settings(configuration) where !setting.isOff {
            for address in setting.addresses {
                let listener = Listener(
                    address: try ListenAddress.parse(address),
                    tls: role == .edge ? certificate?.context : nil,
                    streamsAtFirst: configuration.appleStreamLimit && role != .admin ? 1 : nil,
                    connectionsReserved: role == .admin ? Self.operatorsReserve : 0,
                    descriptor: configuration.inheritedSockets.first { $0.address == address }?.descriptor
                )
                listeners.append(listener)
                roles.append(role)
                areLocal.append(ListenSetting.isLocal(address) || !configuration.callerNetworks.isEmpty)
            }
        }
        return (listeners, roles, areLocal)
    }

    private static func settings(_ configuration: GatewayConfiguration) -> [(ListenSetting, ListenerRole)] {
        [(configuration.edge, .edge), (configuration.admin, .admin), (configuration.plain, .plain)]
    }

    /// Assigns the bound addresses to the settings, in the order in which they were bound.
    private static func addresses(_ configuration: GatewayConfiguration, _ bound: [String]) -> BoundAddresses {
        var rest = bound[...]
        let shares = Self.settings(configuration).map { setting, _ in
            let share = Array(rest.prefix(setting.addresses.count))
            rest = rest.dropFirst(share.count)
            return setting.isList || share.isEmpty ? ListenSetting(share) : ListenSetting(share[0])
        }
        return BoundAddresses(edge: shares[0], admin: shares[1], plain: shares[2])
    }
}

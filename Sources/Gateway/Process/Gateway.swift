import APNSProtocol
import DeviceEngine
import Foundation
import HTTPTransport
import ServiceManager

/// A gateway: listeners, loops, and the engine behind them.
package final class Gateway: Sendable {
    /// Where it accepts, with the ports it really got.
    package let addresses: BoundAddresses
    private let server: HTTPServer
    private let engine: EngineThread
    private let history: HistoryThread
    private let context: GatewayContext
    private let providerKeys: ProviderKeyWatch?
    /// Nil when no topic has a webhook.
    private let webhooks: WebhookThread?
    private let clientTrust: ClientTrustWatch?

    /// Binds every address and reads what was kept; connections wait until `start`.
    ///
    /// - Parameters:
    ///   - log: hears of a store or a history that fails.
    ///   - onIdle: called from a loop, during a shutdown, when the last connection has ended.
    /// - Throws: `TransportError` that names the address, certificate or key at fault; `StoreError` and
    ///   `CredentialError` that name the file; `ProviderKeyError` that names the folder; `HTTPClientError` when
    ///   webhooks are configured and libcurl cannot be set up.
    init(
        _ configuration: GatewayConfiguration,
        log: GatewayLog,
        onIdle: @escaping @Sendable () -> Void
    ) throws {
        let (listeners, roles, areLocal) = try Self.listeners(configuration)
        var tokens = TokenCheck(configuration) { log.error("tokensUnreadable", ["cause": $0]) }
        try tokens.refresh()
        let loopCount = ProcessInfo.processInfo.activeProcessorCount
        self.providerKeys = try configuration.providerKeysFolder.map { folder in
            try ProviderKeyWatch(folder) { log.warning("providerKeys", ["cause": $0.message]) }
        }
        self.clientTrust = try ClientTrustFiles(configuration).map { files in
            try ClientTrustWatch(files) { log.warning("clientTrust", ["cause": $0]) }
        }
        let context = GatewayContext(
            configuration: configuration,
            roles: roles,
            areLocal: areLocal,
            tokens: tokens,
            loopCount: loopCount,
            providerKeys: self.providerKeys?.keys,
            clientTrusts: self.clientTrust?.trusts,
            onCertificateFault: { fault in
                let fields = ["reason": fault.reason.rawValue, "cause": fault.cause, "subject": fault.subject]
                log.warning("clientCertificate", fields)
            },
            onIdle: onIdle
        )
        self.context = context
        self.server = try HTTPServer(
            listeners: listeners,
            limits: configuration.limits.transport,
            loopCount: loopCount
        ) { loop in
            LoopHandler(loop: loop, context: context)
        }
        self.addresses = Self.addresses(configuration, self.server.boundAddresses)
        context.metrics.attach(Self.metricSources(configuration, listeners, roles, self.server))
        self.webhooks = try Self.webhooks(configuration, context, loop: loopCount, log)
        let store = GatewayStore(configuration)
        self.history = HistoryThread(
            loops: context.loops,
            tally: context.tally,
            onDropped: { log.warning("historyEventsDropped", ["events": "\($0)"]) },
            makeFile: { store.openHistory { log.history($0) } }
        )
        self.engine = try EngineThread(
            configuration: configuration.engine,
            wakeBytesPerStreamMax: configuration.limits.wakeBytesPerStreamMax,
            mailbox: context.engine,
            outlet: GroupOutlet(loops: context.loops, history: self.history),
            meter: LimitMeter(loops: self.server.tallies, gateway: context.tally),
            live: context.live,
            openStore: { () throws(StoreError) in
                try store.openJournal { log.error("checkpointFailed", ["cause": $0.message]) }
            },
            onFailure: { error in
                log.error("storeFailed", ["cause": error.message])
                Systemd.notify(.status("Takes nothing more until it is started again: \(error.message)"))
            },
            pulse: context.enginePulse
        )
    }

    /// Starts accepting.
    package func start() throws {
        try self.server.start()
        self.webhooks?.start()
    }

    /// The threads that must turn for anybody to be answered: the loops and the engine.
    var watched: [Watchdog.Watched] {
        let loops = zip(self.context.loopPulses, self.server.loops).map { pulse, loop in
            Watchdog.Watched(pulse) { loop.wake() }
        }
        return loops + [Watchdog.Watched(self.context.enginePulse) { [engine = self.context.engine] in engine.ring() }]
    }

    /// A shutdown has begun.
    package var isDraining: Bool { self.context.isDraining }

    /// Begins a shutdown: nothing new is launched, results are still taken, connections end when they carry no wake.
    package func drain() {
        self.context.drain()
    }

    /// Ends every connection and every thread.
    ///
    /// The engine first: that the gateway ends its workers' streams is no end of a stream to the policy. Wakes that are
    /// still in flight are lost at the next start, which takes their attempt back.
    package func stop() {
        self.providerKeys?.stop()
        self.clientTrust?.stop()
        self.engine.stop()
        self.server.stop()
        self.webhooks?.stop()
        self.history.stop()
    }

    /// The webhooks count as one connection until they hold no wake during a shutdown, which waits for them as well.
    private static func webhooks(
        _ configuration: GatewayConfiguration,
        _ context: GatewayContext,
        loop: Int,
        _ log: GatewayLog
    ) throws -> WebhookThread? {
        guard !configuration.webhooks.isEmpty else { return nil }
        let thread = try WebhookThread(
            configuration.webhooks,
            loop: loop,
            mailbox: context.loops[loop],
            engine: context.engine,
            log: log,
            onDrained: { context.connectionsChanged(by: -1) }
        )
        context.connectionsChanged(by: 1)
        return thread
    }

    private static func metricSources(
        _ configuration: GatewayConfiguration,
        _ listeners: [Listener],
        _ roles: [ListenerRole],
        _ server: HTTPServer
    ) -> MetricsDesk.Sources {
        let topics = Set(configuration.topicPolicies.keys).union(configuration.webhooks.keys)
        let certificate = listeners.lazy.compactMap(\.tls).first
        return MetricsDesk.Sources(
            connections: {
                zip(roles, server.connectionCounts).reduce(into: []) { counts, listener in
                    if let place = counts.firstIndex(where: { $0.role == listener.0 }) {
                        counts[place].count += listener.1
                    } else {
                        counts.append((role: listener.0, count: listener.1))
                    }
                }
            },
            certificateExpiry: { certificate?.certificateExpiry },
            topics: { Array(topics) }
        )
    }

    /// Operators' connections that are accepted when `connectionsMax` others are open: to see why.
    private static let operatorsReserve = 16

    private static func listeners(_ configuration: GatewayConfiguration) throws -> ([Listener], [ListenerRole], [Bool])
    {
        var listeners: [Listener] = []
        var areLocal: [Bool] = []
        var roles: [ListenerRole] = []
        for (setting, role) in Self.settings(configuration) where !setting.isOff {
            var tls: TLSContext?
            if role == .edge {
                tls = try TLSContext(
                    certificateChainFile: configuration.certificateFile ?? "",
                    privateKeyFile: configuration.privateKeyFile ?? "",
                    asksForCertificate: configuration.clientCAFile != nil
                )
            }
            for address in setting.addresses {
                let listener = Listener(
                    address: try ListenAddress.parse(address),
                    tls: tls,
                    streamsAtFirst: configuration.appleStreamLimit && role != .admin ? 1 : nil,
                    connectionsReserved: role == .admin ? Self.operatorsReserve : 0,
                    descriptor: configuration.inheritedSockets.first { $0.address == address }?.descriptor
                )
                listeners.append(listener)
                roles.append(role)
                areLocal.append(ListenSetting.isLocal(address))
            }
        }
        return (listeners, roles, areLocal)
    }

    private static func settings(_ configuration: GatewayConfiguration) -> [(ListenSetting, ListenerRole)] {
        [(configuration.edge, .edge), (configuration.admin, .admin), (configuration.plain, .plain)]
    }

    /// Gives each setting its share of the bound addresses, in the order in which they were bound.
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

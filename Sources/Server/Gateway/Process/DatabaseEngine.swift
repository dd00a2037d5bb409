package import Engine
import HTTPTransport
import Platform
import ServiceManager
package import Storage
import Wire

/// A database in which several gateways share their state.
package protocol GatewayDatabase: Sendable {
    /// Returns a function that creates the history, which reads the events that transactions have written.
    func history(_ limits: HistoryLimits) -> @Sendable () -> any SharedHistorySource

    /// Connects to the database. Blocks until the database has answered or failed.
    ///
    /// - Parameters:
    ///   - signal: called on any thread when the store has replies.
    ///   - onWarning: receives each database setting that could lose acknowledged pushes.
    /// - Throws: if a gateway cannot use the database.
    func store(
        signal: @escaping @Sendable () -> Void,
        onWarning: @escaping @Sendable (String) -> Void
    ) throws(StoreError) -> any ClusterStore

    /// Returns the value that gateways share under a name. If there is none, stores and returns `value`. Blocks.
    func sharedValue(_ name: String, orKeep value: [UInt8]) throws(StoreError) -> [UInt8]
}

/// Creates the engine of a gateway that stores its state in a database. Other gateways may share the database.
struct DatabaseEngine: Sendable {
    let database: any GatewayDatabase
    let configuration: GatewayConfiguration
    let shared: SharedParts
    let workers: WorkerAuthentication
    let history: any HistoryService
    /// The limits that the loops have reached.
    let tallies: [LimitTally<TransportLimit>]
    let status: ServiceStatus
    /// The name by which operators know this gateway.
    let name: String

    /// Creates the engine. Call it on the engine's thread; it blocks until the database has answered or failed.
    ///
    /// - Throws: if the gateway cannot use the database.
    func make() throws(StoreError) -> any GatewayEngine {
        let mailbox = self.shared.engine
        let log = self.shared.log
        let store = try self.database.store(
            signal: { mailbox.signal() },
            onWarning: { log.write(.databaseSetting, ["cause": $0]) }
        )
        do throws(StoreError) {
            let key = try self.historyKey()
            try self.history.open()
            return self.engine(store, key)
        } catch {
            store.stop()
            throw error
        }
    }

    private func engine(_ store: any ClusterStore, _ historyKey: HashKey) -> ClusterEngine {
        var report = GatewayReport(name: self.name, version: wakeGateVersion)
        report.digests = ConfigurationDigests.digests(of: self.configuration.engine)
        return ClusterEngine(
            configuration: self.configuration.engine,
            historyKey: historyKey,
            workers: self.workers,
            report: report,
            wakeBytesPerStreamMax: self.configuration.limits.wakeBytesPerStreamMax,
            store: store,
            output: GroupOutput(
                mailboxes: self.shared.mailboxes,
                history: self.history,
                events: self.shared.services.events
            ),
            limits: LimitCounts(loops: self.tallies, gateway: self.shared.tally, log: self.shared.log),
            live: self.shared.services.live,
            onNews: { self.log($0) }
        )
    }

    /// Returns the key with which all gateways number devices in the history. The first gateway creates the key.
    private func historyKey() throws(StoreError) -> HashKey {
        let made = StateExport.content(HistoryKey.passing())
        return try StateExport.historyKey(self.database.sharedValue(StateExport.historyKeyName, orKeep: made))
    }

    /// Logs news of the engine. Also reports to the service manager why the database cannot be used.
    private func log(_ news: ClusterEngine.News) {
        let log = self.shared.log
        switch news {
        case .status(let error):
            self.status.storeAbsent(error?.message)
            if let error {
                log.write(.storeDetached, ["cause": error.message])
            } else {
                log.write(.storeAttached, ["name": self.name])
            }
        case .differences([]): log.write(.configurationsAgree)
        case .differences(let keys): log.write(.configurationsDiffer, ["keys": keys.joined(separator: ", ")])
        case .locks([]): log.write(.devicesUnlocked)
        case .locks(let locks):
            for lock in locks {
                log.write(.devicesLocked, ["devices": "\(lock.deviceCount)", "session": lock.sessionAndQuery])
            }
        case .unreadable(let device, let error):
            // Half of the shortest token finds the row. The log never contains a whole token.
            let beginning = String(device.hex.prefix(DeviceToken.counts.lowerBound))
            log.write(.deviceUnreadable, ["device": beginning, "cause": error.message])
        }
    }
}

/// The name of a gateway among all gateways on a database: its machine, and the port of its edge.
package enum MemberName {
    /// - Parameters:
    ///   - addresses: the addresses of the listeners.
    ///   - machine: the name of the machine; nil if it has none.
    package static func name(
        of addresses: BoundAddresses,
        machine: String? = ProcessFigures.hostName
    ) -> String {
        let address = [addresses.edge, addresses.plain, addresses.admin].compactMap(\.addresses.first).first ?? "off"
        // A Unix socket has no port.
        guard !address.hasPrefix("unix:"), let (host, port) = ListenSetting.hostAndPort(address) else {
            return machine ?? address
        }
        // These addresses exist on every machine, so they do not identify a machine.
        let isAny = host == "::" || host == "0.0.0.0" || ListenSetting.isLocal(address)
        if isAny, let machine { return "\(machine):\(port)" }
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}

import Engine
import HTTPTransport
import Platform
import PostgresStore
import ServiceManager
import Storage
package import Wire

/// Creates the engine of a gateway that stores its state in a database. Other gateways may share the database.
struct DatabaseEngine: Sendable {
    let configuration: GatewayConfiguration
    let shared: SharedParts
    let workers: WorkerAuthentication
    let history: any HistoryService
    /// The limits that the loops have reached.
    let tallies: [LimitTally<TransportLimit>]
    let status: ServiceStatus
    /// The name by which operators know this gateway.
    let name: String

    /// Creates the history, which reads the events that transactions have written.
    static func history(
        _ configuration: GatewayConfiguration,
        _ shared: SharedParts,
        _ limits: HistoryLimits
    ) throws -> any HistoryService {
        let address = try configuration.storeSettings().address
        return try DatabaseHistory(mailboxes: shared.mailboxes) { PostgresHistory(address, limits: limits) }
    }

    /// Creates the engine. Call it on the engine's thread; it blocks until the database has answered or failed.
    ///
    /// - Throws: if the gateway cannot use the database.
    func make() throws(StoreError) -> any GatewayEngine {
        let settings = try self.configuration.storeSettings()
        let wakeup = StoreWakeup()
        let mailbox = self.shared.engine
        let log = self.shared.log
        let signal: @Sendable () -> Void = {
            wakeup.signal()
            mailbox.signal()
        }
        let store = try PostgresStore(
            settings,
            signal: signal,
            onWarning: { log.write(.databaseSetting, ["cause": $0]) }
        )
        do throws(StoreError) {
            let key = try Self.historyKey(settings)
            try self.history.open()
            return self.engine(store, key, wakeup)
        } catch {
            store.stop()
            throw error
        }
    }

    private func engine(_ store: PostgresStore, _ historyKey: HashKey, _ wakeup: StoreWakeup) -> ClusterEngine {
        var report = GatewayReport(name: self.name, version: wakeGateVersion)
        report.digests = ConfigurationDigests.digests(of: self.configuration.engine)
        return ClusterEngine(
            configuration: self.configuration.engine,
            historyKey: historyKey,
            workers: self.workers,
            report: report,
            wakeBytesPerStreamMax: self.configuration.limits.wakeBytesPerStreamMax,
            store: store,
            waitForStore: { wakeup.wait(milliseconds: $0) },
            output: GroupOutput(
                mailboxes: self.shared.mailboxes,
                history: self.history,
                events: self.shared.services.events
            ),
            limits: LimitCounts(loops: self.tallies, gateway: self.shared.tally, log: self.shared.log),
            live: self.shared.services.live,
            onStatus: { self.storeChanged($0) },
            onUnlike: { self.differencesChanged($0) },
            onLocks: { self.locksChanged($0) }
        )
    }

    /// Returns the key with which all gateways number devices in the history. The first gateway creates the key.
    private static func historyKey(_ settings: StoreSettings) throws(StoreError) -> HashKey {
        let made = HistoryKey.passing()
        var content = ByteBuffer()
        content.append(memoryOf: made.first.littleEndian)
        content.append(memoryOf: made.second.littleEndian)
        let kept = try SharedValue.find(StateExport.historyKeyName, orKeep: content.view.array, settings)
        guard kept.count == 16 else {
            throw StoreError(message: "The value history.key in the database is not a key. Restore it, or delete it.")
        }
        return HistoryKey.key(kept)
    }

    /// Reports why the database cannot be used for now; nil means that it can be used.
    private func storeChanged(_ error: StoreError?) {
        self.status.storeAbsent(error?.message)
        if let error {
            self.shared.log.write(.storeDetached, ["cause": error.message])
        } else {
            self.shared.log.write(.storeAttached, ["name": self.name])
        }
    }

    /// Logs the locks of other sessions that delay devices.
    private func locksChanged(_ locks: [DeviceLocks]) {
        if locks.isEmpty { self.shared.log.write(.devicesUnlocked) }
        for lock in locks {
            self.shared.log.write(.devicesLocked, ["devices": "\(lock.deviceCount)", "session": lock.sessionAndQuery])
        }
    }

    /// Logs the configuration keys that differ between gateways.
    private func differencesChanged(_ keys: [String]) {
        if keys.isEmpty {
            self.shared.log.write(.configurationsAgree)
        } else {
            self.shared.log.write(.configurationsDiffer, ["keys": keys.joined(separator: ", ")])
        }
    }
}

extension PostgresHistory: SharedHistorySource {}

/// The check of a gateway's database before a start.
package enum GatewayDatabase {
    /// Checks the database in a configuration. The check changes nothing, and gateways may be using the database.
    ///
    /// - Returns: the faults that prevent a start, and warnings about other problems. Both are empty if the
    ///   configuration has no database, or if its database settings have faults.
    package static func check(
        _ configuration: GatewayConfiguration
    ) -> (faults: [ConfigurationFault], warnings: [ConfigurationFault]) {
        guard configuration.database != nil, configuration.databaseFaults().isEmpty else { return ([], []) }
        do throws(StoreError) {
            let report = try DatabaseCheck.report(configuration.storeSettings())
            return (report.faults.map(self.fault), report.warnings.map(self.fault))
        } catch {
            let remedy = "write \(DatabaseAddress.requirement)"
            return ([ConfigurationFault(key: "store", problem: error.message, remedy: remedy)], [])
        }
    }

    private static func fault(_ found: DatabaseCheck.Fault) -> ConfigurationFault {
        ConfigurationFault(key: "store", problem: found.problem, remedy: found.remedy)
    }
}

extension GatewayConfiguration {
    /// Returns the settings for the connection to the database.
    ///
    /// - Throws: `StoreError` if the store is not a database, or if its address is unusable.
    func storeSettings() throws(StoreError) -> StoreSettings {
        guard let text = self.databaseConnectionString else {
            throw StoreError(message: "store names no database. Write \(DatabaseAddress.requirement).")
        }
        return try StoreSettings(
            text,
            connections: self.databaseConnections,
            isInsecureAllowed: self.allowsUnverifiedDatabase
        )
    }
}

/// A wakeup that the store signals when it has replies. An engine that is stopping waits for it.
///
/// The class is `@unchecked Sendable`: `monitor` guards `hasRung`.
final class StoreWakeup: @unchecked Sendable {
    private let monitor = Monitor()
    private var hasRung = false

    func signal() {
        self.monitor.withLock {
            self.hasRung = true
            self.monitor.broadcast()
        }
    }

    /// Waits for a signal since the previous call, at most `milliseconds`.
    func wait(milliseconds: Int64) {
        let end = SystemClock.monotonic + milliseconds
        self.monitor.withLock {
            while !self.hasRung {
                guard self.monitor.wait(until: end) else { break }
            }
            self.hasRung = false
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

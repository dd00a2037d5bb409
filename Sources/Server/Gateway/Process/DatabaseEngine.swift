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
        let wakeup = StoreWakeup()
        let mailbox = self.shared.engine
        let log = self.shared.log
        let signal: @Sendable () -> Void = {
            wakeup.signal()
            mailbox.signal()
        }
        let store = try self.database.store(signal: signal) { log.write(.databaseSetting, ["cause": $0]) }
        do throws(StoreError) {
            let key = try self.historyKey()
            try self.history.open()
            return self.engine(store, key, wakeup)
        } catch {
            store.stop()
            throw error
        }
    }

    private func engine(_ store: any ClusterStore, _ historyKey: HashKey, _ wakeup: StoreWakeup) -> ClusterEngine {
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
            onLocks: { self.locksChanged($0) },
            onUnreadable: { device, error in
                // Half of the shortest token finds the row. The log never contains a whole token.
                let beginning = String(device.hex.prefix(DeviceToken.counts.lowerBound))
                self.shared.log.write(.deviceUnreadable, ["device": beginning, "cause": error.message])
            }
        )
    }

    /// Returns the key with which all gateways number devices in the history. The first gateway creates the key.
    private func historyKey() throws(StoreError) -> HashKey {
        let made = StateExport.content(HistoryKey.passing())
        return try StateExport.historyKey(self.database.sharedValue(StateExport.historyKeyName, orKeep: made))
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

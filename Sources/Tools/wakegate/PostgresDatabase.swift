import Engine
import Gateway
import PostgresStore
import Storage
import Wire

/// The PostgreSQL database that a configuration names as its store.
struct PostgresDatabase: GatewayDatabase {
    private let settings: StoreSettings

    /// Returns nil if the configuration has no database.
    init?(_ configuration: GatewayConfiguration) {
        guard let settings = configuration.storeSettings else { return nil }
        self.settings = settings
    }

    func history(_ limits: HistoryLimits) -> @Sendable () -> any SharedHistorySource {
        let address = self.settings.address
        return { PostgresHistory(address, limits: limits) }
    }

    func store(
        signal: @escaping @Sendable () -> Void,
        onWarning: @escaping @Sendable (String) -> Void
    ) throws(StoreError) -> any ClusterStore {
        try PostgresStore(self.settings, signal: signal, onWarning: onWarning)
    }

    func sharedValue(_ name: String, orKeep value: [UInt8]) throws(StoreError) -> [UInt8] {
        try SharedValue.find(name, orKeep: value, self.settings)
    }

    /// Checks the database before a start. The check changes nothing, and gateways may be using the database.
    ///
    /// - Returns: the faults that prevent a start, and warnings about other problems. Both are empty if the
    ///   configuration has no database, or if its database settings have faults.
    static func check(
        _ configuration: GatewayConfiguration
    ) -> (faults: [ConfigurationFault], warnings: [ConfigurationFault]) {
        guard let settings = configuration.storeSettings, configuration.databaseFaults().isEmpty else {
            return ([], [])
        }
        let report = DatabaseCheck.report(settings)
        return (report.faults.map(self.fault), report.warnings.map(self.fault))
    }

    private static func fault(_ found: DatabaseCheck.Fault) -> ConfigurationFault {
        ConfigurationFault(key: "store", problem: found.problem, remedy: found.remedy)
    }
}

extension PostgresHistory: SharedHistorySource {}

extension GatewayConfiguration {
    /// The settings of the connections to the database; nil without a database.
    var storeSettings: StoreSettings? {
        guard let address = self.database else { return nil }
        var settings = StoreSettings(address: address)
        settings.connections = self.databaseConnections
        return settings
    }
}

import Engine
import Gateway
import PostgresStore
import Storage
import Wire

/// The PostgreSQL database that a configuration names as its store.
struct PostgresDatabase: GatewayDatabase {
    private let configuration: GatewayConfiguration

    /// Returns nil if the configuration has no database.
    init?(_ configuration: GatewayConfiguration) {
        guard configuration.database != nil else { return nil }
        self.configuration = configuration
    }

    func history(_ limits: HistoryLimits) throws(StoreError) -> @Sendable () -> any SharedHistorySource {
        let address = try self.configuration.storeSettings().address
        return { PostgresHistory(address, limits: limits) }
    }

    func store(
        signal: @escaping @Sendable () -> Void,
        onWarning: @escaping @Sendable (String) -> Void
    ) throws(StoreError) -> any ClusterStore {
        try PostgresStore(self.configuration.storeSettings(), signal: signal, onWarning: onWarning)
    }

    func sharedValue(_ name: String, orKeep value: [UInt8]) throws(StoreError) -> [UInt8] {
        try SharedValue.find(name, orKeep: value, self.configuration.storeSettings())
    }

    /// Checks the database before a start. The check changes nothing, and gateways may be using the database.
    ///
    /// - Returns: the faults that prevent a start, and warnings about other problems. Both are empty if the
    ///   configuration has no database, or if its database settings have faults.
    static func check(
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

extension PostgresHistory: SharedHistorySource {}

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

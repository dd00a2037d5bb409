import Engine
import PostgresStore
package import Wire

/// The database of a gateway, looked at before one starts on it.
package enum GatewayDatabase {
    /// Checks the database that a configuration names. A gateway may be running on it; the check changes nothing.
    ///
    /// - Returns: the faults with which a gateway would not start, and warnings of risks with which it would. Both are
    ///   empty if the configuration names no database, or already has faults in its database settings.
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
    /// How the store reaches its database.
    ///
    /// - Throws: when there is none, or its address cannot be used.
    func storeSettings() throws(StoreError) -> StoreSettings {
        guard let text = self.databaseConnectionString else {
            throw StoreError(message: "store names no database. Write \(DatabaseAddress.requirement).")
        }
        return try StoreSettings(
            text,
            connections: self.databaseConnections,
            isInsecureAllowed: self.isDatabaseInsecure
        )
    }
}

package import Answers
import DeviceEngine
import PostgresStore
package import Settings

/// The database of a gateway, looked at before one starts on it.
package enum GatewayDatabase {
    /// What a start would refuse of the database that a configuration names, and risks beside which it would work; none
    /// when it names none. Nothing is made or changed, and a gateway may be running on it.
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

package import Wire

extension GatewayConfiguration {
    /// The database that devices and pushes are kept in; nil when they are kept elsewhere.
    package var database: DatabaseAddress? {
        switch self.store {
        case .sqlite, .memory: nil
        case .postgresql(let address): address
        }
    }

    /// What libpq connects with; nil when there is no database.
    package var databaseConnectionString: String? {
        self.database?.connectionString(isInsecure: self.isDatabaseInsecure)
    }

    /// A database on another machine has to prove who it is.
    package func databaseFaults() -> [ConfigurationFault] {
        guard let address = self.database, !address.isLocal, !self.isDatabaseInsecure,
            let mode = address["sslmode"], mode != "verify-full"
        else { return [] }
        let fault = ConfigurationFault(
            key: "store",
            problem: "leads to another machine, of which sslmode=\(mode) asks no proof of who it is",
            remedy: "write sslmode=verify-full, with sslrootcert=/FILE of the authority that signed the server's "
                + "certificate, or databaseInsecure: true if the network is your own"
        )
        return [fault]
    }
}

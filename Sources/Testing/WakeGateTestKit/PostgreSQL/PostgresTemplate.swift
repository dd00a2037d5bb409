import Foundation

/// The data of a server that never ran: made once a process, as that takes a second, and copied for each server.
enum PostgresTemplate {
    /// The folder of the template, kept until the process ends.
    static func shared() throws -> PostgresFolder { try self.result.get() }

    private static let result = Result { try Self.make() }

    /// The first line that fits a client is in force.
    private static let access = """
        host all secured 127.0.0.1/32 scram-sha-256
        local all all trust
        host all all 127.0.0.1/32 trust
        local replication all trust
        host replication all 127.0.0.1/32 trust

        """

    private static func make() throws -> PostgresFolder {
        let installation = try PostgresInstallation.found()
        let folder = try PostgresFolder()
        try installation.run(
            "initdb",
            [
                "-D", folder.data, "-U", "postgres", "-E", "UTF8", "--locale=C", "--auth=trust", "--no-sync",
                "--no-instructions",
            ]
        )
        try Data(self.access.utf8).write(to: URL(fileURLWithPath: "\(folder.data)/pg_hba.conf"))
        return folder
    }
}

extension PostgresServer {
    /// The server that the tests of a process share, each in a database of its own (`database()`). Nobody stops it; it
    /// ends with the process. Its commits are not on the disk.
    ///
    /// - Throws: `PostgresFailure` when there is no PostgreSQL on this machine, with what to do.
    package static func shared() throws -> PostgresServer { try self.sharedResult.get() }

    private static let sharedResult = Result { try PostgresServer(Options(isDurable: false)) }
}

/// What a server tells besides answers: a warning, or why it is about to end the connection.
package struct PostgresNotice: Hashable, Sendable {
    /// The SQLSTATE.
    package let state: String
    /// Such as `WARNING`, `NOTICE` or `FATAL`, never translated.
    package let severity: String
    /// One line.
    package let message: String

    /// Whether the commit that is answered now waited for standbys and did not get their word: it is on this server
    /// alone.
    package var isUnreplicatedCommit: Bool {
        self.severity == "WARNING" && self.message.contains("synchronous replication")
    }
}

/// Where a session stands in a transaction.
package enum PostgresTransaction: Hashable, Sendable {
    case none
    case open
    /// The transaction is open and has failed: it can only be rolled back.
    case failed
    /// A statement is being carried out.
    case busy
    /// The connection is lost.
    case unknown
}

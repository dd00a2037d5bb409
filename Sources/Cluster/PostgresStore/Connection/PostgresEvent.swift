/// What came of a statement, or of a run of them.
package enum PostgresEvent {
    /// A statement was carried out; these are its rows, none for one that gives none.
    case rows(PostgresRows)
    /// A statement failed. Those behind it, up to the next sync, are `aborted`.
    case failed(PostgresError)
    /// A statement was passed over, as one before it failed.
    case aborted
    /// The run of statements up to one `sync` is answered.
    case synced
}

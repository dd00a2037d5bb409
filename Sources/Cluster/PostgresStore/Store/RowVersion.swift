/// The version of a row that a transaction has read, which a write of the row has to find.
struct RowVersion: Hashable {
    let number: Int64
    /// Where it lies: there until the transaction ends, when it has locked the row.
    let place: PostgresPlace

    /// Of a row that was not read: no row has it.
    static let none = RowVersion(number: -1, place: .nowhere)
}

package import Wire

/// The rows that a statement gave, each value in binary. They are valid as long as this is kept.
package final class PostgresRows {
    private let result: LibPQResult

    init(_ result: LibPQResult) { self.result = result }

    /// The number of rows.
    package var count: Int { self.result.rowCount }

    package var columnCount: Int { self.result.columnCount }

    /// What the server calls the statement that was carried out, such as `UPDATE 3`.
    package var tag: String { self.result.tag }

    /// How many rows the statement gave or changed; 0 for a statement of another kind.
    package var affectedCount: Int { Int(self.result.affected) ?? 0 }

    package func isNull(_ row: Int, _ column: Int) -> Bool { self.result.bytes(row, column) == nil }

    /// The bytes of a value, none for NULL; valid as long as the rows are kept.
    package func bytes(_ row: Int, _ column: Int) -> ByteView { self.result.bytes(row, column) ?? ByteView() }
}

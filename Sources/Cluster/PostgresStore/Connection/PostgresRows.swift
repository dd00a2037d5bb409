package import Wire

/// Typed values. NULL and values of another size read as 0, false or empty.
extension PostgresRows {
    package func int32(_ row: Int, _ column: Int) -> Int32 { self.integer(row, column) }

    package func int64(_ row: Int, _ column: Int) -> Int64 { self.integer(row, column) }

    package func flag(_ row: Int, _ column: Int) -> Bool {
        let bytes = self.bytes(row, column)
        return bytes.count == 1 && bytes[0] != 0
    }

    package func text(_ row: Int, _ column: Int) -> String { self.bytes(row, column).string }

    /// Returns a uuid as the id of a wake; nil for NULL and for a value of another size.
    package func wake(_ row: Int, _ column: Int) -> WakeID? {
        let bytes = self.bytes(row, column)
        guard bytes.count == 16 else { return nil }
        return WakeID(random: (bytes.word(at: 0).byteSwapped, bytes.word(at: 8).byteSwapped))
    }

    /// Returns the location (`ctid`) of a row version; `nowhere` for NULL and for a value of another size.
    package func place(_ row: Int, _ column: Int) -> RowLocation {
        let bytes = self.bytes(row, column)
        guard bytes.count == 6 else { return .nowhere }
        return RowLocation(
            block: UInt32(bigEndian: bytes.load(UInt32.self, at: 0)),
            offset: UInt16(bigEndian: bytes.load(UInt16.self, at: 4))
        )
    }

    private func integer<Value: FixedWidthInteger & BitwiseCopyable>(_ row: Int, _ column: Int) -> Value {
        let bytes = self.bytes(row, column)
        guard bytes.count == MemoryLayout<Value>.size else { return 0 }
        return Value(bigEndian: bytes.load(Value.self, at: 0))
    }
}

/// The outcome of a batch of statements.
package struct PostgresOutcome {
    /// The results of the statements up to the first that failed, in order.
    package var results: [PostgresRows] = []
    /// The failure of a statement. The server has skipped the statements after it.
    package var failure: PostgresError?
    /// The server's notices during the batch, at most `LibPQ.noticesMax`.
    package var notices: [PostgresNotice] = []

    package init() {}

    /// The reason why a commit is on only one server; nil if it is replicated as required.
    var unreplicated: PostgresError? {
        self.notices.first(where: \.isUnreplicatedCommit).map {
            PostgresError(kind: .cancelled, state: $0.state, message: $0.message)
        }
    }
}

/// The location of a row version (`ctid`): its page number, and its number on the page, starting at 1.
///
/// A transaction that has locked the row can find it by its `ctid`, without an index. After the transaction, the row
/// may move, and its `ctid` may be reused.
package struct RowLocation: Hashable, Sendable {
    package let block: UInt32
    package let offset: UInt16

    package init(block: UInt32, offset: UInt16) {
        self.block = block
        self.offset = offset
    }

    /// A location that has no row.
    package static let nowhere = RowLocation(block: 0, offset: 0)
}

package import Wire

/// The rows of a statement's result, each value in binary. Bytes are valid as long as this object.
package final class PostgresRows {
    private let result: LibPQResult

    init(_ result: LibPQResult) { self.result = result }

    /// The number of rows.
    package var count: Int { self.result.rowCount }

    package var columnCount: Int { self.result.columnCount }

    /// The server's command tag of the statement, such as `UPDATE 3`.
    package var tag: String { self.result.tag }

    /// The number of rows the statement returned or changed; 0 for other kinds of statements.
    package var affectedCount: Int { Int(self.result.affected) ?? 0 }

    package func isNull(_ row: Int, _ column: Int) -> Bool { self.result.bytes(row, column) == nil }

    /// Returns the bytes of a value, empty for NULL; valid as long as this object.
    package func bytes(_ row: Int, _ column: Int) -> ByteView { self.result.bytes(row, column) ?? ByteView() }
}

/// Typed values. NULL and values of another size read as 0, false or empty.
extension PostgresRows {
    package func int16(_ row: Int, _ column: Int) -> Int16 { self.integer(row, column) }

    package func int32(_ row: Int, _ column: Int) -> Int32 { self.integer(row, column) }

    package func int64(_ row: Int, _ column: Int) -> Int64 { self.integer(row, column) }

    package func flag(_ row: Int, _ column: Int) -> Bool {
        let bytes = self.bytes(row, column)
        return bytes.count == 1 && bytes[0] != 0
    }

    package func text(_ row: Int, _ column: Int) -> String { self.bytes(row, column).string }

    /// Returns a uuid as two big-endian words; nil for NULL and for a value of another size.
    package func uuid(_ row: Int, _ column: Int) -> (UInt64, UInt64)? {
        let bytes = self.bytes(row, column)
        guard bytes.count == 16 else { return nil }
        return (bytes.word(at: 0).byteSwapped, bytes.word(at: 8).byteSwapped)
    }

    /// Returns a uuid as the id of a wake; nil for NULL and for a value of another size.
    package func wake(_ row: Int, _ column: Int) -> WakeID? {
        self.uuid(row, column).map(WakeID.init(random:))
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

    /// Returns the elements of a one-dimensional array; nil for NULL, for more dimensions and for other values.
    package func elements(_ row: Int, _ column: Int) -> PostgresElements? {
        PostgresElements(self.bytes(row, column))
    }

    /// Returns an array of texts. NULL elements become empty texts, and NULL becomes an empty array.
    package func texts(_ row: Int, _ column: Int) -> [String] {
        guard var elements = self.elements(row, column) else { return [] }
        var texts: [String] = []
        while let element = elements.next() { texts.append(element.bytes?.string ?? "") }
        return texts
    }

    private func integer<Value: FixedWidthInteger & BitwiseCopyable>(_ row: Int, _ column: Int) -> Value {
        let bytes = self.bytes(row, column)
        guard bytes.count == MemoryLayout<Value>.size else { return 0 }
        return Value(bigEndian: bytes.load(Value.self, at: 0))
    }
}

/// A reader of a one-dimensional array in binary, which must not outlive the array's bytes.
package struct PostgresElements {
    /// An element's bytes; nil for NULL.
    package struct Element {
        package let bytes: ByteView?
    }

    private static let headerBytes = 20

    /// The number of remaining elements.
    package private(set) var count: Int
    private var rest: ByteView

    /// - Returns: nil if the bytes are not a one-dimensional array.
    package init?(_ bytes: ByteView) {
        guard bytes.count >= 12 else { return nil }
        let dimensions = Int32(bigEndian: bytes.load(Int32.self, at: 0))
        if dimensions == 0 {
            self.count = 0
            self.rest = ByteView()
            return
        }
        guard dimensions == 1, bytes.count >= Self.headerBytes else { return nil }
        let count = Int(Int32(bigEndian: bytes.load(Int32.self, at: 12)))
        let rest = bytes.dropFirst(Self.headerBytes)
        // Each element is preceded by its length.
        guard count >= 0, count <= rest.count / 4 else { return nil }
        self.count = count
        self.rest = rest
    }

    /// Returns the next element; nil at the end or if the array is truncated.
    package mutating func next() -> Element? {
        guard self.count > 0, self.rest.count >= 4 else { return nil }
        let length = Int(Int32(bigEndian: self.rest.load(Int32.self, at: 0)))
        self.count -= 1
        guard length >= 0 else {
            self.rest = self.rest.dropFirst(4)
            return Element(bytes: nil)
        }
        guard length <= self.rest.count - 4 else {
            self.count = 0
            return nil
        }
        let bytes = self.rest.slice(4, count: length)
        self.rest = self.rest.dropFirst(4 + length)
        return Element(bytes: bytes)
    }
}

/// An event of a statement or of a batch of statements.
package enum PostgresEvent {
    /// A statement was executed, with the rows that it returns.
    case rows(PostgresRows)
    /// A statement failed. Later statements up to the next sync are `aborted`.
    case failed(PostgresError)
    /// A statement was skipped, because an earlier statement failed.
    case aborted
    /// All statements up to one `sync` are answered.
    case synced
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

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

/// Values of the types that statements name; 0, false or nothing for NULL and for a value of another size.
extension PostgresRows {
    package func int16(_ row: Int, _ column: Int) -> Int16 { self.integer(row, column) }

    package func int32(_ row: Int, _ column: Int) -> Int32 { self.integer(row, column) }

    package func int64(_ row: Int, _ column: Int) -> Int64 { self.integer(row, column) }

    package func flag(_ row: Int, _ column: Int) -> Bool {
        let bytes = self.bytes(row, column)
        return bytes.count == 1 && bytes[0] != 0
    }

    package func text(_ row: Int, _ column: Int) -> String { self.bytes(row, column).string }

    /// A uuid: its first eight bytes and its last, the first byte highest; nil for NULL and for what is none.
    package func uuid(_ row: Int, _ column: Int) -> (UInt64, UInt64)? {
        let bytes = self.bytes(row, column)
        guard bytes.count == 16 else { return nil }
        return (bytes.word(at: 0).byteSwapped, bytes.word(at: 8).byteSwapped)
    }

    /// A uuid as a wake's id; nil for NULL and for what is none.
    package func wake(_ row: Int, _ column: Int) -> WakeID? {
        self.uuid(row, column).map(WakeID.init(random:))
    }

    /// Where a version of a row lies; nowhere for NULL and for what is no place.
    package func place(_ row: Int, _ column: Int) -> PostgresPlace {
        let bytes = self.bytes(row, column)
        guard bytes.count == 6 else { return .nowhere }
        return PostgresPlace(
            block: UInt32(bigEndian: bytes.load(UInt32.self, at: 0)),
            offset: UInt16(bigEndian: bytes.load(UInt16.self, at: 4))
        )
    }

    /// An array of one dimension, element by element; nil for NULL, for more dimensions and for what is no array.
    package func elements(_ row: Int, _ column: Int) -> PostgresElements? {
        PostgresElements(self.bytes(row, column))
    }

    /// An array of texts, each NULL in it as an empty one; empty for NULL.
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

/// Reads an array of one dimension that a server gave in binary; it must not outlive the bytes.
package struct PostgresElements {
    /// An element's bytes; nil for NULL.
    package struct Element {
        package let bytes: ByteView?
    }

    private static let headerBytes = 20

    /// How many elements are left.
    package private(set) var count: Int
    private var rest: ByteView

    /// - Returns: nil when the bytes are no such array.
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
        // Each element has its length before it.
        guard count >= 0, count <= rest.count / 4 else { return nil }
        self.count = count
        self.rest = rest
    }

    /// The next element; nil at the end, and when the array is cut short.
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

/// Where one version of a row lies (`ctid`): the number of its page, and its own on the page, from 1.
///
/// Whoever has locked the row finds it there without an index. Another version of it lies elsewhere, and another row
/// may lie there once this version is gone.
package struct PostgresPlace: Hashable, Sendable {
    package let block: UInt32
    package let offset: UInt16

    package init(block: UInt32, offset: UInt16) {
        self.block = block
        self.offset = offset
    }

    /// Where no row lies.
    package static let nowhere = PostgresPlace(block: 0, offset: 0)
}

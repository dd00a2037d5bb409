package import Wire

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

package import Wire

/// The records of one commit, each key at most once, in one run of bytes.
///
/// A record is a header of 9 bytes (kind, index and byte count, little-endian) and its content.
package struct RecordBatch: ~Copyable {
    /// The bytes of a record's header.
    package static let headerCount = 9

    /// The header of the record that begins at `offset` of `bytes`.
    ///
    /// - Returns: nil when there is no whole record of a known kind.
    package static func header(of bytes: ByteView, at offset: Int) -> (key: RecordKey, count: Int)? {
        guard offset >= 0, bytes.count - offset >= Self.headerCount, let kind = RecordKey.Kind(rawValue: bytes[offset])
        else { return nil }
        let index = UInt32(littleEndian: bytes.load(UInt32.self, at: offset + 1))
        let count = Int(UInt32(littleEndian: bytes.load(UInt32.self, at: offset + 5)))
        guard bytes.count - offset - Self.headerCount >= count else { return nil }
        return (RecordKey(kind, index), count)
    }

    private var buffer = ByteBuffer()

    package init() {}

    package var isEmpty: Bool { self.buffer.isEmpty }

    /// All records, one behind the other; valid until the batch is next changed.
    package var bytes: ByteView { self.buffer.view }

    /// Appends a record whose content `write` appends to the buffer it is given.
    package mutating func append(_ key: RecordKey, _ write: (inout ByteBuffer) -> Void) {
        self.buffer.append(key.kind.rawValue)
        self.buffer.append(memoryOf: key.index.littleEndian)
        self.buffer.append(memoryOf: UInt32(0))
        let start = self.buffer.count
        write(&self.buffer)
        self.buffer.overwrite(memoryOf: UInt32(self.buffer.count - start).littleEndian, at: start - 4)
    }

    /// Hands over every record in order; a view is valid during the call.
    package func forEach(_ body: (RecordKey, ByteView) -> Void) {
        let bytes = self.buffer.view
        var offset = 0
        while let (key, count) = Self.header(of: bytes, at: offset) {
            let start = offset + Self.headerCount
            body(key, bytes[start..<start + count])
            offset = start + count
        }
    }

    /// Drops every record and keeps the memory.
    package mutating func removeAll() {
        self.buffer.removeAll()
    }
}

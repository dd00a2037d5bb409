package import Wire

/// Where events that name a push stand within one run: 32 bits of the identifier's hash, and the event chunk's number.
///
/// A few identifiers share their bits with others; whoever reads the chunk compares the whole identifier.
package struct PushEntry: Hashable {
    /// The hash above, the chunk below: sorted words are sorted entries.
    let word: UInt64

    init(_ apnsID: APNsID, chunk: Int, _ key: HashKey) {
        self.word = UInt64(Self.hash(apnsID, key)) << 32 | UInt64(chunk)
    }

    /// An entry for the chunk of this number, of which 32 bits count.
    package init(hash: UInt32, chunk: UInt64) {
        self.word = UInt64(hash) << 32 | chunk
    }

    /// Clients name their pushes; those who know no key cannot choose names that lie in one place.
    static func hash(_ apnsID: APNsID, _ key: HashKey) -> UInt32 {
        UInt32(truncatingIfNeeded: key.hash(apnsID.first, apnsID.second) >> 32)
    }

    var hash: UInt32 { UInt32(truncatingIfNeeded: self.word >> 32) }
    var chunk: Int { Int(self.word & 0xFFFF_FFFF) }
}

/// Chunks of sorted entries: the seal, then for each entry the distance of its hash from the one before it (from 0
/// for the first) and its chunk's number, both as varints.
package struct PushChunkWriter: ~Copyable {
    private static let entryBytesMax = 5 + 5

    /// The chunk as far as it is written; whole once it is closed.
    package private(set) var buffer = ByteBuffer()
    private var previous: UInt32 = 0

    /// An empty chunk.
    package init() {}

    /// Whether no entry is in it.
    package var isEmpty: Bool { self.buffer.isEmpty }
    /// Whether another entry fits, whatever it is.
    package var hasRoom: Bool { RunTable.chunkBytesMax - self.buffer.count >= Self.entryBytesMax }

    /// Appends an entry, for which there must be room, and which sorts behind the one before.
    package mutating func append(_ entry: PushEntry) {
        if self.isEmpty {
            self.buffer.append(word: 0)
            self.previous = 0
        }
        self.buffer.append(varint: UInt64(entry.hash - self.previous))
        self.buffer.append(varint: UInt64(entry.chunk))
        self.previous = entry.hash
    }

    /// Seals the chunk; `removeAll` makes ready for the next.
    package mutating func close() {
        ChunkSeal.close(&self.buffer)
    }

    mutating func removeAll() {
        self.buffer.removeAll()
    }
}

/// Reads what `PushChunkWriter` wrote.
package enum PushChunkReader {
    /// Appends the numbers of the event chunks that may name a push with this hash.
    ///
    /// - Returns: false when the chunk is damaged.
    package static func read(_ chunk: ByteView, hash: UInt32, into chunks: inout [Int]) -> Bool {
        guard let content = ChunkSeal.open(chunk) else { return false }
        var reader = ByteReader(content)
        var current: UInt64 = 0
        while !reader.isAtEnd, current <= UInt64(hash) {
            current &+= reader.varint()
            let number = reader.varint()
            if current == UInt64(hash), !reader.isDamaged { chunks.append(Int(truncatingIfNeeded: number)) }
        }
        return !reader.isDamaged
    }
}

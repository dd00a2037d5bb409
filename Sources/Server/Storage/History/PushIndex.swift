import Engine
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

/// Sorts words by their upper 32 bits; words that are equal there keep their order.
///
/// The lower halves must ascend where the upper halves are equal, as numbers given in order do.
struct HalfWordSorter {
    private static let digitBits: UInt64 = 11
    private static let digits = 1 << 11
    /// Below this many, three passes over 2,048 counters cost more than comparing.
    private static let radixMin = 1024

    private var scratch: [UInt64] = []

    mutating func sort(_ words: inout [UInt64]) {
        guard words.count >= Self.radixMin else {
            words.sort()
            return
        }
        if self.scratch.count < words.count { self.scratch = [UInt64](repeating: 0, count: words.count) }
        let count = words.count
        unsafe words.withUnsafeMutableBufferPointer { words in
            unsafe self.scratch.withUnsafeMutableBufferPointer { scratch in
                // An odd number of passes ends in the scratch memory; the copy back costs a third of a pass.
                unsafe Self.pass(from: words, to: scratch, count, shift: 32)
                unsafe Self.pass(from: scratch, to: words, count, shift: 32 + Self.digitBits)
                unsafe Self.pass(from: words, to: scratch, count, shift: 32 + 2 * Self.digitBits)
                for index in 0..<count { unsafe words[index] = scratch[index] }
            }
        }
    }

    private static func pass(
        from source: UnsafeMutableBufferPointer<UInt64>,
        to target: UnsafeMutableBufferPointer<UInt64>,
        _ count: Int,
        shift: UInt64
    ) {
        unsafe withUnsafeTemporaryAllocation(of: Int32.self, capacity: Self.digits) { places in
            unsafe places.initialize(repeating: 0)
            let mask = UInt64(Self.digits - 1)
            for index in 0..<count { unsafe places[Int(source[index] >> shift & mask)] += 1 }
            var place: Int32 = 0
            for digit in 0..<Self.digits {
                let size = unsafe places[digit]
                unsafe places[digit] = place
                place += size
            }
            for index in 0..<count {
                let word = unsafe source[index]
                let digit = Int(word >> shift & mask)
                unsafe target[Int(places[digit])] = word
                unsafe places[digit] += 1
            }
        }
    }
}

/// Orders collected events by device; those of one device keep their order.
struct EventOrder {
    private var keys: [UInt64] = []

    /// Calls `body` with the place of every event in turn.
    mutating func forEach<Failure: Error>(
        _ events: [HistoryEvent],
        _ sorter: inout HalfWordSorter,
        _ body: (Int) throws(Failure) -> Void
    ) throws(Failure) {
        self.keys.removeAll(keepingCapacity: true)
        self.keys.reserveCapacity(events.count)
        for index in events.indices { self.keys.append(events[index].device & ~0xFFFF_FFFF | UInt64(index)) }
        sorter.sort(&self.keys)
        var start = 0
        while start < self.keys.count {
            let end = self.orderGroup(from: start, events)
            for key in start..<end { try body(Int(self.keys[key] & 0xFFFF_FFFF)) }
            start = end
        }
    }

    /// Orders the keys that have the upper half of the one at `start`, in which devices may differ still.
    ///
    /// - Returns: the index behind them.
    private mutating func orderGroup(from start: Int, _ events: [HistoryEvent]) -> Int {
        let first = self.keys[start]
        let device = events[Int(first & 0xFFFF_FFFF)].device
        var isUniform = true
        var end = start + 1
        while end < self.keys.count, self.keys[end] >> 32 == first >> 32 {
            isUniform = isUniform && events[Int(self.keys[end] & 0xFFFF_FFFF)].device == device
            end += 1
        }
        if !isUniform {
            self.keys[start..<end].sort {
                (events[Int($0 & 0xFFFF_FFFF)].device, $0) < (events[Int($1 & 0xFFFF_FFFF)].device, $1)
            }
        }
        return end
    }
}

import Engine
package import Wire

/// An entry of the index of pushes in one run: 32 bits of the identifier's hash, and the number of the event chunk.
///
/// Several identifiers may have the same 32 bits, so the reader of the chunk compares the whole identifier.
package struct PushEntry: Hashable {
    /// The hash in the upper half, and the chunk number in the lower half. Sorting the words therefore sorts the
    /// entries.
    let word: UInt64

    init(_ apnsID: APNsID, chunk: Int, _ key: HashKey) {
        self.word = UInt64(Self.hash(apnsID, key)) << 32 | UInt64(chunk)
    }

    /// Creates an entry for a chunk; the lower 32 bits of its number are used.
    package init(hash: UInt32, chunk: UInt64) {
        self.word = UInt64(hash) << 32 | chunk
    }

    /// Returns the keyed hash of an identifier. Clients choose the identifiers, but they cannot cause collisions
    /// without the key.
    static func hash(_ apnsID: APNsID, _ key: HashKey) -> UInt32 {
        UInt32(truncatingIfNeeded: key.hash(apnsID.first, apnsID.second) >> 32)
    }

    var hash: UInt32 { UInt32(truncatingIfNeeded: self.word >> 32) }
    var chunk: Int { Int(self.word & 0xFFFF_FFFF) }
}

/// Encodes chunks of sorted entries. A chunk begins with the seal. Two varints for each entry follow: the difference of
/// its hash from the previous entry's, or from 0 for the first, and its chunk number.
package struct PushChunkWriter: ~Copyable {
    private static let entryBytesMax = 5 + 5

    /// The bytes written so far; a complete chunk after `close`.
    package private(set) var buffer = ByteBuffer()
    private var previous: UInt32 = 0

    /// Creates an empty chunk.
    package init() {}

    /// True if the chunk has no entry.
    package var isEmpty: Bool { self.buffer.isEmpty }
    /// True if an entry of any size fits.
    package var hasRoom: Bool { RunTable.chunkBytesMax - self.buffer.count >= Self.entryBytesMax }

    /// Appends an entry. `hasRoom` must be true, and the entry must not be less than the previous one.
    package mutating func append(_ entry: PushEntry) {
        if self.isEmpty {
            self.buffer.append(word: 0)
            self.previous = 0
        }
        self.buffer.append(varint: UInt64(entry.hash - self.previous))
        self.buffer.append(varint: UInt64(entry.chunk))
        self.previous = entry.hash
    }

    /// Completes the chunk with its checksum. Call `removeAll` before the next chunk.
    package mutating func close() {
        ChunkSeal.close(&self.buffer)
    }

    mutating func removeAll() {
        self.buffer.removeAll()
    }
}

/// Decodes chunks of `PushChunkWriter`.
package enum PushChunkReader {
    /// Appends the numbers of the event chunks that may name a push with this hash.
    ///
    /// - Returns: false if the chunk is damaged.
    package static func read(_ chunk: ByteView, hash: UInt32, into chunks: inout [Int]) -> Bool {
        guard let content = ChunkSeal.open(chunk) else { return false }
        var reader = RecordReader(content)
        var current: UInt64 = 0
        while reader.hasMore, current <= UInt64(hash) {
            current &+= reader.varint()
            let number = reader.varint()
            if current == UInt64(hash), !reader.isShort { chunks.append(Int(truncatingIfNeeded: number)) }
        }
        return !reader.isShort
    }
}

/// Sorts words by their upper 32 bits. Words with equal upper halves keep their order.
///
/// In the input, words with the same upper half must be in ascending order.
struct HalfWordSorter {
    private static let digitBits: UInt64 = 11
    private static let digits = 1 << 11
    /// The number of words below which a comparison sort is faster than three passes over 2,048 counters.
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
                // Three passes leave the result in the scratch memory. Copying it back costs a third of a pass.
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

/// Orders collected events by device. Events of one device keep their order.
struct EventOrder {
    private var keys: [UInt64] = []

    /// Calls `body` with the index of every event in order.
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

    /// Sorts the keys that share the upper half of the key at `start`. They may belong to several devices.
    ///
    /// - Returns: the index after these keys.
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

internal import Wire

/// The entries to which every field block may refer: RFC 7541, appendix A.
enum StaticTable {
    typealias Entry = (name: StaticString, value: StaticString)

    /// The number of entries. Indices begin at 1.
    static let count = 61

    /// Returns the entry at an index from 1 to `count`.
    static func entry(_ index: Int) -> (name: ByteView, value: ByteView) {
        let entry = self.entries[index - 1]
        return (ByteView(entry.name), ByteView(entry.value))
    }

    private static let entries: [Entry] = [
        (":authority", ""),
        (":method", "GET"),
        (":method", "POST"),
        (":path", "/"),
        (":path", "/index.html"),
        (":scheme", "http"),
        (":scheme", "https"),
        (":status", "200"),
        (":status", "204"),
        (":status", "206"),
        (":status", "304"),
        (":status", "400"),
        (":status", "404"),
        (":status", "500"),
        ("accept-charset", ""),
        ("accept-encoding", "gzip, deflate"),
        ("accept-language", ""),
        ("accept-ranges", ""),
        ("accept", ""),
        ("access-control-allow-origin", ""),
        ("age", ""),
        ("allow", ""),
        ("authorization", ""),
        ("cache-control", ""),
        ("content-disposition", ""),
        ("content-encoding", ""),
        ("content-language", ""),
        ("content-length", ""),
        ("content-location", ""),
        ("content-range", ""),
        ("content-type", ""),
        ("cookie", ""),
        ("date", ""),
        ("etag", ""),
        ("expect", ""),
        ("expires", ""),
        ("from", ""),
        ("host", ""),
        ("if-match", ""),
        ("if-modified-since", ""),
        ("if-none-match", ""),
        ("if-range", ""),
        ("if-unmodified-since", ""),
        ("last-modified", ""),
        ("link", ""),
        ("location", ""),
        ("max-forwards", ""),
        ("proxy-authenticate", ""),
        ("proxy-authorization", ""),
        ("range", ""),
        ("referer", ""),
        ("refresh", ""),
        ("retry-after", ""),
        ("server", ""),
        ("set-cookie", ""),
        ("strict-transport-security", ""),
        ("transfer-encoding", ""),
        ("user-agent", ""),
        ("vary", ""),
        ("via", ""),
        ("www-authenticate", ""),
    ]
}

/// The fields of earlier field blocks to which later blocks of the same peer may refer: RFC 7541 §2.3.2.
///
/// The table allocates no memory before the first entry.
@safe
struct DynamicTable: ~Copyable {
    /// The size of an entry in addition to its name and value: RFC 7541 §4.1.
    static let entryBytes = 32

    private struct Entry {
        /// The offset of the name, counted from the first byte that was ever added to the table. The value follows the
        /// name.
        var start: Int
        var nameCount: UInt32
        var valueCount: UInt32
        /// The note that the caller stored with the entry.
        var note: UInt32
    }

    /// The names and values of all entries, the oldest first.
    private var bytes = ByteBuffer()
    /// The number of bytes that have been removed from the table.
    private var dropped = 0
    /// A ring buffer of entries. `count` entries are in use, beginning at `oldest`.
    private var ring: [Entry] = []
    private var oldest = 0
    private(set) var count = 0
    /// The total size of the entries, as HTTP/2 counts it.
    private var size = 0
    /// The maximum size.
    private var sizeMax: Int
    /// The number of times that an entry was added or the size was set.
    private(set) var changes = 0

    init(sizeMax: Int) {
        self.sizeMax = sizeMax
    }

    /// Sets the maximum size.
    mutating func resize(to sizeMax: Int) {
        self.changes += 1
        self.sizeMax = sizeMax
        self.evict(until: sizeMax)
    }

    /// Returns an entry and its note. Index 0 is the newest entry. The result is valid until the table changes.
    @inline(__always)
    func entry(_ index: Int) -> (name: ByteView, value: ByteView, note: UInt32) {
        let entry = self.ring[self.place(index)]
        let start = entry.start - self.dropped
        let (nameCount, valueCount) = (Int(entry.nameCount), Int(entry.valueCount))
        let bytes = self.bytes.view
        let name = bytes.slice(start, count: nameCount)
        return (name, bytes.slice(start + nameCount, count: valueCount), entry.note)
    }

    mutating func setNote(_ note: UInt32, of index: Int) {
        self.ring[self.place(index)].note = note
    }

    /// Adds an entry, and removes the oldest entries to make space. An entry larger than the table empties the table.
    ///
    /// - `name`: a name outside the table's memory, like `value`.
    mutating func insert(name: ByteView, value: ByteView, note: UInt32) {
        self.changes += 1
        let entrySize = name.count + value.count + Self.entryBytes
        self.evict(until: self.sizeMax - entrySize)
        guard entrySize <= self.sizeMax else { return }
        if self.count == self.ring.count { self.growRing() }
        let entry = Entry(
            start: self.dropped + self.bytes.count,
            nameCount: UInt32(name.count),
            valueCount: UInt32(value.count),
            note: note
        )
        self.ring[(self.oldest + self.count) & (self.ring.count - 1)] = entry
        self.count += 1
        self.size += entrySize
        self.bytes.append(name, value)
    }

    /// Returns the index of an entry in the ring buffer.
    @inline(__always)
    private func place(_ index: Int) -> Int {
        precondition(UInt(bitPattern: index) < UInt(bitPattern: self.count), "no such entry")
        return (self.oldest + self.count - 1 - index) & (self.ring.count - 1)
    }

    private mutating func evict(until size: Int) {
        while self.count > 0, self.size > size {
            let entry = self.ring[self.oldest]
            let bytes = Int(entry.nameCount) + Int(entry.valueCount)
            self.bytes.consume(bytes)
            self.dropped += bytes
            self.size -= bytes + Self.entryBytes
            self.oldest = (self.oldest + 1) & (self.ring.count - 1)
            self.count -= 1
        }
    }

    /// Doubles the size of the ring buffer, which is always a power of two.
    private mutating func growRing() {
        let none = Entry(start: 0, nameCount: 0, valueCount: 0, note: 0)
        var grown = [Entry](repeating: none, count: max(8, self.ring.count * 2))
        for index in 0..<self.count { grown[index] = self.ring[(self.oldest + index) & (self.ring.count - 1)] }
        self.ring = grown
        self.oldest = 0
    }
}

/// The Huffman code of RFC 7541, appendix B, decoded with tables that are built once.
///
/// The code is canonical: codes of equal length are consecutive in the order of their symbols, and longer codes follow
/// shorter ones. The lengths therefore define the code.
@safe
struct HuffmanCode: @unchecked Sendable {
    private static let shortBitsMax = 12
    private static let bitsMax = 30
    private static let endOfString = 256

    /// One or two symbols whose codes are the first of some bits, packed into one word.
    private struct Entry {
        private let word: UInt32

        /// The end-of-string code, which represents no byte.
        static let end = Entry(word: 0)

        private init(word: UInt32) {
            self.word = word
        }

        /// Creates an entry for one symbol and the length of its code in bits.
        init(_ symbol: UInt16, bits: Int) {
            self.word = UInt32(symbol) | UInt32(bits) << 16 | 1 << 24
        }

        /// Returns this entry's symbol followed by the symbol of `next`.
        func followed(by next: Entry) -> Entry {
            Entry(word: self.word + UInt32(next.symbols) << 8 + UInt32(next.bits) << 16 + 1 << 24)
        }

        var isEnd: Bool { self.word == 0 }
        var symbols: UInt16 { UInt16(truncatingIfNeeded: self.word) }
        /// The total length of the codes in bits.
        var bits: Int { Int(self.word >> 16 & 0xFF) }
        var count: Int { Int(self.word >> 24) }
    }

    /// The entry for each value of the next twelve bits; `end` if the first code is longer.
    private let short: UnsafePointer<Entry>
    /// For each length of longer codes: the lowest 30-bit value above all codes of at most this length.
    private let ends: UnsafePointer<UInt32>
    /// For each code length: the number that is added to a code to get the index of its symbol in `ordered`.
    private let places: UnsafePointer<Int32>
    /// The symbols in the order of their codes.
    private let ordered: UnsafePointer<UInt16>

    /// The shared instance. Its tables are never freed.
    static let shared = HuffmanCode()

    private init() {
        let short = UnsafeMutablePointer<Entry>.allocate(capacity: 1 << Self.shortBitsMax)
        unsafe short.initialize(repeating: .end, count: 1 << Self.shortBitsMax)
        let ends = unsafe Self.table(of: UInt32.self, count: Self.bitsMax + 1)
        let places = unsafe Self.table(of: Int32.self, count: Self.bitsMax + 1)
        let ordered = unsafe Self.table(of: UInt16.self, count: Self.endOfString + 1)
        var place = 0
        var code: UInt32 = 0
        for bits in 1...Self.bitsMax {
            code <<= 1
            unsafe places[bits] = Int32(place) - Int32(code)
            for symbol in 0...Self.endOfString where Self.lengths[symbol] == bits {
                if bits <= Self.shortBitsMax {
                    let entry = Entry(UInt16(symbol), bits: bits)
                    let first = Int(code) << (Self.shortBitsMax - bits)
                    for index in first..<first + 1 << (Self.shortBitsMax - bits) { unsafe short[index] = entry }
                }
                unsafe ordered[place] = UInt16(symbol)
                place += 1
                code += 1
            }
            unsafe ends[bits] = code << (Self.bitsMax - bits)
        }
        let pairs = UnsafeMutablePointer<Entry>.allocate(capacity: 1 << Self.shortBitsMax)
        for index in 0..<1 << Self.shortBitsMax {
            unsafe (pairs + index).initialize(to: Self.pair(short, at: index))
        }
        unsafe short.deallocate()
        unsafe (self.short, self.ends) = (UnsafePointer(pairs), UnsafePointer(ends))
        unsafe (self.places, self.ordered) = (UnsafePointer(places), UnsafePointer(ordered))
    }

    /// Returns the entry for the bits `index`. It has a second symbol if the code of that symbol also fits.
    private static func pair(_ single: UnsafeMutablePointer<Entry>, at index: Int) -> Entry {
        let entry = unsafe single[index]
        let next = unsafe single[index << entry.bits & (1 << Self.shortBitsMax - 1)]
        guard !entry.isEnd, !next.isEnd, entry.bits + next.bits <= Self.shortBitsMax else { return entry }
        return entry.followed(by: next)
    }

    private static func table<Value: FixedWidthInteger>(of _: Value.Type, count: Int) -> UnsafeMutablePointer<Value> {
        let table = UnsafeMutablePointer<Value>.allocate(capacity: count)
        unsafe table.initialize(repeating: 0, count: count)
        return unsafe table
    }

    /// Appends the decoded bytes of `coded`.
    ///
    /// - Returns: false if the string contains the end-of-string code, or if its padding is not zero to seven one bits.
    ///   `output` then has the bytes before the error.
    func decode(_ coded: ByteView, into output: inout ByteBuffer) -> Bool {
        guard coded.count > 0 else { return true }
        // A code has at least five bits. Symbols are written two at a time.
        let start = unsafe output.reserve(coded.count * 8 / 5 + 1).baseAddress.unsafelyUnwrapped
        var room = unsafe start
        defer { output.commit(unsafe room - start) }
        // The next bits are the highest `held` bits of `bits`.
        var (bits, held): (UInt64, Int) = (0, 0)
        var taken = 0
        let last = coded.count - 8
        while last >= 0, taken < coded.count {
            // Bits after these `held` bits are read again in the next iteration.
            if taken <= last {
                bits |= UInt64(bigEndian: coded.load(UInt64.self, at: taken)) &>> UInt64(held)
                taken &+= (63 &- held) &>> 3
                held |= 56
            } else {
                // Fewer than eight bytes remain. Load the last eight bytes, and remove the bytes that were already
                // read.
                let rest = UInt64(bigEndian: coded.load(UInt64.self, at: last)) &<< UInt64((taken &- last) &* 8)
                bits |= rest &>> UInt64(held)
                let count = min((63 &- held) &>> 3, coded.count &- taken)
                taken &+= count
                held &+= count &* 8
            }
            while held >= Self.shortBitsMax {
                var entry = unsafe self.short[Int(truncatingIfNeeded: bits &>> UInt64(64 - Self.shortBitsMax))]
                if entry.isEnd {
                    // A long code may still be incomplete.
                    guard held >= Self.bitsMax else { break }
                    entry = self.long(bits)
                    guard !entry.isEnd else { return false }
                }
                unsafe room.storeBytes(of: entry.symbols.littleEndian, as: UInt16.self)
                unsafe room += entry.count
                bits = bits &<< UInt64(entry.bits)
                held &-= entry.bits
            }
        }
        while true {
            while held <= 56, taken < coded.count {
                bits |= UInt64(coded[taken]) &<< UInt64(56 - held)
                taken += 1
                held += 8
            }
            guard held > 0 else { return true }
            // The padding consists of ones, which are the beginning of the end-of-string code.
            if taken == coded.count { bits |= UInt64.max >> UInt64(held) }
            guard bits < .max else { return held < 8 }
            // Only the end-of-string code consists of ones, so no symbol of a valid string needs the padding.
            let entry = self.entry(bits)
            guard !entry.isEnd, entry.bits <= held else { return false }
            unsafe room.storeBytes(of: entry.symbols.littleEndian, as: UInt16.self)
            unsafe room += entry.count
            bits = bits &<< UInt64(entry.bits)
            held -= entry.bits
        }
    }

    /// Returns the entry for the first `bitsMax` bits of `bits`.
    @inline(__always)
    private func entry(_ bits: UInt64) -> Entry {
        let entry = unsafe self.short[Int(truncatingIfNeeded: bits &>> UInt64(64 - Self.shortBitsMax))]
        return entry.isEnd ? self.long(bits) : entry
    }

    /// Returns the entry of a code longer than `shortBitsMax`.
    @inline(never)
    private func long(_ bits: UInt64) -> Entry {
        let next = UInt32(truncatingIfNeeded: bits >> UInt64(64 - Self.bitsMax))
        var length = Self.shortBitsMax + 1
        while length < Self.bitsMax, unsafe next >= self.ends[length] { length += 1 }
        let code = next >> UInt32(Self.bitsMax - length)
        let symbol = unsafe self.ordered[Int(self.places[length]) + Int(code)]
        return symbol == Self.endOfString ? .end : Entry(symbol, bits: length)
    }
}

extension HuffmanCode {
    /// The code length in bits of each byte value, and then of the end-of-string symbol.
    private static let lengths: InlineArray<257, UInt8> = [
        13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
        28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
        6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
        5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
        13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
        7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
        15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
        6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
        20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
        24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
        22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
        21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
        26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
        19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
        20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
        26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
        30,
    ]
}

internal import Wire

/// The fields that a peer's earlier field blocks have left for later ones to refer to: RFC 7541 §2.3.2.
///
/// It takes no memory before the first of them.
@safe
struct DynamicTable: ~Copyable {
    /// What an entry takes besides its bytes: RFC 7541 §4.1.
    static let entryBytes = 32

    private struct Entry {
        /// Where its name begins, among all bytes that were ever in the table; its value follows the name.
        var start: Int
        var nameCount: UInt32
        var valueCount: UInt32
        /// What whoever reads the fields has noted of it.
        var note: UInt32
    }

    /// The names and values of all entries, the oldest first.
    private var bytes = ByteBuffer()
    /// Bytes that were in the table and are there no more.
    private var dropped = 0
    /// The entries, in a ring, of which `count` are in use from `oldest` on.
    private var ring: [Entry] = []
    private var oldest = 0
    private(set) var count = 0
    /// What the entries take, as HTTP/2 counts it.
    private var size = 0
    /// What they may take.
    private var sizeMax: Int
    /// How often entries were added, or the size was changed.
    private(set) var changes = 0

    init(sizeMax: Int) {
        self.sizeMax = sizeMax
    }

    /// Lets the entries take so much from now on.
    mutating func resize(to sizeMax: Int) {
        self.changes += 1
        self.sizeMax = sizeMax
        self.evict(until: sizeMax)
    }

    /// The entry at an index from 0, the newest, to `count`, and what was noted of it; valid until the table changes.
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

    /// Adds an entry, for which the oldest make room; one that is larger than the table leaves it empty.
    ///
    /// - Parameter name: no bytes of the table, and `value` neither.
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

    /// Where in the ring an entry is.
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

    /// Doubles the ring, whose length is a power of two.
    private mutating func growRing() {
        let none = Entry(start: 0, nameCount: 0, valueCount: 0, note: 0)
        var grown = [Entry](repeating: none, count: max(8, self.ring.count * 2))
        for index in 0..<self.count { grown[index] = self.ring[(self.oldest + index) & (self.ring.count - 1)] }
        self.ring = grown
        self.oldest = 0
    }
}

import Wire

/// Refused pushes by the names of reasons, as gateways write them of one topic: name (1 byte and its own) and count (8
/// bytes, little-endian), as often as there are reasons. What the reasons are is the gateways' to know, of which some
/// may be newer.
struct RefusedCounts: Hashable {
    private var counts: [String: Int64] = [:]

    /// None.
    init() {}

    /// Counts what a row says, too.
    ///
    /// - Returns: false when it is no such row.
    mutating func add(_ row: ByteView) -> Bool {
        var offset = 0
        while offset < row.count {
            let start = offset + 1
            let end = start + Int(row[offset])
            guard end + 8 <= row.count else { return false }
            self.counts[row[start..<end].string, default: 0] &+= Int64(littleEndian: row.load(Int64.self, at: end))
            offset = end + 8
        }
        return true
    }

    /// Writes a row, in the order of the reasons' names.
    func store(to buffer: inout ByteBuffer) {
        for (reason, count) in self.counts.sorted(by: { $0.key < $1.key }) {
            buffer.append(UInt8(clamping: reason.utf8.count))
            buffer.append(reason)
            buffer.append(memoryOf: count.littleEndian)
        }
    }
}

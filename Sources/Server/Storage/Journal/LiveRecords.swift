import Engine

/// Where the newest record of each key lies.
package struct LiveRecords: ~Copyable {
    /// The bytes of a record, header included, that a place can express.
    static let recordBytesMax = 1 << 20 - 1
    /// Indexes past this one would take more memory than a machine that keeps so many devices has: 2 GiB.
    package static let indexMax: UInt32 = 1 << 28

    /// By kind and index: row id << 20 | record bytes; 0 for a key without a record.
    private var places: [[UInt64]]
    private(set) var rows: RowLedger
    /// The rows that are kept for the history.
    var held = HeldEvents()

    init() {
        self.places = Array(repeating: [], count: 1 + RecordKey.Kind.allCases.reduce(0) { max($0, Int($1.rawValue)) })
        self.rows = RowLedger()
    }

    static func canHold(_ key: RecordKey, bytes: Int) -> Bool {
        let isIndex = key.kind == .events || key.index <= Self.indexMax || key.index == RecordKey.everyTopic
        return bytes <= Self.recordBytesMax && isIndex
    }

    /// The row that holds the newest record of `key`, of events the newest of all; nil when there is none.
    func row(of key: RecordKey) -> Int64? {
        let slot = Self.slot(key)
        let kind = Int(key.kind.rawValue)
        guard slot < self.places[kind].count, self.places[kind][slot] != 0 else { return nil }
        return Int64(self.places[kind][slot] >> 20)
    }

    /// Notes that the newest record of `key` now lies in `row`.
    mutating func put(_ key: RecordKey, row: Int64, bytes: Int) {
        let old = self.exchange(key, row: row, bytes: bytes)
        let isFirst = old == 0 || Int64(old >> 20) != row
        precondition(isFirst || key.kind == .events, "a batch holds each key once")
        if old != 0 { self.rows.removeLive(Int(old & 0xF_FFFF), row: Int64(old >> 20)) }
        self.rows.addLive(bytes, row: row)
    }

    /// Notes where a record lies without counting it, and returns what was noted before.
    mutating func exchange(_ key: RecordKey, row: Int64, bytes: Int) -> UInt64 {
        precondition(Self.canHold(key, bytes: bytes), "a record of \(bytes) bytes about index \(key.index)")
        let slot = Self.slot(key)
        let kind = Int(key.kind.rawValue)
        if slot >= self.places[kind].count { self.grow(kind, slot: slot) }
        let old = self.places[kind][slot]
        self.places[kind][slot] = UInt64(row) << 20 | UInt64(bytes)
        return old
    }

    mutating func appendRow() {
        self.rows.append()
    }

    mutating func setNewestRow(contentBytes: Int) {
        self.rows.setNewest(contentBytes: contentBytes)
        self.held.endRow(bytes: contentBytes + RowLedger.overheadBytes)
    }

    mutating func dropOldestRow() {
        self.rows.dropOldest()
    }

    mutating func setRows(_ rows: consuming RowLedger) {
        self.rows = rows
    }

    /// `RecordKey.everyTopic`, the largest index, wraps round to the first slot. All events share one: the newest of
    /// their records counts for as long as there is no other, so that the next one's number is known.
    private static func slot(_ key: RecordKey) -> Int {
        key.kind == .events ? 0 : Int(key.index &+ 1)
    }

    private mutating func grow(_ kind: Int, slot: Int) {
        let count = max(slot + 1, self.places[kind].count * 3 / 2)
        self.places[kind].reserveCapacity(count)
        self.places[kind].append(contentsOf: repeatElement(0, count: count - self.places[kind].count))
    }
}

import Engine

/// The row of the newest record of each key.
package struct LiveRecords: ~Copyable {
    /// The maximum number of bytes of a record, including its header, that an element of `places` can store.
    static let recordBytesMax = 1 << 20 - 1
    /// The largest index of a key. Higher indexes would need more than 2 GiB of memory.
    package static let indexMax: UInt32 = 1 << 28

    /// The location of each record by kind and index: row id << 20 | record bytes; 0 for a key without a record.
    private var places: [[UInt64]] = Array(
        repeating: [],
        count: 1 + RecordKey.Kind.allCases.reduce(0) { max($0, Int($1.rawValue)) }
    )
    var rows = RowLedger()
    /// The rows that are kept for the history.
    var held = HeldEvents()

    static func canHold(_ key: RecordKey, bytes: Int) -> Bool {
        let isIndex = key.isEvents || key.index <= Self.indexMax || key.index == RecordKey.everyTopic
        return bytes <= Self.recordBytesMax && isIndex
    }

    /// Returns the row of the newest record of `key`; nil if there is none. All event records share one key.
    func row(of key: RecordKey) -> Int64? {
        let slot = Self.slot(key)
        let kind = Int(key.kind.rawValue)
        guard slot < self.places[kind].count, self.places[kind][slot] != 0 else { return nil }
        return Int64(self.places[kind][slot] >> 20)
    }

    /// Records that the newest record of `key` is now in `row`.
    mutating func put(_ key: RecordKey, row: Int64, bytes: Int) {
        let old = self.exchange(key, row: row, bytes: bytes)
        let isFirst = old == 0 || Int64(old >> 20) != row
        precondition(isFirst || key.isEvents, "a batch holds each key once")
        if old != 0 { self.rows.removeLive(Int(old & 0xF_FFFF), row: Int64(old >> 20)) }
        self.rows.addLive(bytes, row: row)
    }

    /// Sets the location of a record and returns the previous one. Does not change the counts of live bytes.
    mutating func exchange(_ key: RecordKey, row: Int64, bytes: Int) -> UInt64 {
        precondition(Self.canHold(key, bytes: bytes), "a record of \(bytes) bytes about index \(key.index)")
        let slot = Self.slot(key)
        let kind = Int(key.kind.rawValue)
        if slot >= self.places[kind].count { self.grow(kind, slot: slot) }
        let old = self.places[kind][slot]
        self.places[kind][slot] = UInt64(row) << 20 | UInt64(bytes)
        return old
    }

    mutating func setNewestRow(contentBytes: Int) {
        self.rows.setNewest(contentBytes: contentBytes)
        self.held.endRow(bytes: contentBytes + RowLedger.overheadBytes)
    }

    /// Returns the index of a key in `places`. `RecordKey.everyTopic`, the largest index, wraps around to index 0. All
    /// event records share one index. Only the newest of them is live, because it has the last number.
    private static func slot(_ key: RecordKey) -> Int {
        key.isEvents ? 0 : Int(key.index &+ 1)
    }

    private mutating func grow(_ kind: Int, slot: Int) {
        let count = max(slot + 1, self.places[kind].count * 3 / 2)
        self.places[kind].reserveCapacity(count)
        self.places[kind].append(contentsOf: repeatElement(0, count: count - self.places[kind].count))
    }
}

/// The rows of the file, the oldest first, with the number of live bytes of each.
struct RowLedger: ~Copyable {
    struct Row: Hashable {
        /// The approximate size of the row in the file.
        var bytes: UInt32
        /// The bytes of the row's live records. A record is live if it is the newest of its key.
        var liveBytes: UInt32
    }

    /// The bytes of a row in the file in addition to its content.
    static let overheadBytes = 32

    private var rows: [Row] = []
    /// The index of the oldest row. Elements before it belong to deleted rows.
    private var head = 0
    /// The id of the oldest row, or of the next row if there is none.
    private(set) var first: Int64 = 1
    private(set) var bytes = 0
    private(set) var liveBytes = 0

    init() {}

    /// - `rows`: the rows, the oldest first.
    init(rows: [Row], first: Int64) {
        self.rows = rows
        self.first = first
        for row in rows {
            self.bytes += Int(row.bytes)
            self.liveBytes += Int(row.liveBytes)
        }
    }

    var count: Int { self.rows.count - self.head }

    /// The id of the next row.
    var next: Int64 { self.first + Int64(self.count) }

    /// The bytes that do not belong to live records.
    var deadBytes: Int { self.bytes - self.liveBytes }

    /// The oldest row.
    var oldest: Row? { self.count > 0 ? self.rows[self.head] : nil }

    mutating func append() {
        self.rows.append(Row(bytes: 0, liveBytes: 0))
    }

    /// Sets the size of the newest row.
    mutating func setNewest(contentBytes: Int) {
        let bytes = contentBytes + Self.overheadBytes
        self.rows[self.rows.count - 1].bytes = UInt32(bytes)
        self.bytes += bytes
    }

    mutating func addLive(_ bytes: Int, row: Int64) {
        self.rows[self.head + Int(row - self.first)].liveBytes += UInt32(bytes)
        self.liveBytes += bytes
    }

    mutating func removeLive(_ bytes: Int, row: Int64) {
        self.rows[self.head + Int(row - self.first)].liveBytes -= UInt32(bytes)
        self.liveBytes -= bytes
    }

    mutating func dropOldest() {
        let row = self.rows[self.head]
        precondition(row.liveBytes == 0, "a row is dropped when none of its records counts")
        self.bytes -= Int(row.bytes)
        self.head += 1
        self.first += 1
        if self.head > 1024, self.head > self.rows.count / 2 {
            self.rows.removeFirst(self.head)
            self.head = 0
        }
    }
}

/// The rows whose events the history has not yet made durable. The journal keeps them and all later rows.
struct HeldEvents: ~Copyable {
    /// A row with events.
    struct Row: Hashable {
        let row: Int64
        /// The number of the last event record in the row.
        var sequence: UInt64
        var events: Int
        /// The bytes of all rows added before this row.
        var bytesBefore: Int
    }

    private var rows: [Row] = []
    /// The index of the first row that is kept. Elements before it belong to released rows.
    private var head = 0
    /// The bytes of all rows ever added.
    private var addedBytes = 0
    /// The number of the newest event record, even if its row was released; 0 if there is none.
    private(set) var newestSequence: UInt64 = 0

    /// The oldest row that is kept; nil if there is none.
    var first: Row? { self.head < self.rows.count ? self.rows[self.head] : nil }

    /// The bytes of the rows that are kept.
    var bytes: Int { self.first.map { self.addedBytes - $0.bytesBefore } ?? 0 }

    /// The last row that was added, even if it was released; nil if there is none.
    var last: Row? { self.rows.last }

    /// Records that the newest row, which is still being filled, has an event record with `events` events.
    mutating func append(row: Int64, sequence: UInt64, events: Int) {
        self.newestSequence = max(self.newestSequence, sequence)
        if let last = self.rows.last, last.row == row {
            self.rows[self.rows.count - 1].sequence = max(last.sequence, sequence)
            self.rows[self.rows.count - 1].events += events
        } else {
            self.rows.append(Row(row: row, sequence: sequence, events: events, bytesBefore: self.addedBytes))
        }
    }

    /// Adds the size of the newest row to the total.
    mutating func endRow(bytes: Int) {
        self.addedBytes += bytes
    }

    /// Releases the rows whose event records are all durable in the history: those up to record `sequence`.
    mutating func release(through sequence: UInt64) {
        while let first = self.first, first.sequence <= sequence { self.removeFirst() }
    }

    /// Releases the oldest rows until at most `bytesMax` bytes remain.
    ///
    /// - Returns: the number of events in the released rows.
    mutating func giveUp(toBytes bytesMax: Int) -> Int {
        var events = 0
        while self.bytes > bytesMax, let first = self.first {
            events += first.events
            self.removeFirst()
        }
        return events
    }

    /// Reverses the rows, which were added from the newest to the oldest, and sets their `bytesBefore`.
    ///
    /// - Parameters:
    ///   - ledger: all rows, the oldest first.
    ///   - oldest: the id of the first row of `ledger`.
    mutating func finishLoading(_ ledger: [RowLedger.Row], oldest: Int64) {
        self.rows.reverse()
        var location = 0
        for (number, row) in ledger.enumerated() {
            if location < self.rows.count, self.rows[location].row == oldest + Int64(number) {
                self.rows[location].bytesBefore = self.addedBytes
                location += 1
            }
            self.addedBytes += Int(row.bytes)
        }
    }

    private mutating func removeFirst() {
        self.head += 1
        if self.head == self.rows.count {
            self.rows.removeAll(keepingCapacity: true)
            self.head = 0
        } else if self.head > 1024, self.head > self.rows.count / 2 {
            self.rows.removeFirst(self.head)
            self.head = 0
        }
    }
}

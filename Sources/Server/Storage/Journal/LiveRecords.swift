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

/// The rows of the file, from the oldest to the newest, and how many of their bytes still count.
struct RowLedger: ~Copyable {
    struct Row: Hashable {
        /// What the row takes in the file, about.
        var bytes: UInt32
        /// The bytes of its records that are the newest of their keys.
        var liveBytes: UInt32
    }

    /// What a row takes in the file beside its content.
    static let overheadBytes = 32

    private var rows: [Row] = []
    /// The place of the oldest row; what lies before it is of rows that are gone.
    private var head = 0
    /// The id of the oldest row, or of the next one when there is none.
    private(set) var first: Int64 = 1
    private(set) var bytes = 0
    private(set) var liveBytes = 0

    init() {}

    /// - Parameter rows: from the oldest to the newest.
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

    /// The bytes of records that are out of date.
    var deadBytes: Int { self.bytes - self.liveBytes }

    /// The oldest row.
    var oldest: Row? { self.count > 0 ? self.rows[self.head] : nil }

    mutating func append() {
        self.rows.append(Row(bytes: 0, liveBytes: 0))
    }

    /// Says how long the newest row became.
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

/// The rows with events that the history has not made durable: they are kept, as are all rows behind the first of them.
struct HeldEvents: ~Copyable {
    /// A row with events.
    struct Row: Hashable {
        let row: Int64
        /// The number of the last record of events in it.
        var sequence: UInt64
        var events: Int
        /// The bytes of the rows that were added before it.
        var bytesBefore: Int
    }

    private var rows: [Row] = []
    /// The place of the first row that is kept; what lies before it was let go of.
    private var head = 0
    /// The bytes of all rows that were ever added.
    private var addedBytes = 0
    /// The number of the newest record of events, kept or not; 0 when there is none.
    private(set) var newestSequence: UInt64 = 0

    init() {}

    /// The oldest row that is kept; nil when there is none.
    var first: Row? { self.head < self.rows.count ? self.rows[self.head] : nil }

    /// The bytes of the rows that are kept.
    var bytes: Int { self.first.map { self.addedBytes - $0.bytesBefore } ?? 0 }

    /// The last row that was noted; nil when there is none.
    var last: Row? { self.rows.last }

    /// Notes that the newest row, which is being filled, holds a record of so many events.
    mutating func append(row: Int64, sequence: UInt64, events: Int) {
        self.newestSequence = max(self.newestSequence, sequence)
        if let last = self.rows.last, last.row == row {
            self.rows[self.rows.count - 1].sequence = max(last.sequence, sequence)
            self.rows[self.rows.count - 1].events += events
        } else {
            self.rows.append(Row(row: row, sequence: sequence, events: events, bytesBefore: self.addedBytes))
        }
    }

    /// The newest row takes so many bytes.
    mutating func endRow(bytes: Int) {
        self.addedBytes += bytes
    }

    /// Lets go of the rows whose events are durable elsewhere, up to record `sequence`.
    mutating func release(through sequence: UInt64) {
        while let first = self.first, first.sequence <= sequence { self.removeFirst() }
    }

    /// Lets go of the oldest rows until the others take `bytesMax` at most.
    ///
    /// - Returns: how many events those had.
    mutating func giveUp(toBytes bytesMax: Int) -> Int {
        var events = 0
        while self.bytes > bytesMax, let first = self.first {
            events += first.events
            self.removeFirst()
        }
        return events
    }

    /// Brings what was appended from the newest row to the oldest into order.
    ///
    /// - Parameters:
    ///   - ledger: every row, from the oldest to the newest.
    ///   - oldest: the first of them.
    mutating func finishLoading(_ ledger: [RowLedger.Row], oldest: Int64) {
        self.rows.reverse()
        var place = 0
        for (number, row) in ledger.enumerated() {
            if place < self.rows.count, self.rows[place].row == oldest + Int64(number) {
                self.rows[place].bytesBefore = self.addedBytes
                place += 1
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

import Engine

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

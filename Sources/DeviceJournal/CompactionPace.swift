/// How much of the oldest rows a commit writes again: enough to keep the file near twice the live data, and never so
/// much that a commit takes several times as long.
///
/// Rows go in the order of their age, and no record is copied twice before all others had their turn. So over one
/// turn at most the live bytes are copied while at least the dead bytes' worth is committed.
struct CompactionPace {
    /// Bytes of live records that may be copied.
    private var copyBytes = 0
    /// Bytes of rows that may be read and deleted.
    private var passBytes = 0
    private var isDue = false
    private let limits: JournalLimits

    init(limits: JournalLimits) {
        self.limits = limits
    }

    /// A commit of `bytes` earns the right to so much work. What is not used is kept, up to a row's worth, so that
    /// small commits come to the row's turn too.
    mutating func earn(_ bytes: Int, _ rows: borrowing RowLedger) {
        let live = rows.liveBytes
        let dead = rows.deadBytes
        // Beginning at 3/4 leaves room for a run of rows in which nothing is dead: to pass all of the live data at
        // this rate adds 36 % of it to the file, which makes 2.1 times the live data at the worst moment.
        self.isDue = dead > max(live / 4 * 3, self.limits.compactionFloorBytes)
        let excess = live > 0 ? Double(dead) / Double(live) - 0.75 : 1
        let rate = min(4, 1 + 10 * max(0, excess))
        self.copyBytes = min(self.copyBytes, self.limits.rowBytesMax) + Int(Double(bytes) * rate)
        self.passBytes = min(self.passBytes, 4 * self.limits.rowBytesMax) + bytes * 8
    }

    /// Whether the oldest row may go now; then it is paid for.
    mutating func spend(on row: RowLedger.Row, _ rows: borrowing RowLedger) -> Bool {
        let live = Int(row.liveBytes)
        let isWorthIt = live == 0 || self.isDue && rows.deadBytes > rows.liveBytes / 4 * 3
        guard isWorthIt, live <= self.copyBytes, Int(row.bytes) <= self.passBytes else { return false }
        self.copyBytes -= live
        self.passBytes -= Int(row.bytes)
        return true
    }
}

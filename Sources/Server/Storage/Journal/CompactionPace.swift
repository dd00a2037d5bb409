/// How much of the oldest rows a commit writes again: enough to keep the file near twice the live data, and never so
/// much that a commit takes several times as long.
///
/// Rows go in the order of their age, and no record is copied twice before all others had their turn. So over one
/// turn at most the live bytes are copied while at least the dead bytes' worth is committed.
struct CompactionPace {
    /// Dead bytes, as a share of the live ones, from which on rows are compacted.
    private static let deadShare = 0.9
    /// Bytes copied for each byte committed: 1 at that share, and so much more as dead bytes exceed it.
    ///
    /// With writes all over the keys 0.3 is enough. A long run of old rows in which nothing is dead is the other
    /// extreme: passed at this rate, it makes the file 2.2 times as large as the live data at the worst moment.
    private static let rateIncrease = 16.0
    private static let rateMax = 6.0
    /// Bytes of rows read or deleted for each byte committed.
    private static let passRate = 12

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
        let live = Double(rows.liveBytes)
        let excess = live > 0 ? Double(rows.deadBytes) / live - Self.deadShare : 1
        self.isDue = excess > 0 && rows.bytes > self.limits.compactionFloorBytes
        let rate = min(Self.rateMax, 1 + Self.rateIncrease * max(0, excess))
        self.copyBytes = min(self.copyBytes, self.limits.rowBytesMax) + Int(Double(bytes) * rate)
        self.passBytes = min(self.passBytes, 4 * self.limits.rowBytesMax) + bytes * Self.passRate
    }

    /// Whether the oldest row may go now; then it is paid for.
    mutating func spend(on row: RowLedger.Row) -> Bool {
        let live = Int(row.liveBytes)
        guard live == 0 || self.isDue, live <= self.copyBytes, Int(row.bytes) <= self.passBytes else { return false }
        self.copyBytes -= live
        self.passBytes -= Int(row.bytes)
        return true
    }
}

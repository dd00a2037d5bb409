import Policy

/// Policy time as this gateway has seen it: the primary's clock, set forward where an earlier primary was ahead, and
/// never earlier than what was seen before.
struct PolicyTime {
    /// The latest moment that was handed out, or read in a row.
    private(set) var last = Instant(milliseconds: 0)

    /// The moment of a transaction.
    ///
    /// - Parameters:
    ///   - wall: the primary's clock, read after the rows were locked.
    ///   - shift: how far policy time is ahead of it.
    ///   - rows: the latest moment at which one of the rows was written.
    mutating func moment(wall: Int64, shift: Int64, rows: Int64) -> Instant {
        let now = max(wall + shift, self.last.milliseconds, rows)
        self.last = Instant(milliseconds: now)
        return self.last
    }

    /// The wall clock at a moment: what the primary showed, or later where the moment is later than that. So the two
    /// stand to one another as the shift says, however long an answer was on its way.
    static func wall(_ moment: Instant, shift: Int64) -> Int64 { moment.milliseconds - shift }

    /// Nothing earlier is handed out from here on.
    mutating func reached(_ moment: Int64) {
        self.last = max(self.last, Instant(milliseconds: moment))
    }
}

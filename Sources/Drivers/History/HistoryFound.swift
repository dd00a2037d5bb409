package import LaunchPolicy

/// What the file of a history held when it was opened.
package struct HistoryFound: Hashable, Sendable {
    /// There was none, or none that is of use.
    package let isNew: Bool
    /// The newest record of events in the file; 0 when none had a number.
    package let sequence: UInt64
    /// The last records in the file of earlier numbers, which went on when others began anew: of those behind them the
    /// events may be missing.
    package let leftOff: [UInt64]
    /// When its newest event happened; nil when it holds none.
    package let newest: Instant?

    package init(isNew: Bool, sequence: UInt64, leftOff: [UInt64] = [], newest: Instant?) {
        self.isNew = isNew
        self.sequence = sequence
        self.leftOff = leftOff
        self.newest = newest
    }

    /// The records whose events are in the file.
    package var positions: RecordPositions { RecordPositions(newest: self.sequence, leftOff: self.leftOff) }
}

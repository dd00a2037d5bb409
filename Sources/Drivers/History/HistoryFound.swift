package import LaunchPolicy

/// What the file of a history held when it was opened.
package struct HistoryFound: Hashable, Sendable {
    /// There was none, or none that is of use.
    package let isNew: Bool
    /// The record of events up to which all are in the file; 0 when none had a number.
    package let sequence: UInt64
    /// When its newest event happened; nil when it holds none.
    package let newest: Instant?

    package init(isNew: Bool, sequence: UInt64, newest: Instant?) {
        self.isNew = isNew
        self.sequence = sequence
        self.newest = newest
    }
}

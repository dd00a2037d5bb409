package import Policy

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

/// What befell the history and should be told to whoever runs the gateway; the gateway itself goes on.
package enum HistoryTrouble: Hashable, Sendable {
    /// The file could not be used; it now has another name, and the history begins anew. `isInPlace`: a file that was
    /// set aside before is gone.
    case setAside(path: String, reason: String, isInPlace: Bool)
    /// The file was cut off or replaced while it was in use: it goes on to record `found`, and went on to `durable`.
    case cutOff(found: UInt64, durable: UInt64)
    /// Events cannot be written, or questions not be answered; told once, and tried again.
    case failing(reason: String)
    /// The history works again; so many events were lost since the trouble began.
    case recovered(droppedEvents: Int)

    /// What happened, as a sentence without a full stop.
    package var message: String {
        switch self {
        case .setAside(let path, let reason, let isInPlace):
            "the history begins anew: \(reason); the old file is \(path)"
                + (isInPlace ? ", in place of one that was set aside before" : "")
        case .cutOff(let found, let durable):
            "the history was cut off or replaced while it was in use: it went on to record \(durable), and goes on to "
                + "\(found); what the journal kept is written again"
        case .failing(let reason): "the history cannot be kept for now: \(reason)"
        case .recovered(let droppedEvents): "the history is kept again; \(droppedEvents) events are missing from it"
        }
    }
}

package import Engine

/// Numbers the records of events of each commit, one higher than the last for ever, and writes them.
///
/// Where it is not known which numbers were given, they begin anew with ones that nobody gave: those of the second.
package struct EventNumbers {
    private var next: UInt64
    /// The mark of the key that devices are numbered with.
    private let keyMark: UInt64

    /// - `last`: the number of the newest record there is, in the journal or in the history; 0 for none.
    package init(after last: UInt64, keyMark: UInt64) {
        self.next = last + 1
        self.keyMark = keyMark
    }

    /// The number before the first one of a beginning, `wall` being the wall clock in milliseconds since 1970.
    static func beginning(wall: Int64) -> UInt64 {
        // Up to the year 2106; what follows is below the highest number there can be.
        UInt64(UInt32(clamping: wall / 1000)) * EventRecord.sequencesOfSecond
    }

    /// Writes the events of a batch, which are not numbered yet, as records of the commit they belong to.
    package mutating func write(_ history: HistoryBatch, to records: inout RecordBatch) {
        var start = 0
        while start < history.events.count {
            let sequence = self.next
            self.next += 1
            records.append(EventRecord.key(sequence)) {
                start = EventRecord.write(
                    history.events,
                    from: start,
                    sequence: sequence,
                    keyMark: self.keyMark,
                    to: &$0
                )
            }
            history.records.append(HistoryBatch.Record(sequence: sequence, end: start))
        }
    }
}

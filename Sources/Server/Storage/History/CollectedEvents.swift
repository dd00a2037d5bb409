import Engine

/// Events in the order they happened, and where the records end that they came in.
struct CollectedEvents {
    private struct RecordEnd {
        let sequence: UInt64
        /// How many events there are up to its last one.
        let count: Int
    }

    private(set) var events: [HistoryEvent] = []
    /// The ends of the records that have numbers.
    private var ends: [RecordEnd] = []

    /// Whether there is nothing to be written, not even the number of a record without events.
    var isEmpty: Bool { self.events.isEmpty && self.ends.isEmpty }

    var count: Int { self.events.count }

    /// The records that have numbers, in the order they came.
    var records: [UInt64] { self.ends.map(\.sequence) }

    /// The lowest number of a record; nil when none has a number.
    var oldestRecord: UInt64? { self.ends.lazy.map(\.sequence).min() }

    mutating func append(_ event: HistoryEvent) {
        self.events.append(event)
    }

    /// What was appended last is the end of record `sequence`.
    mutating func endRecord(_ sequence: UInt64) {
        self.ends.append(RecordEnd(sequence: sequence, count: self.events.count))
    }

    mutating func append(_ later: CollectedEvents) {
        let count = self.events.count
        self.events += later.events
        self.ends += later.ends.map { RecordEnd(sequence: $0.sequence, count: count + $0.count) }
    }

    mutating func removeAll() {
        self.events.removeAll(keepingCapacity: true)
        self.ends.removeAll(keepingCapacity: true)
    }

    /// Removes the events of the records for which `isHeld` holds, with those without a number that came before each.
    mutating func removeRecords(where isHeld: (UInt64) -> Bool) {
        guard self.ends.contains(where: { isHeld($0.sequence) }) else { return }
        var kept = CollectedEvents()
        var start = 0
        for end in self.ends {
            defer { start = end.count }
            guard !isHeld(end.sequence) else { continue }
            kept.events += self.events[start..<end.count]
            kept.endRecord(end.sequence)
        }
        kept.events += self.events[start...]
        self = kept
    }
}

import DeviceEngine

/// Events in the order they happened, and where the records end that they came in.
struct CollectedEvents {
    private struct RecordEnd {
        let sequence: UInt64
        /// How many events there are up to its last one.
        let count: Int
    }

    private(set) var events: [HistoryEvent] = []
    /// Of those records that have numbers.
    private var ends: [RecordEnd] = []

    var isEmpty: Bool { self.events.isEmpty }

    var count: Int { self.events.count }

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

    /// Removes the events of all records up to `sequence`, and what happened before them.
    mutating func removeRecords(through sequence: UInt64) {
        guard let end = self.ends.last(where: { $0.sequence <= sequence }) else { return }
        self.events.removeFirst(end.count)
        self.ends = self.ends.filter { $0.sequence > sequence }.map {
            RecordEnd(sequence: $0.sequence, count: $0.count - end.count)
        }
    }
}

package import Engine
import Platform
package import Storage

/// What a group has for the history: what happened, and who asks what happened.
///
/// `@unchecked Sendable`: a batch has one owner at a time, and changes owners under the lock of `Mailbox`.
package final class HistoryBatch: MailboxBatch, @unchecked Sendable {
    /// The most events that wait for the history, about 20 MB; more are dropped, and nothing else is. Those of records
    /// the history reads from the journal then; the others are counted.
    private static let eventsMax = 262_144

    /// The events at which the history's thread is woken, although it rests.
    private static let eventsCollectedMax = 8192

    /// A record of events that was committed with them.
    struct Record {
        let sequence: UInt64
        /// The place behind its last event in `events`.
        let end: Int
    }

    /// What a journal kept for the history at a start; it comes before `events`.
    package var recovery: EventRecovery?
    package var events: [HistoryEvent] = []
    /// The records that `events` were committed in; none of a gateway that keeps nothing.
    var records: [Record] = []
    package var questions: [HistoryQuestion] = []
    /// The bounds to keep to from now on; nil for those there are.
    var limits: HistoryLimits?
    /// Wall clock minus policy time when the newest of `events` happened; nil when there is none.
    var offset: WallOffset?
    /// How many events of no record were dropped because too many waited.
    private(set) var droppedEvents = 0

    package init() {}

    package var isEmpty: Bool {
        self.events.isEmpty && self.questions.isEmpty && self.limits == nil && self.recovery == nil
    }

    /// Whether somebody waits for an answer, or there is so much that more should not be collected.
    package var isUrgent: Bool {
        !self.questions.isEmpty || self.limits != nil || self.recovery != nil
            || self.events.count >= Self.eventsCollectedMax
    }

    package func append(_ other: HistoryBatch) {
        self.recovery = other.recovery ?? self.recovery
        self.offset = other.offset ?? self.offset
        if self.events.count + other.events.count <= Self.eventsMax {
            let count = self.events.count
            self.records += other.records.map { Record(sequence: $0.sequence, end: count + $0.end) }
            self.events.append(contentsOf: other.events)
        } else {
            self.droppedEvents += other.events.count - (other.records.last?.end ?? 0)
        }
        self.questions.append(contentsOf: other.questions)
        if let limits = other.limits { self.limits = limits }
    }

    package func removeAll() {
        self.recovery = nil
        self.offset = nil
        self.events.removeAll(keepingCapacity: true)
        self.records.removeAll(keepingCapacity: true)
        self.questions.removeAll(keepingCapacity: true)
        self.droppedEvents = 0
        self.limits = nil
    }
}

/// Where what happened goes, and who asks what happened.
package protocol HistoryOutlet: AnyObject, Sendable {
    /// Has the file opened, which is neither looked at nor made before.
    ///
    /// - Throws: when it could not be used after a restart.
    func open() throws(StoreError)

    /// What the file held when it was opened, waited for; nil when it could not be opened.
    func waitUntilOpened() -> HistoryFound?

    /// Takes over everything of `batch`, which is empty afterwards.
    func submit(_ batch: inout HistoryBatch)
}

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

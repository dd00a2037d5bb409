import DeviceEngine
import History

/// What a group has for the history: what happened, and who asks what happened.
///
/// `@unchecked Sendable`: a batch has one owner at a time, and changes owners under the lock of `Mailbox`.
final class HistoryBatch: MailboxBatch, @unchecked Sendable {
    /// The most events that wait for the history, about 20 MB; more are dropped and counted, and nothing else is.
    private static let eventsMax = 262_144

    /// A record of events that was committed with them.
    struct Record {
        let sequence: UInt64
        /// The place behind its last event in `events`.
        let end: Int
    }

    /// What a journal kept for the history, the oldest first; it comes before `events`.
    var recovered: [EventRecovery.Record] = []
    var events: [HistoryEvent] = []
    /// The records that `events` were committed in; none of a gateway that keeps nothing.
    var records: [Record] = []
    var questions: [HistoryQuestion] = []
    /// The bounds to keep to from now on; nil for those there are.
    var limits: HistoryLimits?
    /// How many events were dropped because too many waited.
    private(set) var droppedEvents = 0

    init() {}

    var isEmpty: Bool {
        self.events.isEmpty && self.questions.isEmpty && self.limits == nil && self.recovered.isEmpty
    }

    func append(_ other: HistoryBatch) {
        self.recovered += other.recovered
        if self.events.count + other.events.count <= Self.eventsMax {
            let count = self.events.count
            self.records += other.records.map { Record(sequence: $0.sequence, end: count + $0.end) }
            self.events.append(contentsOf: other.events)
        } else {
            self.droppedEvents += other.events.count
        }
        self.questions.append(contentsOf: other.questions)
        if let limits = other.limits { self.limits = limits }
    }

    func removeAll() {
        self.recovered = []
        self.events.removeAll(keepingCapacity: true)
        self.records.removeAll(keepingCapacity: true)
        self.questions.removeAll(keepingCapacity: true)
        self.droppedEvents = 0
        self.limits = nil
    }
}

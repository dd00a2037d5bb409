package import Engine
import Platform
package import Policy
package import Storage
package import Wire

/// The events that a journal keeps and the history does not have: found at a start, and handed over to the history
/// before anybody is served.
package final class EventRecovery {
    /// A record of events as the journal keeps it; without content when its events are of no use.
    package struct Record: Hashable {
        package let sequence: UInt64
        let content: [UInt8]
    }

    /// The start at which they were found.
    package struct Start {
        /// There was no state before: nothing can be missing.
        let isFirst: Bool
        /// Policy time.
        let now: Instant
        /// Wall clock minus policy time.
        let offset: WallOffset

        package init(isFirst: Bool, now: Instant, offset: WallOffset) {
            self.isFirst = isFirst
            self.now = now
            self.offset = offset
        }
    }

    private let keyMark: UInt64
    private(set) var start = Start(isFirst: true, now: .distantPast, offset: WallOffset(wall: 0, now: .distantPast))
    /// nil as long as the history could not be opened.
    private var found: HistoryFound?
    private var contents: [UInt64: [UInt8]] = [:]
    /// When the first event of each of those records happened.
    private var times: [UInt64: Instant] = [:]
    /// How many events the records have that were numbered under another key, and are of no use.
    private var foreign: [UInt64: Int] = [:]

    package init(_ key: HashKey) {
        self.keyMark = HistoryEvent.mark(of: key)
    }

    /// What the history has.
    private var written: RecordPositions { self.found?.positions ?? RecordPositions() }

    /// The numbers of all records, in ascending order.
    private var sequences: [UInt64] { (Array(self.times.keys) + self.foreign.keys).sorted() }

    /// The oldest record of the journal that the history lacks; nil when there is none.
    private var oldestLacking: UInt64? {
        let written = self.written
        return self.times.keys.lazy.filter { !written.holds($0) }.min()
    }

    /// Takes a record of the journal; of one that comes twice the second is ignored.
    package func take(_ content: ByteView) throws(StoreError) {
        do throws(EventRecord.Fault) {
            let record = try EventRecord(content)
            guard record.keyMark == self.keyMark else {
                self.foreign[record.sequence] = record.eventCount
                return
            }
            // Read once, so that it can be read when it is appended.
            var first: Instant?
            try record.read { first = first ?? $0.at }
            guard let first, self.times[record.sequence] == nil else { return }
            self.times[record.sequence] = first
            self.contents[record.sequence] = content.array
        } catch {
            throw StoreError(
                message: "The stored state does not hold together at the events: a record of them \(error.clause). "
                    + "Restore a backup."
            )
        }
    }

    /// All records were taken.
    package func finish(at start: Start) {
        self.start = start
    }

    /// Notes what the history holds; nil when it cannot be opened.
    package func compare(with found: HistoryFound?) {
        self.found = found
    }

    /// Gives away the records that the history lacks, the oldest first; those of another key have no content.
    package func takeRecords() -> [Record] {
        defer { self.contents = [:] }
        let written = self.written
        let records = self.contents.map { Record(sequence: $0.key, content: $0.value) }
        let foreign = self.foreign.keys.map { Record(sequence: $0, content: []) }
        return (records + foreign).filter { !written.holds($0.sequence) }.sorted { $0.sequence < $1.sequence }
    }

    /// What the records of the next commits are numbered with, `wall` being the wall clock in milliseconds since 1970.
    ///
    /// They are beyond all that is in the history, as it would take them for written otherwise. One that cannot be
    /// opened may go on beyond the journal, when that is an older one: then they begin anew. So do those of a journal
    /// that goes on beside another one, which may give the next numbers itself, or has done so: a copy, and one that is
    /// returned to when the history has followed another.
    package func numbers(wall: Int64, beginsAnother: Bool = false) -> EventNumbers {
        let newest = max(self.sequences.last ?? 0, self.written.newest)
        let isReturn = EventRecord.isBeginning(self.written.newest, after: self.newestBeforeBeginning)
        let isBeside = beginsAnother || isReturn
        let last = self.found == nil || isBeside ? max(newest, EventNumbers.beginning(wall: wall)) : newest
        return EventNumbers(after: last, keyMark: self.keyMark)
    }

    /// What the history lacks and the journal cannot give it, in words; to be asked when it was opened.
    package var faults: [String] {
        guard let found = self.found else { return [] }
        var faults: [String] = []
        if found.isNew, !self.start.isFirst {
            let since = self.time(self.oldestLacking.flatMap { self.times[$0] } ?? self.start.now)
            faults.append("it was not there: what happened before \(since) is not in it, what the journal kept is")
        }
        if found.sequence > self.newestBeforeBeginning {
            faults.append(self.faultOfAnother(found))
        }
        let written = self.written
        let foreignEvents = self.foreign.reduce(0) { $0 + (written.holds($1.key) ? 0 : $1.value) }
        if foreignEvents > 0 {
            faults.append("\(foreignEvents) events that the journal has are lost with the former history.key")
        }
        let missing = self.missing(found)
        if missing > 0 {
            let since = found.newest.map { " since \(self.time($0))" } ?? ""
            let next = self.time(self.oldestLacking.flatMap { self.times[$0] } ?? self.start.now)
            faults.append(
                "the events of \(missing) records\(since) are missing from it, and the journal no longer has them: it "
                    + "continues at \(next)"
            )
        }
        return faults
    }

    /// The history has followed another journal.
    private func faultOfAnother(_ found: HistoryFound) -> String {
        let last = "record \(found.sequence)\(found.newest.map { ", of \(self.time($0))" } ?? "")"
        if self.start.isFirst { return "the journal is new, and the history continues to \(last), of another" }
        let newest = self.newestBeforeBeginning
        let fault =
            "it continues to \(last), and the journal to \(newest): the journal is an older one, or another; what the "
            + "history has beyond it was undone"
        // One that was written before histories noted where numbers left off.
        guard newest > 0, !found.positions.knowsNumbers(of: newest) else { return fault }
        return fault + ", and it may be without the newest events that the journal has"
    }

    private func time(_ instant: Instant) -> String { WallTime.text(self.start.offset.wall(instant)) }

    /// The newest record of the journal, of those that the history could have; numbers that begin anew behind it were
    /// given while it could not be opened.
    private var newestBeforeBeginning: UInt64 {
        let sequences = self.sequences
        let written = self.written.newest
        guard let next = sequences.first(where: { $0 > written }), EventRecord.isBeginning(next, after: written) else {
            return sequences.last ?? 0
        }
        // The newest record at a beginning is kept until the history has it.
        return sequences.last { $0 <= written } ?? 0
    }

    /// How many records are neither in the history nor in the journal.
    private func missing(_ found: HistoryFound) -> UInt64 {
        var written = found.positions
        let lacking = self.sequences.filter { !written.holds($0) }
        // A history that is new lacks whatever the journal has dropped, which was said.
        if found.isNew, let first = lacking.first { written = RecordPositions(newest: first - 1) }
        return lacking.reduce(0) { $0 + written.take($1) }
    }
}

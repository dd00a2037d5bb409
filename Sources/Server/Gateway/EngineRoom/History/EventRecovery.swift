package import Engine
import Platform
package import Policy
package import Storage
package import Wire

/// Finds the events in the journal that the history lacks. At a start they are passed to the history before the gateway
/// serves requests.
package final class EventRecovery {
    /// A record of events in the journal. It has no content if its events are unusable.
    package struct Record: Hashable {
        package let sequence: UInt64
        let content: [UInt8]
    }

    private let keyMark: UInt64
    /// True if the store had no state at the start, so no events can be missing.
    private var isFirst = true
    /// The policy time of the start.
    private var now = Instant.distantPast
    /// The difference between wall clock and policy time at the start.
    private(set) var offset = WallOffset(wall: 0, now: .distantPast)
    /// The contents of the history; nil if it is not open.
    private var found: OpenedHistory?
    private var contents: [UInt64: [UInt8]] = [:]
    /// The times of the first and the last event of the records in `contents`.
    private var times: [UInt64: ClosedRange<Instant>] = [:]
    /// The numbers of unusable records, with their numbers of events. These records number devices with another key.
    private var foreign: [UInt64: Int] = [:]

    package init(_ key: HashKey) {
        self.keyMark = HistoryEvent.mark(of: key)
    }

    /// The positions of the records in the history.
    private var written: RecordPositions { self.found?.positions ?? RecordPositions() }

    /// The numbers of all records, in ascending order.
    private var sequences: [UInt64] { (Array(self.times.keys) + self.foreign.keys).sorted() }

    /// The number of the oldest record that the journal has and the history lacks; nil if there is none.
    private var oldestLacking: UInt64? {
        let written = self.written
        return self.times.keys.lazy.filter { !written.holds($0) }.min()
    }

    /// Adds a record of the journal. Ignores a repeated record.
    package func take(_ content: ByteView) throws(StoreError) {
        do throws(EventRecord.Fault) {
            let record = try EventRecord(content)
            guard record.keyMark == self.keyMark else {
                self.foreign[record.sequence] = record.eventCount
                return
            }
            // Parse the events now, so that appending them later cannot fail.
            var times: ClosedRange<Instant>?
            try record.read { times = (times?.lowerBound ?? $0.at)...max(times?.upperBound ?? $0.at, $0.at) }
            guard let times, self.times[record.sequence] == nil else { return }
            self.times[record.sequence] = times
            self.contents[record.sequence] = content.array
        } catch {
            throw StoreError(
                message: "The stored state does not hold together at the events: a record of them \(error.clause). "
                    + "Restore a backup."
            )
        }
    }

    /// Sets the state of the start. Called after all records were added.
    package func finish(isFirst: Bool, now: Instant, offset: WallOffset) {
        (self.isFirst, self.now, self.offset) = (isFirst, now, offset)
    }

    /// Sets the contents of the history; nil if it cannot be opened.
    package func compare(with found: OpenedHistory?) {
        self.found = found
    }

    /// Returns the records that the history lacks, in ascending order, and releases their contents. Records with
    /// another key have no content.
    package func takeRecords() -> [Record] {
        defer { self.contents = [:] }
        let written = self.written
        let records = self.contents.map { Record(sequence: $0.key, content: $0.value) }
        let foreign = self.foreign.keys.map { Record(sequence: $0, content: []) }
        return (records + foreign).filter { !written.holds($0.sequence) }.sorted { $0.sequence < $1.sequence }
    }

    /// Returns the numbers for the records of the next commits; `wall` is the wall clock in milliseconds since 1970.
    ///
    /// The numbers are higher than all numbers in the history, because the history ignores records with known numbers.
    /// A new numbering starts from the clock in three cases. First, the history cannot be opened; it may then be ahead
    /// of an older journal. Second, the journal is a copy. Third, the history is ahead; another journal then used the
    /// next numbers. Until the history has a record of the new numbering, each start determines again which events are
    /// void.
    package func numbers(wall: Int64, isFork: Bool = false) -> EventNumbers {
        let newest = max(self.sequences.last ?? 0, self.written.newest)
        let isAnew = self.found == nil || isFork || self.isHistoryAhead
        let last = isAnew ? max(newest, EventNumbers.beginning(wall: wall)) : newest
        return EventNumbers(after: last, keyMark: self.keyMark)
    }

    /// Descriptions of the events that are in neither the history nor the journal. Empty until the history is open.
    package var faults: [String] {
        guard let found = self.found else { return [] }
        var faults: [String] = []
        if found.isNew, !self.isFirst {
            let since = self.time(self.oldestLacking.flatMap { self.times[$0]?.lowerBound } ?? self.now)
            faults.append("it was not there: what happened before \(since) is not in it, what the journal kept is")
        }
        if self.isHistoryAhead { faults.append(self.faultOfAnother(found)) }
        let written = self.written
        let foreignEvents = self.foreign.reduce(0) { $0 + (written.holds($1.key) ? 0 : $1.value) }
        if foreignEvents > 0 {
            faults.append("\(foreignEvents) events that the journal has are lost with the former history.key")
        }
        let missing = self.missing(found)
        if missing > 0 {
            let since = found.newest.map { " since \(self.time($0))" } ?? ""
            let next = self.time(self.oldestLacking.flatMap { self.times[$0]?.lowerBound } ?? self.now)
            faults.append(
                "the events of \(missing) records\(since) are missing from it, and the journal no longer has them: it "
                    + "continues at \(next)"
            )
        }
        return faults
    }

    /// True if the history has records that the journal never had. Either the history belonged to another journal, or
    /// the journal is older.
    private var isHistoryAhead: Bool { self.written.newest > self.newestBeforeBeginning }

    /// The period of the events that only the replaced journal had. Nil if the history is not ahead. Also nil without a
    /// common event, because the history is then the only record of the past.
    package var undone: VoidSpan? {
        guard self.isHistoryAhead else { return nil }
        let newest = self.newestBeforeBeginning
        guard let common = self.times.lazy.filter({ $0.key <= newest }).map(\.value.upperBound).max() else {
            return nil
        }
        // The first record that an earlier start of this journal wrote and the history lacks.
        let next = self.sequences.first { $0 > self.written.newest }
        return VoidSpan(
            after: common,
            until: next.flatMap { self.times[$0]?.lowerBound } ?? self.now
        )
    }

    /// Describes the fault of a history that has records of another journal.
    private func faultOfAnother(_ found: OpenedHistory) -> String {
        let last = "it has records up to \(found.positions.newest)\(found.newest.map { ", of \(self.time($0))" } ?? "")"
        if self.isFirst { return "\(last), but the journal is new: the pushes that were pending are lost" }
        let newest = self.newestBeforeBeginning
        let isOfAnother = EventRecord.isBeginning(found.positions.newest, after: newest)
        let undone =
            isOfAnother
            ? "its events\(self.times[newest].map { " since \(self.time($0.upperBound))" } ?? "") are void"
            : "records \(newest + 1) to \(found.positions.newest) are void"
        let journal = isOfAnother ? "another" : "an older"
        let fault = "\(last), but the journal ends at \(newest): \(journal) journal was restored; \(undone)"
        // A history of an old version does not record its numbers.
        guard newest > 0, !found.positions.knowsNumbers(of: newest) else { return fault }
        return fault + ", and it may be without the newest events that the journal has"
    }

    private func time(_ instant: Instant) -> String { WallTime.text(self.offset.wall(instant)) }

    /// The number of the newest record in the journal that the history could have. Later records belong to a new
    /// numbering, which began while the history could not be opened.
    private var newestBeforeBeginning: UInt64 {
        let sequences = self.sequences
        let written = self.written.newest
        guard let next = sequences.first(where: { $0 > written }), EventRecord.isBeginning(next, after: written) else {
            return sequences.last ?? 0
        }
        // The journal keeps the last record before a new numbering until the history has it.
        return sequences.last { $0 <= written } ?? 0
    }

    /// Returns the number of records that are in neither the history nor the journal.
    private func missing(_ found: OpenedHistory) -> UInt64 {
        var written = found.positions
        let lacking = self.sequences.filter { !written.holds($0) }
        // A new history lacks all records that the journal has dropped. These are reported separately.
        if found.isNew, let first = lacking.first { written = RecordPositions(newest: first - 1) }
        return lacking.reduce(0) { $0 + written.take($1) }
    }
}

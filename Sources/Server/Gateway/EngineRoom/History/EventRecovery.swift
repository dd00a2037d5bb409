package import Engine
import Platform
package import Policy
package import Storage
package import Wire

/// Finds the events in the journal that the history lacks. A start passes them to the history before serving requests.
package final class EventRecovery {
    /// A record of events in the journal; without content if its events cannot be used.
    package struct Record: Hashable {
        package let sequence: UInt64
        let content: [UInt8]
    }

    /// The state of the start that found the events.
    package struct Start {
        /// True if there was no state before, so that nothing can be missing.
        let isFirst: Bool
        /// The policy time.
        let now: Instant
        /// The difference between wall clock and policy time.
        let offset: WallOffset

        package init(isFirst: Bool, now: Instant, offset: WallOffset) {
            self.isFirst = isFirst
            self.now = now
            self.offset = offset
        }
    }

    private let keyMark: UInt64
    private(set) var start = Start(isFirst: true, now: .distantPast, offset: WallOffset(wall: 0, now: .distantPast))
    /// The contents of the history; nil while it could not be opened.
    private var found: HistoryFound?
    private var contents: [UInt64: [UInt8]] = [:]
    /// The times of the first and the last event of the records in `contents`.
    private var times: [UInt64: ClosedRange<Instant>] = [:]
    /// The unusable records, which number devices under another key, and their numbers of events.
    private var foreign: [UInt64: Int] = [:]

    package init(_ key: HashKey) {
        self.keyMark = HistoryEvent.mark(of: key)
    }

    /// The positions of the records in the history.
    private var written: RecordPositions { self.found?.positions ?? RecordPositions() }

    /// The numbers of all records, in ascending order.
    private var sequences: [UInt64] { (Array(self.times.keys) + self.foreign.keys).sorted() }

    /// The oldest record of the journal that the history lacks; nil if there is none.
    private var oldestLacking: UInt64? {
        let written = self.written
        return self.times.keys.lazy.filter { !written.holds($0) }.min()
    }

    /// Takes a record of the journal. A repeated record is ignored.
    package func take(_ content: ByteView) throws(StoreError) {
        do throws(EventRecord.Fault) {
            let record = try EventRecord(content)
            guard record.keyMark == self.keyMark else {
                self.foreign[record.sequence] = record.eventCount
                return
            }
            // Parses the events once, so that appending them later cannot fail.
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

    /// Records the state of the start after all records were taken.
    package func finish(at start: Start) {
        self.start = start
    }

    /// Compares the journal with the history; nil if the history cannot be opened.
    package func compare(with found: HistoryFound?) {
        self.found = found
    }

    /// Returns the records that the history lacks, in ascending order, and releases their contents. Records of another
    /// key have no content.
    package func takeRecords() -> [Record] {
        defer { self.contents = [:] }
        let written = self.written
        let records = self.contents.map { Record(sequence: $0.key, content: $0.value) }
        let foreign = self.foreign.keys.map { Record(sequence: $0, content: []) }
        return (records + foreign).filter { !written.holds($0.sequence) }.sorted { $0.sequence < $1.sequence }
    }

    /// Returns the numbers for the records of the next commits; `wall` is the wall clock in milliseconds since 1970.
    ///
    /// The numbers are higher than all in the history, which would otherwise ignore the records as already written.
    /// Numbering starts anew from the clock if the history cannot be opened, as it may be ahead of an older journal. It
    /// also starts anew for a copy, or if the history is ahead, because another journal gave the next numbers. Until
    /// the history has a record of the new numbering, each start finds again which events are void.
    package func numbers(wall: Int64, isFork: Bool = false) -> EventNumbers {
        let newest = max(self.sequences.last ?? 0, self.written.newest)
        let isAnew = self.found == nil || isFork || self.isHistoryAhead
        let last = isAnew ? max(newest, EventNumbers.beginning(wall: wall)) : newest
        return EventNumbers(after: last, keyMark: self.keyMark)
    }

    /// Descriptions of the events that neither the history nor the journal has. Used after the history was opened.
    package var faults: [String] {
        guard let found = self.found else { return [] }
        var faults: [String] = []
        if found.isNew, !self.start.isFirst {
            let since = self.time(self.oldestLacking.flatMap { self.times[$0]?.lowerBound } ?? self.start.now)
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
            let next = self.time(self.oldestLacking.flatMap { self.times[$0]?.lowerBound } ?? self.start.now)
            faults.append(
                "the events of \(missing) records\(since) are missing from it, and the journal no longer has them: it "
                    + "continues at \(next)"
            )
        }
        return faults
    }

    /// True if the history has records that the journal never had: it followed another journal, or a newer state of
    /// this one.
    private var isHistoryAhead: Bool { self.found.map { $0.sequence > self.newestBeforeBeginning } ?? false }

    /// The span of the events that only the replaced journal had; nil if the history is not ahead. Also nil without a
    /// common event, because the history is then the only record of the past.
    package var undone: VoidSpan? {
        let common = self.times.filter { $0.key <= self.newestBeforeBeginning }.values.map(\.upperBound).max()
        guard self.isHistoryAhead, let common else { return nil }
        // The first record of an earlier start on this journal that the history did not take.
        let next = self.sequences.first { $0 > self.written.newest }
        return VoidSpan(
            after: common,
            until: next.flatMap { self.times[$0]?.lowerBound } ?? self.start.now
        )
    }

    /// Describes a history that has followed another journal.
    private func faultOfAnother(_ found: HistoryFound) -> String {
        let last = "it has records up to \(found.sequence)\(found.newest.map { ", of \(self.time($0))" } ?? "")"
        if self.start.isFirst { return "\(last), but the journal is new: the pushes that were pending are lost" }
        let newest = self.newestBeforeBeginning
        let isOfAnother = EventRecord.isBeginning(found.sequence, after: newest)
        let undone =
            isOfAnother
            ? "its events\(self.times[newest].map { " since \(self.time($0.upperBound))" } ?? "") are void"
            : "records \(newest + 1) to \(found.sequence) are void"
        let journal = isOfAnother ? "another" : "an older"
        let fault = "\(last), but the journal ends at \(newest): \(journal) journal was restored; \(undone)"
        // An old history does not record where its numbering stopped.
        guard newest > 0, !found.positions.knowsNumbers(of: newest) else { return fault }
        return fault + ", and it may be without the newest events that the journal has"
    }

    private func time(_ instant: Instant) -> String { WallTime.text(self.start.offset.wall(instant)) }

    /// The newest record of the journal that the history could have. Later records have new numbers, given while the
    /// history could not be opened.
    private var newestBeforeBeginning: UInt64 {
        let sequences = self.sequences
        let written = self.written.newest
        guard let next = sequences.first(where: { $0 > written }), EventRecord.isBeginning(next, after: written) else {
            return sequences.last ?? 0
        }
        // The last record before a new numbering is kept until the history has it.
        return sequences.last { $0 <= written } ?? 0
    }

    /// Returns the number of records that are in neither the history nor the journal.
    private func missing(_ found: HistoryFound) -> UInt64 {
        var written = found.positions
        let lacking = self.sequences.filter { !written.holds($0) }
        // A new history lacks everything that the journal has dropped, which is reported separately.
        if found.isNew, let first = lacking.first { written = RecordPositions(newest: first - 1) }
        return lacking.reduce(0) { $0 + written.take($1) }
    }
}

import Engine
import Platform
import Policy
package import Storage
import Wire

/// Passes each event to the history once and in order. Events come directly from the engine. They come from the journal
/// if too many were pending, nothing could be written, or the history's file was replaced.
package final class HistoryFeed {
    /// The maximum number of events read from the journal in one call.
    private static let pieceEvents = 65_536

    let file: HistoryFile
    private let retention: EventRetention
    /// The journal. Nil if nothing is stored; events that the file does not accept are then dropped.
    private let journal: JournalEvents?
    private let onFault: (String) -> Void
    /// The events found at the start; nil once the file is open.
    private var unopened: EventRecovery?
    /// The position in the journal from which to continue reading; nil if the file lacks nothing.
    private var position: JournalEvents.Position?
    /// The reason why the journal cannot be read, as last reported; nil if it can be read.
    private var failure: String?
    /// The number of replacements of the file that were handled.
    private var beginnings: Int
    /// The state of reading the journal for a new file: the first record written, and the time of its first event.
    private var anew: (isReading: Bool, sequence: UInt64, oldest: Instant?) = (false, 0, nil)
    /// The difference between wall clock and policy time.
    private var offset = WallOffset(wall: 0, now: Instant(milliseconds: 0))
    private var droppedEvents = 0

    /// - `onFault`: called with a description of events that the history lacks permanently.
    package init(
        _ file: HistoryFile,
        _ retention: EventRetention,
        _ journal: JournalEvents?,
        _ onFault: @escaping (String) -> Void
    ) {
        self.file = file
        self.retention = retention
        self.journal = journal
        self.onFault = onFault
        self.beginnings = file.beginnings
    }

    /// True if the journal has events that the file lacks.
    package var isBehind: Bool { self.position != nil }

    /// The number of bytes in the journal that the history still needs.
    var heldBytes: Int { self.retention.heldBytes }

    /// Returns the number of events that were dropped since the last call.
    package func takeDropped() -> Int {
        defer { self.droppedEvents = 0 }
        return self.droppedEvents + self.retention.takeGivenUp()
    }

    /// Passes the events of a batch to the file.
    package func take(_ batch: HistoryBatch) {
        self.offset = batch.offset ?? self.offset
        self.droppedEvents += batch.droppedEvents
        if let recovery = batch.recovery { self.recover(recovery) }
        var start = 0
        for record in batch.records {
            let events = batch.events[start..<record.end]
            start = record.end
            // If records before this one are missing, read them and this record from the journal.
            let isNext = self.journal == nil || record.sequence <= self.file.takenSequence + 1
            guard !self.isBehind, !isNext || !self.file.append(events, ofRecord: record.sequence) else { continue }
            if self.journal == nil { self.droppedEvents += events.count }
            self.fallBehind(after: self.file.takenSequence)
        }
        self.file.append(batch.events[start...])
    }

    /// Writes the events passed so far.
    package func flush() {
        self.file.flush()
        self.restartIfReplaced()
        self.reportFaults()
    }

    /// Syncs the written events, and allows the journal to drop them.
    package func sync() {
        self.file.sync()
        // The journal must keep the events after the position, because they have not been read.
        self.retention.advance(to: min(self.file.durableSequence, self.position?.sequence ?? .max))
    }

    /// Reads some of the events that the file lacks.
    ///
    /// - Returns: false if the file accepts no events for now, or if the journal cannot be read.
    package func catchUp() -> Bool {
        guard var position = self.position, let journal = self.journal else { return true }
        let beginnings = self.beginnings
        var count = 0
        do throws(StoreError) {
            let isAtEnd = try journal.read(from: &position) { record in
                guard count < Self.pieceEvents, self.append(record) else { return false }
                count += record.eventCount
                return true
            }
            self.failure = nil
            self.restartIfReplaced()
            guard self.beginnings == beginnings else { return true }
            self.position = isAtEnd ? nil : position
            if isAtEnd { self.reportBeginning() }
            return isAtEnd || count > 0
        } catch {
            if self.failure != error.message {
                self.onFault("it was without some events, and they cannot be read again for now: \(error.message)")
            }
            self.failure = error.message
            return false
        }
    }

    // MARK: From the journal

    /// Writes the events that the previous process did not write.
    private func recover(_ recovery: EventRecovery) {
        self.offset = recovery.offset
        self.unopened = recovery
        self.reportFaults()
        for record in recovery.takeRecords() {
            let isTaken = record.content.withByteView { content in
                if content.isEmpty { return self.file.append([], ofRecord: record.sequence) }
                // The same content was parsed successfully before.
                return (try? EventRecord(content)).map { self.append($0) } ?? true
            }
            guard !isTaken else { continue }
            self.fallBehind(after: record.sequence - 1)
            break
        }
        self.flush()
        self.sync()
    }

    /// Appends a record to the file.
    ///
    /// - Returns: true if the file has the record or does not need it.
    private func append(_ record: EventRecord) -> Bool {
        guard !self.file.holds(record.sequence) else { return true }
        // Records with another key are unusable and are skipped permanently.
        guard record.keyMark == self.file.keyMark else { return self.file.append([], ofRecord: record.sequence) }
        var events: [HistoryEvent] = []
        events.reserveCapacity(record.eventCount)
        do throws(EventRecord.Fault) { try record.read { events.append($0) } } catch { return true }
        guard self.file.append(events[...], ofRecord: record.sequence) else { return false }
        if self.anew.isReading, self.anew.oldest == nil {
            self.anew = (true, record.sequence, events.first?.at)
        }
        return true
    }

    /// Switches to reading from the journal, after record `last`.
    private func fallBehind(after last: UInt64) {
        self.restartIfReplaced()
        guard self.journal != nil, self.position == nil else { return }
        self.position = JournalEvents.Position(row: self.retention.firstHeldRow, sequence: last)
    }

    /// If the file was replaced, starts again at the beginning of the journal.
    private func restartIfReplaced() {
        guard self.file.beginnings != self.beginnings else { return }
        self.beginnings = self.file.beginnings
        guard self.journal != nil else { return }
        self.position = JournalEvents.Position(row: 0, sequence: 0)
        // A file that could not be opened before lacks nothing.
        self.anew = (self.unopened == nil, 0, nil)
    }

    // MARK: Reports

    /// When the file has been opened, reports the events that it lacks, and makes the events of a replaced journal
    /// void.
    private func reportFaults() {
        guard let recovery = self.unopened, let found = self.file.found else { return }
        self.unopened = nil
        recovery.compare(with: found)
        if let undone = recovery.undone { self.file.void(undone) }
        for fault in recovery.faults { self.onFault(fault) }
    }

    private func reportBeginning() {
        guard self.anew.isReading else { return }
        defer { self.anew = (false, 0, nil) }
        let since = self.anew.oldest.map { WallTime.text(self.offset.wall($0)) }
        let kept = self.file.keptSequence
        if kept == 0 {
            self.onFault(
                since.map { "it was begun anew: what happened before \($0) is not in it, what the journal kept is" }
                    ?? "it was begun anew: what happened before is not in it"
            )
        } else if self.anew.sequence != kept + 1 {
            self.onFault(
                "the events behind record \(kept)" + (since.map { " and before \($0)" } ?? "")
                    + " are missing from it, and the journal no longer has them"
            )
        }
    }
}

import Engine
import Platform
import Policy
package import Storage
import Wire

/// Gives the history every event of every record, in order and once: as they come, and from the journal what it was
/// without, since too many waited, nothing could be written, or its file was begun anew.
package final class HistoryFeed {
    /// The events that are read from the journal in one piece.
    private static let pieceEvents = 65_536

    let file: HistoryFile
    private let retention: EventRetention
    /// nil when nothing is kept: what finds no room is dropped then.
    private let journal: JournalEvents?
    private let onFault: (String) -> Void
    /// What was found at the start, while the file cannot be opened.
    private var unopened: EventRecovery?
    /// Where it goes on in the journal; nil when the file has taken everything.
    private var position: JournalEvents.Position?
    /// Why the journal cannot be read, as it was told; nil when it can.
    private var failure: String?
    /// How often the file was begun anew, as far as was seen to it.
    private var beginnings: Int
    /// The file was begun anew, and what the journal has is being read: the first record of that, and when its first
    /// event happened.
    private var anew: (isReading: Bool, sequence: UInt64, oldest: Instant?) = (false, 0, nil)
    /// Wall clock minus policy time.
    private var offset = WallOffset(wall: 0, now: Instant(milliseconds: 0))
    private var droppedEvents = 0

    /// - `onFault`: called with what the history lacks for good, in words.
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

    /// Whether there is something in the journal that the file has not taken.
    package var isBehind: Bool { self.position != nil }

    /// The bytes that the journal keeps for the history.
    var heldBytes: Int { self.retention.heldBytes }

    /// How many events were dropped or given up since the last call.
    package func takeDropped() -> Int {
        defer { self.droppedEvents = 0 }
        return self.droppedEvents + self.retention.takeGivenUp()
    }

    /// Takes the events of a batch.
    package func take(_ batch: HistoryBatch) {
        self.offset = batch.offset ?? self.offset
        self.droppedEvents += batch.droppedEvents
        if let recovery = batch.recovery { self.recover(recovery) }
        var start = 0
        for record in batch.records {
            let events = batch.events[start..<record.end]
            start = record.end
            // What was left out before it is in the journal, as it is itself.
            let isNext = self.journal == nil || record.sequence <= self.file.takenSequence + 1
            guard !self.isBehind, !isNext || !self.file.append(events, ofRecord: record.sequence) else { continue }
            if self.journal == nil { self.droppedEvents += events.count }
            self.fallBehind(after: self.file.takenSequence)
        }
        self.file.append(batch.events[start...])
    }

    /// Writes what was taken.
    package func flush() {
        self.file.flush()
        self.lookForBeginning()
        self.tellFaults()
    }

    /// Makes what was written durable, and has the journal let go of it.
    package func sync() {
        self.file.sync()
        // What comes behind the position was not given to the file, or is in it already.
        self.retention.advance(to: min(self.file.durableSequence, self.position?.sequence ?? .max))
    }

    /// Reads a piece of what the file was without.
    ///
    /// - Returns: false when nothing more can be done for now: the file takes nothing, or the journal cannot be read.
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
            self.lookForBeginning()
            guard self.beginnings == beginnings else { return true }
            self.position = isAtEnd ? nil : position
            if isAtEnd { self.tellOfBeginning() }
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

    /// Writes what a former process did not come to write.
    private func recover(_ recovery: EventRecovery) {
        self.offset = recovery.start.offset
        for record in recovery.takeRecords() {
            let isTaken = record.content.withByteView { content in
                if content.isEmpty { return self.file.append([], ofRecord: record.sequence) }
                // It was read before.
                return (try? EventRecord(content)).map { self.append($0) } ?? true
            }
            guard !isTaken else { continue }
            self.fallBehind(after: record.sequence - 1)
            break
        }
        self.unopened = recovery
        self.flush()
        self.sync()
    }

    /// - Returns: whether the file needs nothing of it any more.
    private func append(_ record: EventRecord) -> Bool {
        guard !self.file.holds(record.sequence) else { return true }
        // Those of another key are of no use, and are passed over for good.
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

    /// What comes next, behind record `last`, has to be read from the journal.
    private func fallBehind(after last: UInt64) {
        self.lookForBeginning()
        guard self.journal != nil, self.position == nil else { return }
        self.position = JournalEvents.Position(row: self.retention.firstHeldRow, sequence: last)
    }

    /// Begins with all that the journal has when the file was begun anew.
    private func lookForBeginning() {
        guard self.file.beginnings != self.beginnings else { return }
        self.beginnings = self.file.beginnings
        // Nothing was in the file yet when it could not be opened before.
        guard self.journal != nil else { return }
        self.position = JournalEvents.Position(row: 0, sequence: 0)
        self.anew = (self.unopened == nil, 0, nil)
    }

    // MARK: Telling

    /// Tells what the file lacks, once it could be opened.
    private func tellFaults() {
        guard let recovery = self.unopened, let found = self.file.found else { return }
        self.unopened = nil
        recovery.compare(with: found)
        for fault in recovery.faults { self.onFault(fault) }
    }

    private func tellOfBeginning() {
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

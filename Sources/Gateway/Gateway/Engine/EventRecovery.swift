import Bytes
import DeviceEngine
import History
import LaunchPolicy

/// The events that a journal keeps and the history does not have: found at a start, and handed over to the history
/// before anybody is served.
final class EventRecovery {
    /// A record of events as the journal keeps it.
    struct Record {
        let sequence: UInt64
        let content: [UInt8]
    }

    private let keyMark: UInt64
    /// nil when the history cannot be opened; it then takes what it lacks, should it be opened later.
    private var found: HistoryFound?
    private var contents: [UInt64: [UInt8]] = [:]
    /// How many events the records have that were numbered under another key, and are of no use.
    private var foreign: [UInt64: Int] = [:]
    /// The newest record of the journal.
    private var newest: UInt64 = 0
    /// The oldest record of the journal that the history lacks, and the time of its first event.
    private var oldest: (sequence: UInt64, at: Instant)?

    init(_ key: HashKey) {
        self.keyMark = HistoryEvent.mark(of: key)
    }

    private var written: UInt64 { self.found?.sequence ?? 0 }

    private var foreignEvents: Int { self.foreign.values.reduce(0, +) }

    /// Takes a record of the journal; of one that comes twice the second is ignored.
    func take(_ content: ByteView) throws(StoreError) {
        do throws(EventRecord.Fault) {
            let record = try EventRecord(content)
            self.newest = max(self.newest, record.sequence)
            if record.keyMark == self.keyMark {
                // Read once, so that it can be read when it is appended.
                try record.read { _ in }
                if self.contents[record.sequence] == nil { self.contents[record.sequence] = content.array }
            } else {
                self.foreign[record.sequence] = record.eventCount
            }
        } catch {
            throw StoreError(
                message: "The stored state does not hold together at the events: a record of them \(error.clause). "
                    + "Restore a backup."
            )
        }
    }

    /// Drops what the history has already; to be called once, when all records were taken.
    func compare(with found: HistoryFound?) {
        self.found = found
        self.contents = self.contents.filter { $0.key > self.written }
        self.foreign = self.foreign.filter { $0.key > self.written }
        guard let sequence = self.contents.keys.min(), let content = self.contents[sequence] else { return }
        content.withByteView { content in
            var first: Instant?
            try? EventRecord(content).read { first = first ?? $0.at }
            if let first { self.oldest = (sequence, first) }
        }
    }

    /// The records that the history lacks, the oldest first.
    var records: [Record] {
        self.contents.map { Record(sequence: $0.key, content: $0.value) }.sorted { $0.sequence < $1.sequence }
    }

    /// What the records of the next commits are numbered with: beyond all that is in the history, too, as it would take
    /// them for written otherwise.
    var numbers: EventNumbers { EventNumbers(after: max(self.newest, self.written), keyMark: self.keyMark) }

    /// What the history lacks and the journal cannot give it, in words.
    ///
    /// - Parameters:
    ///   - isFirstStart: there was no state before: nothing can be missing.
    ///   - now: policy time.
    ///   - offset: wall clock minus policy time.
    func faults(isFirstStart: Bool, now: Instant, _ offset: WallOffset) -> [String] {
        guard let found = self.found else { return [] }
        func time(_ instant: Instant) -> String { WallTime.text(offset.wall(instant)) }
        var faults: [String] = []
        if found.isNew, !isFirstStart {
            let since = time(self.oldest?.at ?? now)
            faults.append("it was not there: what happened before \(since) is not in it, what the journal kept is")
        }
        if found.sequence > self.newest {
            faults.append(
                "it goes on to record \(found.sequence) of what happened, and the journal to \(self.newest): the "
                    + "journal is an older one, or another; what the history has beyond it was undone"
            )
        }
        if self.foreignEvents > 0 {
            faults.append("\(self.foreignEvents) events that the journal has are lost with the former history.key")
        } else if let missing = self.missing(found) {
            let since = found.newest.map { " since \(time($0))" } ?? ""
            faults.append(
                "the events of \(missing) records\(since) are missing from it, and the journal has them no more: it "
                    + "goes on with \(time(self.oldest?.at ?? now))"
            )
        }
        return faults
    }

    /// How many records are neither in the history nor in the journal; nil when there is none.
    private func missing(_ found: HistoryFound) -> UInt64? {
        guard self.newest > found.sequence else { return nil }
        // A history that is new lacks whatever the journal has dropped, which was said.
        let first = found.isNew ? self.oldest?.sequence ?? self.newest + 1 : found.sequence + 1
        let expected = self.newest + 1 - first
        let count = UInt64(self.contents.count)
        return expected > count ? expected - count : nil
    }
}

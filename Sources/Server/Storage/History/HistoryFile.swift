package import Engine
import Glibc
import Platform
package import Policy
package import Wire

/// The history of devices and pushes in a separate file. No other data depends on it.
///
/// Events are collected in memory and written in large sorted batches. The transaction of a batch also stores the
/// positions of its event records, to detect events that a crash lost. No method throws: events that cannot be written
/// are counted and reported, and an unusable file is set aside. One caller at a time may use it, on any thread.
package final class HistoryFile: HistorySource {
    /// The maximum number of events in an answer about one push.
    package static let pushEventsMax = 1024
    /// The maximum number of events of one device that a query for pushes examines.
    package static let deviceEventsMax = 16_384
    /// The maximum number of devices that a call of `entries(devices:since:countEach:)` reads, and the approximate
    /// maximum of events.
    private static let devicesPerRead = 256
    private static let entriesPerRead = 8192

    private let path: String?
    private let key: HashKey
    private var limits: HistoryLimits
    private let vfs: String?
    private let tell: (HistoryFailure) -> Void
    private var store: RunStore?
    /// The spans whose events are void, in ascending order of time.
    private var voids: [VoidSpan] = []
    private var collected = CollectedEvents()
    /// The events that are in the file but may not be durable. After a failed sync, the file may lack them.
    private var unsynced = CollectedEvents()
    private var recentPushes = RecentPushes()
    /// The positions of the records that were appended since the opening or are in the file.
    private var taken = RecordPositions()
    /// The number of times that the file was set aside or lost durable events. After a change, the caller must append
    /// earlier records again.
    package private(set) var beginnings = 0
    /// The newest record in the file when `beginnings` last changed; 0 if there was none.
    package private(set) var keptSequence: UInt64 = 0
    /// The newest record up to which all events are durable in the file. Exception: later records of the numberings in
    /// `found.positions.leftOff` may be missing.
    package private(set) var durableSequence: UInt64 = 0
    /// The content of the file when it was first opened; nil until then.
    package private(set) var found: OpenedHistory?
    /// The time of the newest event, from which the age of events is measured.
    private var newest = Instant.distantPast
    /// The reason why the file must be set aside before it is opened again; nil if there is no such reason.
    private var damage: String?
    /// The reported reason why writes fail; nil while they succeed.
    private var failure: String?
    private var droppedWhileFailing = 0

    /// True if the file is open. If it is not, `flush` tries to open it.
    package var isOpen: Bool { self.store != nil }

    /// A fingerprint of the key that hashes devices to numbers.
    package var keyMark: UInt64 { HistoryEvent.mark(of: self.key) }

    /// The number of appended events that were dropped before they were written.
    package private(set) var droppedEvents = 0

    /// Opens or creates the file. If that fails, every `flush` tries again.
    ///
    /// - `path`: the file; nil for a history in memory.
    /// - `key`: the key that hashes devices to numbers; a file with another key is set aside.
    /// - `vfs`: the name of SQLite's file system layer; nil for the default one.
    /// - `onFailure`: called by every method that finds a problem, including `init`.
    package init(
        path: String?,
        key: HashKey,
        limits: HistoryLimits = HistoryLimits(),
        vfs: String? = nil,
        onFailure: @escaping (HistoryFailure) -> Void
    ) {
        self.path = path
        self.key = key
        self.limits = limits
        self.vfs = vfs
        self.tell = onFailure
        self.open()
    }

    /// Sets other limits. Later calls of `tidy` drop the events beyond them, a part at a time.
    package func setLimits(_ limits: HistoryLimits) {
        self.limits = limits
        self.store?.limits = limits
    }

    /// The number of runs in the file; every query examines each run.
    package var runCount: Int { self.store?.runs.count ?? 0 }

    /// The number of events that are collected in memory and not yet in the file.
    package var collectedEvents: Int { self.collected.count }

    /// The newest record whose events are in the file, durable or not.
    package var writtenSequence: UInt64 { self.store?.written.newest ?? 0 }

    /// The newest record that was appended or is in the file; 0 if there is none, for instance after the file was set
    /// aside.
    package var takenSequence: UInt64 { self.taken.newest }

    /// Returns true if the events of record `sequence` were appended or are in the file.
    package func holds(_ sequence: UInt64) -> Bool { self.taken.holds(sequence) }

    /// Appends events in the order in which they happened. If too many events are collected, writes them; if that
    /// fails, drops them.
    package func append(_ events: ArraySlice<HistoryEvent>) {
        for event in events { self.append(event) }
    }

    package func append(_ event: HistoryEvent) {
        // Drops events to limit memory while writes fail. A name is kept or dropped together with its event.
        if !self.makeRoom(1 + event.followers) { self.dropCollected() }
        self.collect(event)
    }

    /// Appends the events of record `sequence`. The file will contain all of them or none. Has no effect if the record
    /// was already appended or is in the file.
    ///
    /// - Returns: false if the events were refused: memory is full because writes fail, or the caller must first append
    ///   earlier records because the file was set aside.
    @discardableResult
    package func append(_ events: ArraySlice<HistoryEvent>, ofRecord sequence: UInt64) -> Bool {
        guard !self.taken.holds(sequence) else { return true }
        let beginnings = self.beginnings
        guard self.makeRoom(events.count), beginnings == self.beginnings else { return false }
        for event in events { self.collect(event) }
        self.taken.take(sequence)
        self.collected.endRecord(sequence)
        // The record may belong to an earlier numbering, whose numbers are below `durableSequence`.
        self.durableSequence = min(self.durableSequence, sequence - 1)
        return true
    }

    /// Excludes the events of a span from all answers. Earlier spans that end after its start are no longer void,
    /// because the journal with their events was restored.
    package func void(_ span: VoidSpan) {
        self.voids.removeAll { $0.until > span.after }
        self.voids = (self.voids + [span]).suffix(VoidSpan.countMax)
        self.store?.voids = self.voids
        self.recentPushes.removeAll(newest: self.newest)
    }

    /// - Returns: true if `count` more events fit in memory.
    private func makeRoom(_ count: Int) -> Bool {
        guard !self.collected.isEmpty, self.collected.count + count > self.limits.collectedMax else { return true }
        self.flush()
        return self.collected.isEmpty
    }

    private func collect(_ event: HistoryEvent) {
        self.collected.append(event)
        self.newest = max(self.newest, event.at)
        if let push = LoggedPush(event) { self.recentPushes.append(push) }
    }

    /// Writes the collected events. Call this every few seconds. After a failure, events remain collected up to
    /// `collectedMax`.
    package func flush() {
        if self.store == nil { self.open() }
        guard let store = self.store, !self.collected.isEmpty else { return }
        self.attempt { () throws(SQLiteError) in
            // Enforces the size limit even if the caller is too busy to call `tidy`.
            while store.isFull, try store.tidy(now: self.newest) {}
            try store.add(self.collected.events, ofRecords: self.collected.records)
            if self.path != nil { self.unsynced.append(self.collected) }
            self.collected.removeAll()
            self.noteSuccess()
        }
        if self.unsynced.count >= self.limits.collectedMax { self.sync() }
    }

    /// Makes all events in the file durable. Call this every few seconds.
    package func sync() {
        guard let store = self.store, store.written.newest > self.durableSequence || !self.unsynced.isEmpty else {
            return
        }
        self.attempt { () throws(SQLiteError) in
            if self.path != nil { try store.table.database.syncLog() }
            self.durableSequence = min(store.written.newest, self.collected.oldestRecord.map { $0 - 1 } ?? .max)
            self.unsynced.removeAll()
        }
    }

    /// Does a few milliseconds of maintenance: merges runs, or drops events beyond the limits of age and size.
    ///
    /// The age of an event is relative to the newest event. Without new events, none are therefore dropped.
    ///
    /// - Returns: true if there may be more to do.
    package func tidy() -> Bool {
        guard let store = self.store else { return false }
        return self.attempt { () throws(SQLiteError) in try store.tidy(now: self.newest) } ?? false
    }

    /// Returns the number of times that each limit dropped events from the file since the last call.
    package func takeDropped() -> (bySize: Int, byAge: Int) {
        defer { self.store?.dropped = (0, 0) }
        return self.store?.dropped ?? (0, 0)
    }

    package func visit(device: UInt64, notAfter latest: Instant, _ body: (HistoryEvent) -> Bool) {
        for event in self.collected.events.reversed() where event.device == device && event.at <= latest {
            guard body(event) else { return }
        }
        guard let store = self.store else { return }
        self.attempt { () throws(SQLiteError) in try store.visit(device, notAfter: latest, body) }
    }

    package func entries(devices: some Collection<UInt64>, since oldest: Instant, countEach: Int) -> LoggedEntries {
        let devices = devices.prefix(Self.devicesPerRead)
        let wanted = Set(devices)
        var collected: [UInt64: [HistoryEvent]] = [:]
        for event in self.collected.events.reversed() where wanted.contains(event.device) {
            collected[event.device, default: []].append(event)
        }
        var (found, count) = (LoggedEntries(), 0)
        for device in devices where count < Self.entriesPerRead {
            var entries = HistoryEntries()
            func append(_ event: HistoryEvent) -> Bool {
                guard event.at >= oldest, event.isNamePart || entries.count < countEach else { return false }
                entries.append(event)
                return true
            }
            if collected[device]?.allSatisfy(append) ?? true, let store = self.store {
                self.attempt { () throws(SQLiteError) in
                    try store.visit(device, notAfter: .distantFuture, append)
                }
            }
            found.entries.append(entries.finish())
            count += found.entries[found.entries.count - 1].count
        }
        return found
    }

    package func push(_ apnsID: APNsID) -> [HistoryEvent] {
        let collected = self.collected.events.filter { $0.names(apnsID) }
        guard let store = self.store else { return collected.suffix(Self.pushEventsMax) }
        let written = self.attempt { () throws(SQLiteError) in
            try store.pushEvents(apnsID, countMax: Self.pushEventsMax)
        }
        // The sort is stable.
        return ((written ?? []) + collected).sorted { $0.at < $1.at }.suffix(Self.pushEventsMax)
    }

    package func pushes(behind place: LoggedPush?, notBefore oldest: Instant, countMax: Int) -> LoggedPushes {
        var collector = LoggedPushCollector(behind: place, notBefore: oldest, countMax: countMax)
        let dropped = self.store?.droppedUntil ?? .distantPast
        guard !self.recentPushes.collect(&collector, dropped: dropped) else { return collector.finish(unseen: nil) }
        for event in self.collected.events.reversed() { collector.append(event) }
        guard let store = self.store else { return collector.finish(unseen: nil) }
        let unseen = self.attempt { () throws(SQLiteError) in
            try store.collectPushes(notAfter: place?.at ?? .distantFuture, &collector)
        }
        return collector.finish(unseen: unseen ?? nil)
    }

    /// Returns the numbers of all devices with events, in no order. Reads the whole file.
    package func devices() -> Set<UInt64> {
        let collected = Set(self.collected.events.map(\.device))
        guard let store = self.store else { return collected }
        let written = self.attempt { () throws(SQLiteError) in try store.devices() }
        return collected.union(written ?? [])
    }

    /// The reason why reads or writes currently fail; nil while they succeed.
    package var cause: String? { self.damage ?? self.failure }

    /// Limits the file to `count` pages, to simulate a full disk.
    package func limitPages(to count: Int) {
        try? self.store?.table.database.execute("PRAGMA max_page_count = \(count)")
    }

    // MARK: Trouble

    private func open() {
        if let reason = self.damage {
            guard self.setAside(reason) else { return }
            self.damage = nil
        }
        if let obstacle = self.obstacle { return self.noteFailure(obstacle) }
        for _ in 0..<2 {
            do throws(RunTable.OpeningFault) {
                let store = try RunStore(path: self.path, key: self.key, limits: self.limits, vfs: self.vfs)
                self.store = store
                self.adopt(store)
                return
            } catch {
                switch error {
                case .failed(let error): return self.noteFailure(error.message)
                case .unusable(let reason): guard self.setAside(reason) else { return }
                }
            }
        }
    }

    /// Compares the appended records with those in the newly opened file.
    private func adopt(_ store: RunStore) {
        if self.found == nil { self.voids = store.voids } else { store.voids = self.voids }
        self.recentPushes.removeAll(newest: max(self.newest, store.newest ?? .distantPast))
        if self.found == nil {
            self.found = OpenedHistory(isNew: store.table.isNew, positions: store.written, newest: store.newest)
        } else if store.written.newest < self.durableSequence {
            self.tell(.cutOff(found: store.written.newest, durable: self.durableSequence))
            self.letGoOfRecords()
            self.keptSequence = store.written.newest
        }
        self.collected.removeRecords { store.written.holds($0) }
        var taken = store.written
        for record in self.collected.records { taken.take(record) }
        taken.raise(to: self.taken.newest)
        self.taken = taken
        let durable = max(self.durableSequence, store.written.newest)
        self.durableSequence = min(durable, self.collected.oldestRecord.map { $0 - 1 } ?? .max)
    }

    /// Resets the positions of the records. The caller must then append the records that were in the file again, before
    /// the collected ones.
    private func letGoOfRecords() {
        self.collected.removeRecords { _ in true }
        self.recentPushes.removeAll(newest: self.newest)
        self.taken = RecordPositions()
        self.durableSequence = 0
        self.keptSequence = 0
        self.beginnings += 1
    }

    /// The reason, as a sentence, why the file or one of SQLite's files next to it is unusable. It is not a regular
    /// file, and opening a FIFO would block; or it is not writable, a cause that SQLite would not report.
    private var obstacle: String? {
        guard let path = self.path, self.vfs == nil else { return nil }
        for path in ["", "-wal", "-shm", "-journal"].map({ path + $0 }) {
            guard let status = try? FileSystem.status(path) else { continue }
            if status.kind != .file { return "\(path) is not a regular file; move it away" }
            do throws(SystemError) {
                _ = try OpenFile(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
            } catch {
                let remedy =
                    switch error.number {
                    case EROFS: "mount its file system for writing"
                    case EPERM: "take away its attribute (`lsattr` shows it; `chattr -i` or `chattr -a` removes it)"
                    case EMFILE, ENFILE: "raise the limit of open files (`ulimit -n`, LimitNOFILE=)"
                    default: "make it writable for the user that runs WakeGate"
                    }
                return "\(path) cannot be written (\(error.message)); \(remedy)"
            }
        }
        return nil
    }

    /// Runs `body`. Handles an error and returns nil.
    @discardableResult
    private func attempt<Result>(_ body: () throws(SQLiteError) -> Result) -> Result? {
        do throws(SQLiteError) {
            return try body()
        } catch {
            if RunTable.isDamage(error) {
                // The next `flush` renames the file. By then, no caller uses the store.
                self.damage = error.message
                self.letGoOfStore()
            } else {
                self.noteFailure(error.message)
                // After a failed write, the kernel may treat the pages as written, and SQLite would not write them
                // again.
                if error.kind == .io { self.letGoOfStore() }
            }
            return nil
        }
    }

    /// Closes the file. The next `flush` opens it again and rewrites the missing events.
    private func letGoOfStore() {
        // Without this call, closing would copy the log into the file.
        try? self.store?.table.database.keepLogOnClose()
        self.store = nil
        guard !self.unsynced.isEmpty else { return }
        self.unsynced.append(self.collected)
        swap(&self.unsynced, &self.collected)
        self.unsynced.removeAll()
    }

    /// Renames the file, replacing a file from an earlier call, and resets the positions of all records.
    ///
    /// - Returns: true if the file was renamed.
    private func setAside(_ reason: String) -> Bool {
        guard let path = self.path else {
            self.tell(.setAside(path: "", reason: reason, isInPlace: false))
            return true
        }
        let aside = path + ".set-aside"
        let isInPlace = FileSystem.exists(aside)
        // The log belongs to the file and is renamed with it.
        try? FileSystem.remove(aside + "-wal")
        try? FileSystem.rename(path + "-wal", to: aside + "-wal")
        try? FileSystem.remove(path + "-shm")
        try? FileSystem.remove(path + "-journal")
        do throws(SystemError) { try FileSystem.replaceFile(aside, by: path) } catch {
            self.noteFailure("\(reason), and it cannot be renamed: \(error.message)")
            return false
        }
        self.letGoOfRecords()
        self.tell(.setAside(path: aside, reason: reason, isInPlace: isInPlace))
        return true
    }

    private func noteFailure(_ reason: String) {
        guard self.failure != reason else { return }
        self.failure = reason
        self.tell(.failing(reason: reason))
    }

    private func noteSuccess() {
        guard self.failure != nil else { return }
        self.failure = nil
        self.tell(.recovered(droppedEvents: self.droppedWhileFailing))
        self.droppedWhileFailing = 0
    }

    private func dropCollected() {
        self.droppedEvents += self.collected.count
        self.droppedWhileFailing += self.collected.count
        self.collected.removeAll()
        self.recentPushes.removeAll(newest: self.newest)
    }
}

/// The limits of the history. All other sizes are derived from the total size.
package struct HistoryLimits: Hashable, Sendable {
    /// The maximum number of bytes of the file and its write-ahead log; at least 4 MiB.
    package let bytesMax: Int
    /// The time for which an event is stored, in milliseconds of policy time. Some events are stored up to an eighth
    /// longer.
    package let ageMillisecondsMax: Int64

    package init(
        bytesMax: Int = 256 << 20,
        ageMillisecondsMax: Int64 = 7 * 86_400_000
    ) {
        self.bytesMax = max(bytesMax, 4 << 20)
        self.ageMillisecondsMax = max(ageMillisecondsMax, 0)
    }

    /// The limits of a history in memory, which are smaller.
    package static let inMemory = HistoryLimits(bytesMax: 32 << 20)

    /// The maximum number of bytes of live runs. The remaining part of `bytesMax` is for the log and for the output of
    /// a merge, whose inputs still exist.
    var keptBytesMax: Int { self.bytesMax / 16 * 10 }

    /// The maximum number of events of a merged run: about a 32nd of the history's size.
    var runEventsMax: Int { min(self.bytesMax / 1024, 1 << 20) }

    /// The maximum number of events collected in memory. When it is reached, `append` writes them.
    var collectedMax: Int { min(self.runEventsMax / 2, 131_072) }

    /// The number of pages of the write-ahead log at which it is copied into the file.
    var logPagesMax: Int { self.bytesMax / 32 / RunTable.pageBytes }

    /// The number of events that one piece of a merge moves: normally 32,768, which takes a few milliseconds.
    var pieceEvents: Int { self.runEventsMax / 8 }

    /// The maximum number of chunks that one piece of work deletes, or of pages that it frees: normally 256.
    var pieceChunks: Int { self.runEventsMax / 1024 }

    /// The number of runs that a merge combines.
    static let fanIn = 8

    /// The maximum number of runs, which limits the work of a query.
    static let runsMax = 256

    /// The number of events after which a query for pushes examines no further run. Examining them takes a few
    /// milliseconds.
    package static let pushesExamined = 65_536

    /// The longest period that a merged run may cover. It limits how much longer than their age events are stored.
    var spanMillisecondsMax: Int64 { self.ageMillisecondsMax / 8 }
}

/// The content of a history file when it was opened.
package struct OpenedHistory: Hashable, Sendable {
    /// True if there was no usable file.
    package let isNew: Bool
    /// The records whose events are in the file.
    package let positions: RecordPositions
    /// The time of the file's newest event; nil if it has no events.
    package let newest: Instant?

    package init(isNew: Bool, positions: RecordPositions, newest: Instant?) {
        self.isNew = isNew
        self.positions = positions
        self.newest = newest
    }
}

/// A span of policy time whose events were only in a replaced journal. Answers omit these events.
package struct VoidSpan: Hashable, Sendable {
    /// The maximum number of spans that a history remembers. Older spans are forgotten.
    static let countMax = 32

    /// The time of the last event in the restored journal; exclusive.
    package let after: Instant
    /// The time of the first start with the restored journal; exclusive.
    package let until: Instant

    package init(after: Instant, until: Instant) {
        self.after = after
        self.until = until
    }

    func contains(_ event: HistoryEvent) -> Bool { event.at > self.after && event.at < self.until }
}

/// A problem of the history for an operator. The gateway itself continues.
package enum HistoryFailure: Hashable, Sendable {
    /// The file could not be used. It was renamed, and the history starts empty. `isInPlace` is true if it replaced a
    /// file that was set aside earlier.
    case setAside(path: String, reason: String, isInPlace: Bool)
    /// The file was truncated or replaced while it was in use. It now ends at record `found` instead of `durable`.
    case cutOff(found: UInt64, durable: UInt64)
    /// Events cannot be written, or queries cannot be answered. A problem is reported once; the gateway continues to
    /// try.
    case failing(reason: String)
    /// The history works again. `droppedEvents` were lost since the problem began.
    case recovered(droppedEvents: Int)

    /// The problem as a sentence without a period.
    package var message: String {
        switch self {
        case .setAside(let path, let reason, let isInPlace):
            "the history begins anew: \(reason); the old file is \(path)"
                + (isInPlace ? ", in place of one that was set aside before" : "")
        case .cutOff(let found, let durable):
            "the history was cut off or replaced while it was in use: it reached record \(durable), and now ends at "
                + "\(found); what the journal kept is written again"
        case .failing(let reason): "the history cannot be kept for now: \(reason)"
        case .recovered(let droppedEvents): "the history is kept again; \(droppedEvents) events are missing from it"
        }
    }
}

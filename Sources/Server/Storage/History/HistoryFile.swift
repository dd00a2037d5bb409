package import Engine
import Glibc
import Platform
package import Policy
package import Wire

/// What happened to devices and pushes, in a file of its own that nothing depends on.
///
/// Events are collected in memory and written in large sorted lots. With them the file says which records of events it
/// has, in one transaction: what a crash leaves of it tells by itself what is missing. Nothing here throws: what cannot
/// be written is counted and told, and a file that cannot be used is set aside. It has one user at a time, on any
/// thread.
package final class HistoryFile: HistorySource {
    /// The most events an answer about one push has.
    package static let pushEventsMax = 1024
    /// The most events of one device that a list of pushes looks at.
    package static let deviceEventsMax = 16_384

    private let path: String?
    private let key: HashKey
    private var limits: HistoryLimits
    private let vfs: String?
    private let tell: (HistoryTrouble) -> Void
    private var store: RunStore?
    private var collected = CollectedEvents()
    /// What is in the file and not durable there: after a sync that failed the file may be without it.
    private var unsynced = CollectedEvents()
    /// The records of which the events were taken, or were found in the file.
    private var taken = RecordPositions()
    /// How often the file was set aside, or found without what was durable in it: then what was appended before has to
    /// come again.
    package private(set) var beginnings = 0
    /// The newest record that the file had at the last of those times; 0 when it had none.
    package private(set) var keptSequence: UInt64 = 0
    /// The events of all records up to this one are in the file for good, whatever happens to the machine, but those
    /// that `found` leaves open.
    package private(set) var durableSequence: UInt64 = 0
    /// What was found when the file was first opened; nil as long as it could not be.
    package private(set) var found: HistoryFound?
    /// The time of the newest event; age is counted from there.
    private var newest = Instant.distantPast
    /// Why the file has to be set aside before it is opened again.
    private var damage: String?
    /// Why nothing can be written, as it was told; nil when all is well.
    private var failure: String?
    private var droppedWhileFailing = 0

    /// Whether there is a file to write to and to read from; otherwise `flush` tries to open it.
    package var isOpen: Bool { self.store != nil }

    /// Tells the key that devices are numbered with from others.
    package var keyMark: UInt64 { HistoryEvent.mark(of: self.key) }

    /// Events that were appended and never written.
    package private(set) var droppedEvents = 0

    /// Opens the file, or makes it; when neither can be done it is tried again at every `flush`.
    ///
    /// - `path`: nil for a history in memory.
    /// - `key`: what devices are numbered with; a file of another key is set aside.
    /// - `vfs`: the name of SQLite's file system layer; nil for the machine's own.
    /// - `onTrouble`: called during the calls that meet trouble, here already.
    package init(
        path: String?,
        key: HashKey,
        limits: HistoryLimits = HistoryLimits(),
        vfs: String? = nil,
        onTrouble: @escaping (HistoryTrouble) -> Void
    ) {
        self.path = path
        self.key = key
        self.limits = limits
        self.vfs = vfs
        self.tell = onTrouble
        self.open()
    }

    /// Keeps to other bounds from now on; what is past them leaves as it does otherwise, in pieces.
    package func setLimits(_ limits: HistoryLimits) {
        self.limits = limits
        self.store?.limits = limits
    }

    /// The sorted lots that the file holds; every question looks into each.
    package var runCount: Int { self.store?.runs.count ?? 0 }

    /// The events that are in memory alone.
    package var collectedEvents: Int { self.collected.count }

    /// The newest record of which the events are in the file, though a loss of power may take them out again.
    package var writtenSequence: UInt64 { self.store?.written.newest ?? 0 }

    /// The newest record of which the events were taken, or were found in the file; 0 when there is none, as after the
    /// file was begun anew.
    package var takenSequence: UInt64 { self.taken.newest }

    /// Whether the events of record `sequence` were taken, or were found in the file.
    package func holds(_ sequence: UInt64) -> Bool { self.taken.holds(sequence) }

    /// Takes events, in the order they happened, and writes nothing before very many are collected; those make room
    /// when they cannot be written.
    package func append(_ events: ArraySlice<HistoryEvent>) {
        for event in events { self.append(event) }
    }

    package func append(_ event: HistoryEvent) {
        // Trouble costs no more memory than none. A name goes with its event, or stays with it.
        if !self.makeRoom(1 + event.followers) { self.dropCollected() }
        self.collect(event)
    }

    /// Takes all events of record `sequence`: in the file there will be all of them, or none. Those of a record that
    /// was taken before, or is in the file already, are not taken again.
    ///
    /// - Returns: false when none was taken, since there is no room as nothing can be written, or since the file was
    ///   begun anew: then those of earlier records come first.
    @discardableResult
    package func append(_ events: ArraySlice<HistoryEvent>, ofRecord sequence: UInt64) -> Bool {
        guard !self.taken.holds(sequence) else { return true }
        let beginnings = self.beginnings
        guard self.makeRoom(events.count), beginnings == self.beginnings else { return false }
        for event in events { self.collect(event) }
        self.taken.take(sequence)
        self.collected.endRecord(sequence)
        // One that earlier numbers left off before.
        self.durableSequence = min(self.durableSequence, sequence - 1)
        return true
    }

    /// - Returns: whether there is room for so many events.
    private func makeRoom(_ count: Int) -> Bool {
        guard !self.collected.isEmpty, self.collected.count + count > self.limits.collectedMax else { return true }
        self.flush()
        return self.collected.isEmpty
    }

    private func collect(_ event: HistoryEvent) {
        self.collected.append(event)
        self.newest = max(self.newest, event.at)
    }

    /// Writes what is collected; meant to be called about once a second. After a fault events stay collected while
    /// there is room.
    package func flush() {
        if self.store == nil { self.open() }
        guard let store = self.store, !self.collected.isEmpty else { return }
        self.attempt { () throws(SQLiteError) in
            // The bound holds also when nobody finds the time to tidy.
            while store.isFull, try store.tidy(now: self.newest) {}
            try store.add(self.collected.events, ofRecords: self.collected.records)
            if self.path != nil { self.unsynced.append(self.collected) }
            self.collected.removeAll()
            self.noteSuccess()
        }
        if self.unsynced.count >= self.limits.collectedMax { self.sync() }
    }

    /// Makes what is in the file durable; meant to be called every few seconds.
    package func sync() {
        guard let store = self.store, store.written.newest > self.durableSequence || !self.unsynced.isEmpty else {
            return
        }
        self.attempt { () throws(SQLiteError) in
            if self.path != nil { try store.table.sync() }
            self.durableSequence = min(store.written.newest, self.collected.oldestRecord.map { $0 - 1 } ?? .max)
            self.unsynced.removeAll()
        }
    }

    /// Does one piece of a few milliseconds of merging, or of dropping what is too old or too much.
    ///
    /// Age is counted from the newest event: where nothing happens nothing is dropped.
    ///
    /// - Returns: whether there may be more to do.
    package func tidy() -> Bool {
        guard let store = self.store else { return false }
        return self.attempt { () throws(SQLiteError) in try store.tidy(now: self.newest) } ?? false
    }

    /// How often events left the file since the last call, for each of the two bounds.
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

    package func entries(devices: [UInt64], since oldest: Instant, countEach: Int, countMax: Int) -> LoggedEntries {
        let wanted = Set(devices)
        var collected: [UInt64: [HistoryEvent]] = [:]
        for event in self.collected.events.reversed() where wanted.contains(event.device) {
            collected[event.device, default: []].append(event)
        }
        var (found, count) = (LoggedEntries(), 0)
        for device in devices where count < countMax {
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
        let events = ((written ?? []) + collected).enumerated().sorted {
            ($0.element.at, $0.offset) < ($1.element.at, $1.offset)
        }
        return events.suffix(Self.pushEventsMax).map(\.element)
    }

    package func pushes(behind place: LoggedPush?, notBefore oldest: Instant, countMax: Int) -> LoggedPushes {
        var collector = LoggedPushCollector(behind: place, notBefore: oldest, countMax: countMax)
        for event in self.collected.events.reversed() { collector.append(event) }
        guard let store = self.store else { return collector.finish(unseen: nil) }
        let unseen = self.attempt { () throws(SQLiteError) in
            try store.collectPushes(notAfter: place?.at ?? .distantFuture, &collector)
        }
        return collector.finish(unseen: unseen ?? nil)
    }

    /// The devices that anything happened to, by their numbers, in no order. It reads the whole file.
    package func devices() -> Set<UInt64> {
        let collected = Set(self.collected.events.map(\.device))
        guard let store = self.store else { return collected }
        let written = self.attempt { () throws(SQLiteError) in try store.devices() }
        return collected.union(written ?? [])
    }

    /// Why something could not be read or written lately; nil when all is well.
    package var cause: String? { self.damage ?? self.failure }

    /// Lets the file grow to so many pages and no further, as if the disk were full then.
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

    /// Compares what was taken with what the file holds that was just opened.
    private func adopt(_ store: RunStore) {
        if self.found == nil {
            let written = store.written
            self.found = HistoryFound(
                isNew: store.table.isNew,
                sequence: written.newest,
                leftOff: written.leftOff,
                newest: store.newest
            )
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

    /// Takes nothing for taken: what was in the file comes before what is collected.
    private func letGoOfRecords() {
        self.collected.removeRecords { _ in true }
        self.taken = RecordPositions()
        self.durableSequence = 0
        self.keptSequence = 0
        self.beginnings += 1
    }

    /// Why the file, or one that SQLite keeps beside it, cannot be used, as a sentence: what lies in its place and is
    /// no file, as a pipe that would keep whoever opens it waiting, or what may not be written, of which SQLite would
    /// not say the cause.
    private var obstacle: String? {
        guard let path = self.path, self.vfs == nil else { return nil }
        for path in ["", "-wal", "-shm", "-journal"].map({ path + $0 }) {
            guard let status = try? FileSystem.status(path) else { continue }
            if status.kind != .file { return "\(path) is no ordinary file; move it away" }
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

    /// Runs `body`, and deals with what it throws; nil is returned then.
    @discardableResult
    private func attempt<Result>(_ body: () throws(SQLiteError) -> Result) -> Result? {
        do throws(SQLiteError) {
            return try body()
        } catch {
            if RunTable.isDamage(error) {
                // The callers still hold the store; at the next `flush` the file is closed, and can be renamed.
                self.damage = error.message
                self.letGoOfStore()
            } else {
                self.noteFailure(error.message)
                // The kernel may count as written what it could not write, and SQLite as being there.
                if error.kind == .io { self.letGoOfStore() }
            }
            return nil
        }
    }

    /// Has the next `flush` open the file anew, and write again what it is found to be without.
    private func letGoOfStore() {
        // Closing would copy the log into the file.
        try? self.store?.table.database.keepLogOnClose()
        self.store = nil
        guard !self.unsynced.isEmpty else { return }
        self.unsynced.append(self.collected)
        swap(&self.unsynced, &self.collected)
        self.unsynced.removeAll()
    }

    /// Gives the file another name, in place of one that was set aside before, and lets go of all records: those that
    /// were in it come before the others.
    ///
    /// - Returns: whether the name is free now.
    private func setAside(_ reason: String) -> Bool {
        guard let path = self.path else {
            self.tell(.setAside(path: "", reason: reason, isInPlace: false))
            return true
        }
        let aside = path + ".set-aside"
        let isInPlace = FileSystem.exists(aside)
        // The log belongs to the file, and goes with it.
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
    }
}

/// The bounds of the history. Everything else follows from the size.
package struct HistoryLimits: Hashable, Sendable {
    /// The bytes that the file and its write-ahead log stay within; at least 4 MiB.
    package let bytesMax: Int
    /// How long an event is kept, in milliseconds of policy time; up to an eighth more, as events leave in large lots.
    package let ageMillisecondsMax: Int64

    package init(
        bytesMax: Int = 256 << 20,
        ageMillisecondsMax: Int64 = 7 * 86_400_000
    ) {
        self.bytesMax = max(bytesMax, 4 << 20)
        self.ageMillisecondsMax = max(ageMillisecondsMax, 0)
    }

    /// A history in memory: smaller, as it stands beside the devices.
    package static let inMemory = HistoryLimits(bytesMax: 32 << 20)

    /// The bytes of the runs that are kept; the rest of the size is for the log, and for a merge's result while its
    /// inputs are still there.
    var keptBytesMax: Int { self.bytesMax / 16 * 10 }

    /// The events of the largest run that a merge makes: about a thirty-second of the size.
    var runEventsMax: Int { min(self.bytesMax / 1024, 1 << 20) }

    /// The events collected in memory before they are written, asked for or not.
    var collectedMax: Int { min(self.runEventsMax / 2, 131_072) }

    /// The pages of the write-ahead log after which it is copied into the file.
    var logPagesMax: Int { self.bytesMax / 32 / RunTable.pageBytes }

    /// The events that one piece of a merge moves: 32,768 as a rule, a few milliseconds.
    var pieceEvents: Int { self.runEventsMax / 8 }

    /// The chunks that one piece of work deletes, or the pages it gives back: 256 as a rule.
    var pieceChunks: Int { self.runEventsMax / 1024 }

    /// The runs a merge makes one of.
    static let fanIn = 8

    /// The runs that there are at most, so that a question has a bounded number of places to look at.
    static let runsMax = 256

    /// The events after which a list of pushes looks into no further run: a few milliseconds.
    static let pushesExamined = 65_536

    /// The longest time a merged run may span, so that events do not outlive their age for long.
    var spanMillisecondsMax: Int64 { self.ageMillisecondsMax / 8 }
}

/// What the file of a history held when it was opened.
package struct HistoryFound: Hashable, Sendable {
    /// There was none, or none that is of use.
    package let isNew: Bool
    /// The newest record of events in the file; 0 when none had a number.
    package let sequence: UInt64
    /// The last records in the file of earlier numbers, which went on when others began anew: of those behind them the
    /// events may be missing.
    package let leftOff: [UInt64]
    /// When its newest event happened; nil when it holds none.
    package let newest: Instant?

    package init(isNew: Bool, sequence: UInt64, leftOff: [UInt64] = [], newest: Instant?) {
        self.isNew = isNew
        self.sequence = sequence
        self.leftOff = leftOff
        self.newest = newest
    }

    /// The records whose events are in the file.
    package var positions: RecordPositions { RecordPositions(newest: self.sequence, leftOff: self.leftOff) }
}

/// What befell the history and should be told to whoever runs the gateway; the gateway itself goes on.
package enum HistoryTrouble: Hashable, Sendable {
    /// The file could not be used; it now has another name, and the history begins anew. `isInPlace`: a file that was
    /// set aside before is gone.
    case setAside(path: String, reason: String, isInPlace: Bool)
    /// The file was cut off or replaced while it was in use: it goes on to record `found`, and went on to `durable`.
    case cutOff(found: UInt64, durable: UInt64)
    /// Events cannot be written, or questions not be answered; told once, and tried again.
    case failing(reason: String)
    /// The history works again; so many events were lost since the trouble began.
    case recovered(droppedEvents: Int)

    /// What happened, as a sentence without a full stop.
    package var message: String {
        switch self {
        case .setAside(let path, let reason, let isInPlace):
            "the history begins anew: \(reason); the old file is \(path)"
                + (isInPlace ? ", in place of one that was set aside before" : "")
        case .cutOff(let found, let durable):
            "the history was cut off or replaced while it was in use: it went on to record \(durable), and goes on to "
                + "\(found); what the journal kept is written again"
        case .failing(let reason): "the history cannot be kept for now: \(reason)"
        case .recovered(let droppedEvents): "the history is kept again; \(droppedEvents) events are missing from it"
        }
    }
}

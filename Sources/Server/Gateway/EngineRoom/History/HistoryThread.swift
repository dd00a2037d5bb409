package import Engine
package import HTTPTransport
package import Platform
package import Storage
import Synchronization
import Wire

/// Writes the history and answers requests from it, on a separate thread.
package final class HistoryThread: HistoryOutput {
    /// Informs the journal of the events that it need not keep any longer.
    package let retention = EventRetention()
    /// The time in milliseconds over which events are collected. Events are written about a second later.
    private static let batchWindow: Int64 = 10

    private let mailbox = Mailbox<HistoryBatch>()
    private let opened = Opened()
    private let thread: NamedThread
    private let prepare: @Sendable () throws(StoreError) -> Void

    /// The state of opening the file: the request, and the contents found.
    private final class Opened: Sendable {
        let isAsked = Mutex(false)
        let isDecided = Latch()
        let found = Mutex<HistoryFound?>(nil)
        let isKnown = Latch()
    }

    /// - Parameters:
    ///   - mailboxes: the destinations of answers.
    ///   - tally: counts the events that leave the history.
    ///   - journal: has the records that the history lacks; nil if nothing is stored.
    ///   - onDropped: called on the thread with the number of events that were dropped because too many were waiting.
    ///   - onFault: called on the thread with a description of events that the history lacks permanently.
    ///   - prepare: called by `open` before the file is opened.
    ///   - makeFile: opens the file, on the thread that will use it.
    /// - Throws: `ThreadFailure` if the system cannot create its thread.
    package init(
        mailboxes: PerOutput<LoopMailbox>,
        tally: LimitTally<GatewayCountedLimit> = LimitTally(),
        journal: JournalEvents? = nil,
        onDropped: @escaping @Sendable (Int) -> Void,
        onFault: @escaping @Sendable (String) -> Void = { _ in },
        prepare: @escaping @Sendable () throws(StoreError) -> Void = {},
        makeFile: @escaping @Sendable () -> HistoryFile
    ) throws(ThreadFailure) {
        self.prepare = prepare
        let mailbox = self.mailbox
        let opened = self.opened
        let retention = self.retention
        self.thread = try NamedThread("history") {
            opened.isDecided.wait()
            guard opened.isAsked.withLock({ $0 }) else { return }
            Self.run(mailbox) {
                let file = makeFile()
                // With a gap, the journal may have the missing records; the feed then reports which it need not keep.
                if file.found?.leftOff.isEmpty ?? true { retention.advance(to: file.durableSequence) }
                opened.found.withLock { $0 = file.found }
                opened.isKnown.open()
                return HistoryTurns(HistoryFeed(file, retention, journal, onFault), mailboxes, tally, onDropped)
            }
        }
    }

    package func submit(_ batch: inout HistoryBatch) {
        self.mailbox.submit(&batch)
    }

    /// Applies other limits from now on.
    package func setLimits(_ limits: HistoryLimits) {
        var batch = HistoryBatch()
        batch.limits = limits
        self.mailbox.submit(&batch)
    }

    /// Writes the remaining events, ends the thread, and waits for it.
    package func stop() {
        self.opened.isDecided.open()
        self.mailbox.close()
        self.thread.join()
    }

    package func open() throws(StoreError) {
        try self.prepare()
        self.opened.isAsked.withLock { $0 = true }
        self.opened.isDecided.open()
    }

    package func waitUntilOpened() -> HistoryFound? {
        self.opened.isKnown.wait()
        return self.opened.found.withLock { $0 }
    }

    /// The file is closed when this function returns.
    private static func run(_ mailbox: Mailbox<HistoryBatch>, _ open: () -> HistoryTurns) {
        let turns = open()
        var batch = HistoryBatch()
        while mailbox.take(into: &batch, waitingAtMost: turns.millisecondsToNext, batchWindow: Self.batchWindow) {
            turns.take(batch)
            batch.removeAll()
            turns.work()
        }
        turns.finish()
    }
}

/// The work of the history's thread in each turn: takes events, answers, writes, syncs, and deletes old events.
final class HistoryTurns {
    /// The maximum time that events stay in memory, in milliseconds.
    private static let flushInterval: Int64 = 1000
    /// The maximum time, in milliseconds, before events in the file are synced. Until then the journal keeps them.
    ///
    /// Syncs are rare because each delays the journal's syncs on the same disk.
    private static let syncInterval: Int64 = 5000
    /// The number of bytes that the journal keeps for the history above which the sync happens earlier.
    private static let heldBytesMax = 32 << 20

    private let feed: HistoryFeed
    private let file: HistoryFile
    private let mailboxes: PerOutput<LoopMailbox>
    private let tally: LimitTally<GatewayCountedLimit>
    private let onDropped: (Int) -> Void
    private var isTidy = false
    /// The times of the next write, the next sync, and the next reading from the journal, in milliseconds of the
    /// monotonic clock; nil for none.
    private var flushAt: Int64?
    private var syncAt: Int64?
    private var catchUpAt: Int64?
    /// The earliest time at which the size of the journal may cause another early sync.
    private var flushEarlyAt: Int64 = 0

    init(
        _ feed: HistoryFeed,
        _ mailboxes: PerOutput<LoopMailbox>,
        _ tally: LimitTally<GatewayCountedLimit>,
        _ onDropped: @escaping (Int) -> Void
    ) {
        self.feed = feed
        self.file = feed.file
        self.mailboxes = mailboxes
        self.tally = tally
        self.onDropped = onDropped
    }

    /// The maximum wait for new work in milliseconds; ten minutes if nothing is due.
    var millisecondsToNext: Int64 {
        guard self.isTidy else { return 0 }
        let next = min(self.flushAt ?? .max, self.syncAt ?? .max, self.catchUpAt ?? .max)
        return next == .max ? 600_000 : max(0, next - SystemClock.monotonic)
    }

    /// Takes everything in a batch.
    func take(_ batch: HistoryBatch) {
        if let limits = batch.limits { self.file.setLimits(limits) }
        self.feed.take(batch)
        for question in batch.questions { question.answer(from: self.file, self.mailboxes) }
        if self.file.collectedEvents > 0 || !self.file.isOpen {
            self.flushAt = self.flushAt ?? SystemClock.monotonic + Self.flushInterval
        }
        if self.file.writtenSequence > self.file.durableSequence {
            self.syncAt = self.syncAt ?? SystemClock.monotonic + Self.syncInterval
        }
        let droppedEvents = self.feed.takeDropped()
        if droppedEvents > 0 { self.onDropped(droppedEvents) }
    }

    /// Writes, syncs and reads if due, and deletes some old events.
    func work() {
        let now = SystemClock.monotonic
        let isOverfull = now >= self.flushEarlyAt && self.feed.heldBytes > Self.heldBytesMax
        if isOverfull { self.flushEarlyAt = now + Self.flushInterval }
        if let flushAt = self.flushAt, now >= flushAt || isOverfull {
            self.feed.flush()
            // Repeats a failed write.
            let isDone = self.file.collectedEvents == 0 && self.file.isOpen
            self.flushAt = isDone ? nil : now + Self.flushInterval
            self.syncAt = self.syncAt ?? now + Self.syncInterval
        }
        self.catchUp(now)
        if let syncAt = self.syncAt, now >= syncAt || isOverfull { self.sync() }
        self.isTidy = !self.file.tidy()
        let left = self.file.takeDropped()
        if left.bySize > 0 { self.tally.met(.historyBytesMax, times: left.bySize) }
        if left.byAge > 0 { self.tally.met(.historySeconds, times: left.byAge) }
    }

    /// Writes and syncs the remaining events. The next process finds any others in the journal.
    func finish() {
        self.feed.flush()
        self.feed.sync()
    }

    private func sync() {
        self.feed.sync()
        let isDone = self.file.durableSequence >= self.file.writtenSequence
        self.syncAt = isDone ? nil : SystemClock.monotonic + Self.syncInterval
    }

    /// Reads some of the events that the file lacks; retries after a failure.
    private func catchUp(_ now: Int64) {
        if self.feed.isBehind, now >= self.catchUpAt ?? 0 {
            let isGettingOn = self.feed.catchUp()
            self.catchUpAt = isGettingOn ? now : now + Self.flushInterval
            self.flushAt = self.flushAt ?? now + Self.flushInterval
        }
        if !self.feed.isBehind { self.catchUpAt = nil }
    }
}

/// A source of history in a database whose transactions write the events themselves.
package protocol SharedHistorySource: HistorySource {
    /// Applies other limits from now on.
    func setLimits(_ limits: HistoryLimits)

    /// Deletes some of the events that exceed the limits.
    ///
    /// - Returns: true if there may be more to delete.
    func tidy() -> Bool
}

/// The history of a gateway, on a separate thread.
package protocol HistoryService: HistoryOutput {
    /// Applies other limits from now on.
    func setLimits(_ limits: HistoryLimits)

    /// Finishes the submitted work, ends the thread, and waits for it.
    func stop()
}

extension HistoryThread: HistoryService {}

/// Answers requests to the history from a shared database, on a separate thread.
///
/// The events in a batch are ignored: they were committed to the database together with the changes that they describe.
package final class DatabaseHistory: HistoryService {
    /// The interval of deletions when there was nothing to delete, in milliseconds.
    private static let tidyInterval: Int64 = 60_000

    private let mailbox = Mailbox<HistoryBatch>()
    private let thread: NamedThread

    /// - Parameters:
    ///   - mailboxes: the destinations of answers.
    ///   - makeSource: creates the source, on the thread that will use it.
    /// - Throws: `ThreadFailure` if the system cannot create its thread.
    package init(
        mailboxes: PerOutput<LoopMailbox>,
        makeSource: @escaping @Sendable () -> any SharedHistorySource
    ) throws(ThreadFailure) {
        let mailbox = self.mailbox
        self.thread = try NamedThread("history") { Self.run(mailbox, mailboxes, makeSource()) }
    }

    package func open() {}

    package func waitUntilOpened() -> HistoryFound? { nil }

    package func submit(_ batch: inout HistoryBatch) { self.mailbox.submit(&batch) }

    /// Applies other limits from now on.
    package func setLimits(_ limits: HistoryLimits) {
        var batch = HistoryBatch()
        batch.limits = limits
        self.mailbox.submit(&batch)
    }

    /// Answers the submitted requests, ends the thread, and waits for it.
    package func stop() {
        self.mailbox.close()
        self.thread.join()
    }

    private static func run(
        _ mailbox: Mailbox<HistoryBatch>,
        _ mailboxes: PerOutput<LoopMailbox>,
        _ source: any SharedHistorySource
    ) {
        var batch = HistoryBatch()
        var tidyAt = SystemClock.monotonic + Self.tidyInterval
        while mailbox.take(into: &batch, waitingAtMost: max(0, tidyAt - SystemClock.monotonic)) {
            if let limits = batch.limits { source.setLimits(limits) }
            for question in batch.questions { question.answer(from: source, mailboxes) }
            batch.removeAll()
            guard SystemClock.monotonic >= tidyAt else { continue }
            tidyAt = SystemClock.monotonic + (source.tidy() ? 0 : Self.tidyInterval)
        }
    }
}

/// The contents of a group for the history: events, and requests about events.
///
/// The class is `@unchecked Sendable`: a batch has one owner at a time, and changes owners under the lock of `Mailbox`.
package final class HistoryBatch: MailboxBatch, @unchecked Sendable {
    /// The maximum number of events waiting for the history, about 20 MB. Further events are not kept: the history
    /// reads events of records from the journal later, and other events are counted as dropped.
    private static let eventsMax = 262_144

    /// The number of events at which the history's thread is woken immediately.
    private static let eventsCollectedMax = 8192

    /// A committed record of events.
    struct Record {
        let sequence: UInt64
        /// The index in `events` after the record's last event.
        let end: Int
    }

    /// The events that the journal kept for the history at the start; they precede `events`.
    package var recovery: EventRecovery?
    package var events: [HistoryEvent] = []
    /// The records in which `events` were committed; empty for a gateway that stores nothing.
    var records: [Record] = []
    package var questions: [HistoryQuestion] = []
    /// New limits; nil if they are unchanged.
    var limits: HistoryLimits?
    /// The difference between wall clock and policy time at the newest of `events`; nil if there is none.
    var offset: WallOffset?
    /// The number of events outside any record that were dropped because too many were waiting.
    private(set) var droppedEvents = 0

    package init() {}

    package var isEmpty: Bool {
        self.events.isEmpty && self.questions.isEmpty && self.limits == nil && self.recovery == nil
    }

    /// True if a caller waits for an answer, or if there are too many events to collect more.
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

/// The destination of events, and of requests about events.
package protocol HistoryOutput: AnyObject, Sendable {
    /// Opens or creates the file, which is not touched before.
    ///
    /// - Throws: if it could not be used after a restart.
    func open() throws(StoreError)

    /// Waits until the file is open, and returns its contents at that time; nil if it could not be opened.
    func waitUntilOpened() -> HistoryFound?

    /// Takes everything in `batch` and empties it.
    func submit(_ batch: inout HistoryBatch)
}

/// Numbers the records of events of each commit consecutively, and writes them.
///
/// If the last number is unknown, numbering starts anew from the current second, whose numbers are unused.
package struct EventNumbers {
    private var next: UInt64
    /// The mark of the key with which devices are numbered.
    private let keyMark: UInt64

    /// - `last`: the number of the newest record in the journal or in the history; 0 for none.
    package init(after last: UInt64, keyMark: UInt64) {
        self.next = last + 1
        self.keyMark = keyMark
    }

    /// Returns the number before the first one of a new numbering; `wall` is the wall clock in milliseconds since 1970.
    static func beginning(wall: Int64) -> UInt64 {
        // Valid until the year 2106, and below the highest possible number.
        UInt64(UInt32(clamping: wall / 1000)) * EventRecord.sequencesOfSecond
    }

    /// Writes the events of a batch, which are not numbered yet, as records of their commit.
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

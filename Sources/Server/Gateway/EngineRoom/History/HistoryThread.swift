package import Engine
package import HTTPTransport
package import Platform
package import Storage
import Synchronization
import Wire

/// Writes the history and answers requests from it, on a separate thread.
package final class HistoryThread: HistoryService {
    /// Informs the journal of the events that it need not keep.
    package let retention = EventRetention()
    /// The time for which events are collected before the thread handles them, in milliseconds.
    private static let batchWindow: Int64 = 10

    private let mailbox = Mailbox<HistoryBatch>()
    private let opened = Opened()
    private let thread: NamedThread
    private let prepare: @Sendable () throws(StoreError) -> Void

    /// The state of opening the file.
    private final class Opened: Sendable {
        let isRequested = Mutex(false)
        let isDecided = Latch()
        let found = Mutex<OpenedHistory?>(nil)
        let isKnown = Latch()
    }

    /// - Parameters:
    ///   - mailboxes: the destinations of answers.
    ///   - tally: counts the events that are deleted because of the history's limits.
    ///   - journal: has the records that the history lacks; nil if nothing is stored.
    ///   - onDropped: called on the thread with the number of events that were dropped because too many were pending.
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
            guard opened.isRequested.withLock({ $0 }) else { return }
            Self.run(mailbox) {
                let file = makeFile()
                // If records are missing, the journal may have them. The feed then reports which records the journal
                // need not keep.
                if file.found?.positions.leftOff.isEmpty ?? true { retention.advance(to: file.durableSequence) }
                opened.found.withLock { $0 = file.found }
                opened.isKnown.open()
                return HistoryTurns(HistoryFeed(file, retention, journal, onFault), mailboxes, tally, onDropped)
            }
        }
    }

    package func submit(_ batch: inout HistoryBatch) {
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
        self.opened.isRequested.withLock { $0 = true }
        self.opened.isDecided.open()
    }

    package func waitUntilOpened() -> OpenedHistory? {
        self.opened.isKnown.wait()
        return self.opened.found.withLock { $0 }
    }

    /// Runs the thread. The file is closed when this function returns.
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

/// The work of the history's thread in each turn: records events, answers requests, writes, syncs, and deletes old
/// events.
final class HistoryTurns {
    /// The maximum time before events are written and synced, in milliseconds. Until then they are in memory and the
    /// journal keeps them.
    ///
    /// Writes are rare, because each one adds a run, and runs are merged with others later. Syncs are rare, because
    /// each one delays the syncs of a journal on the same disk.
    private static let writeInterval: Int64 = 5000
    /// The time before another attempt after a failure, and between two early writes, in milliseconds.
    private static let retryInterval: Int64 = 1000
    /// The size of the events kept by the journal, in bytes, above which the history writes earlier.
    private static let heldBytesMax = 32 << 20

    private let feed: HistoryFeed
    private let file: HistoryFile
    private let mailboxes: PerOutput<LoopMailbox>
    private let tally: LimitTally<GatewayCountedLimit>
    private let onDropped: (Int) -> Void
    private var isTidy = false
    /// The times of the next write and the next reading from the journal, in milliseconds of the monotonic clock; nil
    /// for none.
    private var writeAt: Int64?
    private var catchUpAt: Int64?
    /// The earliest time of another write because of the size of the journal.
    private var writeEarlyAt: Int64 = 0

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

    /// The maximum wait for new work in milliseconds. It is ten minutes if nothing is due.
    var millisecondsToNext: Int64 {
        guard self.isTidy else { return 0 }
        let next = min(self.writeAt ?? .max, self.catchUpAt ?? .max)
        return next == .max ? 600_000 : max(0, next - SystemClock.monotonic)
    }

    /// Passes everything in a batch to the file and the feed.
    func take(_ batch: HistoryBatch) {
        if let limits = batch.limits { self.file.setLimits(limits) }
        self.feed.take(batch)
        for question in batch.questions { question.answer(from: self.file, self.mailboxes) }
        if !self.isWritten { self.writeAt = self.writeAt ?? SystemClock.monotonic + Self.writeInterval }
        let droppedEvents = self.feed.takeDropped()
        if droppedEvents > 0 { self.onDropped(droppedEvents) }
    }

    /// True if the file is open, and all events are in it and durable.
    private var isWritten: Bool {
        self.file.isOpen && self.file.collectedEvents == 0 && self.file.durableSequence >= self.file.writtenSequence
    }

    /// Writes, syncs and reads if due, and deletes some old events.
    func work() {
        let now = SystemClock.monotonic
        let isOverfull = now >= self.writeEarlyAt && self.feed.heldBytes > Self.heldBytesMax
        if isOverfull { self.writeEarlyAt = now + Self.retryInterval }
        if let writeAt = self.writeAt, now >= writeAt || isOverfull {
            self.feed.flush()
            self.feed.sync()
            self.writeAt = self.isWritten ? nil : now + Self.retryInterval
        }
        self.catchUp(now)
        self.isTidy = !self.file.tidy()
        // A question or a merge may have found damage and closed the file.
        if !self.file.isOpen { self.writeAt = min(self.writeAt ?? .max, now + Self.retryInterval) }
        let left = self.file.takeDropped()
        if left.bySize > 0 { self.tally.met(.historyBytesMax, times: left.bySize) }
        if left.byAge > 0 { self.tally.met(.historySeconds, times: left.byAge) }
    }

    /// Writes and syncs the remaining events. If this fails, the next process reads them from the journal.
    func finish() {
        self.feed.flush()
        self.feed.sync()
    }

    /// Reads some of the events that the file lacks. Waits before another attempt after a failure.
    private func catchUp(_ now: Int64) {
        if self.feed.isBehind, now >= self.catchUpAt ?? 0 {
            let isGettingOn = self.feed.catchUp()
            self.catchUpAt = isGettingOn ? now : now + Self.retryInterval
            self.writeAt = self.writeAt ?? now + Self.writeInterval
        }
        if !self.feed.isBehind { self.catchUpAt = nil }
    }
}

/// A source of history in a database. Transactions of the engine write the events.
package protocol SharedHistorySource: HistorySource {
    /// Changes the limits.
    func setLimits(_ limits: HistoryLimits)

    /// Deletes some of the events that exceed the limits.
    ///
    /// - Returns: true if more events may exceed the limits.
    func tidy() -> Bool
}

/// The history of a gateway, on a separate thread.
package protocol HistoryService: HistoryOutput {
    /// Finishes the submitted work, ends the thread, and waits for it.
    func stop()
}

extension HistoryService {
    /// Changes the limits.
    func setLimits(_ limits: HistoryLimits) {
        var batch = HistoryBatch()
        batch.limits = limits
        self.submit(&batch)
    }
}

/// Answers requests to the history from a shared database, on a separate thread.
///
/// The events in a batch are ignored, because transactions have already committed them to the database.
package final class DatabaseHistory: HistoryService {
    /// The interval of deletions if the previous one deleted nothing, in milliseconds.
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

    package func waitUntilOpened() -> OpenedHistory? { nil }

    package func submit(_ batch: inout HistoryBatch) { self.mailbox.submit(&batch) }

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

/// The contents of a commit for the history: events, and requests about events.
///
/// The class is `@unchecked Sendable`: a batch has one owner at a time, and changes owners under the lock of `Mailbox`.
package final class HistoryBatch: MailboxBatch, @unchecked Sendable {
    /// The maximum number of events pending for the history, about 20 MB. Further events are not kept. The history
    /// later reads those in records from the journal; others are counted as dropped.
    private static let eventsMax = 262_144

    /// The number of events at which the history's thread is woken immediately.
    private static let eventsCollectedMax = 8192

    /// A committed record of events.
    struct Record {
        let sequence: UInt64
        /// The index after the record's last event in `events`.
        let end: Int
    }

    /// The events of earlier processes that the journal kept for the history. They precede `events`.
    package var recovery: EventRecovery?
    package var events: [HistoryEvent] = []
    /// The records in which `events` were committed; empty for a gateway that stores nothing.
    var records: [Record] = []
    package var questions: [HistoryQuestion] = []
    /// New limits; nil if they are unchanged.
    var limits: HistoryLimits?
    /// The difference between wall clock and policy time when the newest of `events` was recorded; nil without events.
    var offset: WallOffset?
    /// The number of events without a record that were dropped because too many were pending.
    private(set) var droppedEvents = 0

    package init() {}

    package var isEmpty: Bool {
        self.events.isEmpty && self.questions.isEmpty && self.limits == nil && self.recovery == nil
    }

    /// True if a caller waits for an answer, or if enough events are collected.
    package var isUrgent: Bool {
        !self.questions.isEmpty || self.limits != nil || self.recovery != nil
            || self.events.count >= Self.eventsCollectedMax
    }

    package func append(_ other: HistoryBatch) {
        self.recovery = other.recovery ?? self.recovery
        self.offset = other.offset ?? self.offset
        self.droppedEvents += other.droppedEvents
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

/// A destination of events, and of requests about events.
package protocol HistoryOutput: AnyObject, Sendable {
    /// Opens or creates the file. The file is not accessed before.
    ///
    /// - Throws: `StoreError` if the history could not be used after a restart.
    func open() throws(StoreError)

    /// Waits until the file is open, and returns its contents at that time; nil if it could not be opened.
    func waitUntilOpened() -> OpenedHistory?

    /// Takes everything in `batch` and empties it.
    func submit(_ batch: inout HistoryBatch)
}

/// Gives consecutive numbers to the records of events, and writes the records.
///
/// If the last number is unknown, a new numbering starts from the current second, whose numbers have not been used.
package struct EventNumbers {
    private var next: UInt64
    /// The mark that identifies the key for the numbers of devices.
    private let keyMark: UInt64

    /// - `last`: the number of the newest record in the journal and the history; 0 if there is none.
    package init(after last: UInt64, keyMark: UInt64) {
        self.next = last + 1
        self.keyMark = keyMark
    }

    /// Returns the number before the first number of a new numbering; `wall` is the wall clock in milliseconds since
    /// 1970.
    static func beginning(wall: Int64) -> UInt64 {
        // Works until the year 2106. Larger numbers are possible.
        UInt64(UInt32(clamping: wall / 1000)) * EventRecord.sequencesOfSecond
    }

    /// Writes the events of a batch as records of their commit. The events must have no records yet.
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

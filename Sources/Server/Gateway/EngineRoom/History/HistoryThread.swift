package import Engine
package import HTTPTransport
package import Platform
package import Storage
import Synchronization
import Wire

/// Writes the history, and answers from it, on a thread of its own.
package final class HistoryThread: HistoryOutlet {
    /// Says to the journal what it need not keep any more.
    package let retention = EventRetention()
    /// For how many milliseconds events are collected before they are taken, which are written a second later.
    private static let rest: Int64 = 10

    private let mailbox = Mailbox<HistoryBatch>()
    private let opened = Opened()
    private let thread: NamedThread
    private let prepare: @Sendable () throws(StoreError) -> Void

    /// Whether the file is to be opened, and what it held then.
    private final class Opened: Sendable {
        let isAsked = Mutex(false)
        let isDecided = Latch()
        let found = Mutex<HistoryFound?>(nil)
        let isKnown = Latch()
    }

    /// - Parameters:
    ///   - mailboxes: where answers go.
    ///   - tally: hears of events that left the history.
    ///   - journal: has the records of events that the history was without; nil when nothing is kept.
    ///   - onDropped: called, on the thread, with how many events were dropped because too many waited.
    ///   - onFault: called, on the thread, with what the history lacks for good, in words.
    ///   - prepare: called by `open`, before the file is opened.
    ///   - makeFile: opens the file, on the thread that will use it.
    /// - Throws: `ThreadFailure` when the system has no room for its thread.
    package init(
        mailboxes: PerOutlet<LoopMailbox>,
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
                // Else the journal may keep what is missing from among the others: the feed says when it does not.
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

    /// Keeps to other bounds from now on.
    package func setLimits(_ limits: HistoryLimits) {
        var batch = HistoryBatch()
        batch.limits = limits
        self.mailbox.submit(&batch)
    }

    /// Writes what it was given, ends the thread, and waits for that.
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

    /// The file is closed when this returns.
    private static func run(_ mailbox: Mailbox<HistoryBatch>, _ open: () -> HistoryTurns) {
        let turns = open()
        var batch = HistoryBatch()
        while mailbox.take(into: &batch, waitingAtMost: turns.millisecondsToNext, resting: Self.rest) {
            turns.take(batch)
            batch.removeAll()
            turns.work()
        }
        turns.finish()
    }
}

/// What the history's thread does in its turns: takes events, answers, writes, syncs, tidies.
final class HistoryTurns {
    /// How long events may lie in memory, in milliseconds.
    private static let flushInterval: Int64 = 1000
    /// How long events may lie in the file and not be durable there, in milliseconds: the journal keeps them as long.
    ///
    /// Who syncs on the same disk, the journal, is held up meanwhile: syncing seldom keeps that from most commits.
    private static let syncInterval: Int64 = 5000
    /// Bytes that the journal keeps for the history at which it does not wait as long.
    private static let heldBytesMax = 32 << 20

    private let feed: HistoryFeed
    private let file: HistoryFile
    private let mailboxes: PerOutlet<LoopMailbox>
    private let tally: LimitTally<GatewayCountedLimit>
    private let onDropped: (Int) -> Void
    private var isTidy = false
    /// When to write, when to sync, and when to read what the file was without, on the monotonic clock; nil when there
    /// is nothing to.
    private var flushAt: Int64?
    private var syncAt: Int64?
    private var catchUpAt: Int64?
    /// When the journal's need may hurry writing and syncing again.
    private var hurryAt: Int64 = 0

    init(
        _ feed: HistoryFeed,
        _ mailboxes: PerOutlet<LoopMailbox>,
        _ tally: LimitTally<GatewayCountedLimit>,
        _ onDropped: @escaping (Int) -> Void
    ) {
        self.feed = feed
        self.file = feed.file
        self.mailboxes = mailboxes
        self.tally = tally
        self.onDropped = onDropped
    }

    /// How long to wait for somebody who wants something; ten minutes when nothing is to be done.
    var millisecondsToNext: Int64 {
        guard self.isTidy else { return 0 }
        let next = min(self.flushAt ?? .max, self.syncAt ?? .max, self.catchUpAt ?? .max)
        return next == .max ? 600_000 : max(0, next - SystemClock.monotonic)
    }

    /// Takes everything of a batch.
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

    /// Writes, syncs and reads what is due, and does one piece of tidying.
    func work() {
        let now = SystemClock.monotonic
        let isHurried = now >= self.hurryAt && self.feed.heldBytes > Self.heldBytesMax
        if isHurried { self.hurryAt = now + Self.flushInterval }
        if let flushAt = self.flushAt, now >= flushAt || isHurried {
            self.feed.flush()
            // What could not be written is tried again.
            let isDone = self.file.collectedEvents == 0 && self.file.isOpen
            self.flushAt = isDone ? nil : now + Self.flushInterval
            self.syncAt = self.syncAt ?? now + Self.syncInterval
        }
        self.catchUp(now)
        if let syncAt = self.syncAt, now >= syncAt || isHurried { self.sync() }
        self.isTidy = !self.file.tidy()
        let left = self.file.takeDropped()
        if left.bySize > 0 { self.tally.met(.historyBytesMax, times: left.bySize) }
        if left.byAge > 0 { self.tally.met(.historySeconds, times: left.byAge) }
    }

    /// Writes and syncs what is left; what the file is still without the next process finds in the journal.
    func finish() {
        self.feed.flush()
        self.feed.sync()
    }

    private func sync() {
        self.feed.sync()
        let isDone = self.file.durableSequence >= self.file.writtenSequence
        self.syncAt = isDone ? nil : SystemClock.monotonic + Self.syncInterval
    }

    /// Reads a piece of what the file was without; what cannot be done is tried again.
    private func catchUp(_ now: Int64) {
        if self.feed.isBehind, now >= self.catchUpAt ?? 0 {
            let isGettingOn = self.feed.catchUp()
            self.catchUpAt = isGettingOn ? now : now + Self.flushInterval
            self.flushAt = self.flushAt ?? now + Self.flushInterval
        }
        if !self.feed.isBehind { self.catchUpAt = nil }
    }
}

/// Where it is found what happened, in a database whose transactions write it themselves.
package protocol SharedHistorySource: HistorySource {
    /// Keeps to other bounds from now on.
    func setLimits(_ limits: HistoryLimits)

    /// Deletes one piece of what is too old or too much.
    ///
    /// - Returns: whether there may be more to delete.
    func tidy() -> Bool
}

/// The history of a gateway, on a thread of its own.
package protocol HistoryService: HistoryOutlet {
    /// Keeps to other bounds from now on.
    func setLimits(_ limits: HistoryLimits)

    /// Does what it was given, ends the thread, and waits for that.
    func stop()
}

extension HistoryThread: HistoryService {}

/// Answers what is asked of the history from a database that gateways share, on a thread of its own.
///
/// Events that come with a batch are in the database already: they were committed with what they tell of.
package final class DatabaseHistory: HistoryService {
    /// How long tidying waits when there was nothing to do, in milliseconds.
    private static let tidyInterval: Int64 = 60_000

    private let mailbox = Mailbox<HistoryBatch>()
    private let thread: NamedThread

    /// - Parameters:
    ///   - mailboxes: where answers go.
    ///   - makeSource: makes the source, on the thread that will use it.
    /// - Throws: `ThreadFailure` when the system has no room for its thread.
    package init(
        mailboxes: PerOutlet<LoopMailbox>,
        makeSource: @escaping @Sendable () -> any SharedHistorySource
    ) throws(ThreadFailure) {
        let mailbox = self.mailbox
        self.thread = try NamedThread("history") { Self.run(mailbox, mailboxes, makeSource()) }
    }

    package func open() {}

    package func waitUntilOpened() -> HistoryFound? { nil }

    package func submit(_ batch: inout HistoryBatch) { self.mailbox.submit(&batch) }

    /// Keeps to other bounds from now on.
    package func setLimits(_ limits: HistoryLimits) {
        var batch = HistoryBatch()
        batch.limits = limits
        self.mailbox.submit(&batch)
    }

    /// Answers what it was asked, ends the thread, and waits for that.
    package func stop() {
        self.mailbox.close()
        self.thread.join()
    }

    private static func run(
        _ mailbox: Mailbox<HistoryBatch>,
        _ mailboxes: PerOutlet<LoopMailbox>,
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

/// What a group has for the history: what happened, and who asks what happened.
///
/// `@unchecked Sendable`: a batch has one owner at a time, and changes owners under the lock of `Mailbox`.
package final class HistoryBatch: MailboxBatch, @unchecked Sendable {
    /// The most events that wait for the history, about 20 MB; more are dropped, and nothing else is. Those of records
    /// the history reads from the journal then; the others are counted.
    private static let eventsMax = 262_144

    /// The events at which the history's thread is woken, although it rests.
    private static let eventsCollectedMax = 8192

    /// A record of events that was committed with them.
    struct Record {
        let sequence: UInt64
        /// The place behind its last event in `events`.
        let end: Int
    }

    /// What a journal kept for the history at a start; it comes before `events`.
    package var recovery: EventRecovery?
    package var events: [HistoryEvent] = []
    /// The records that `events` were committed in; none of a gateway that keeps nothing.
    var records: [Record] = []
    package var questions: [HistoryQuestion] = []
    /// The bounds to keep to from now on; nil for those there are.
    var limits: HistoryLimits?
    /// Wall clock minus policy time when the newest of `events` happened; nil when there is none.
    var offset: WallOffset?
    /// How many events of no record were dropped because too many waited.
    private(set) var droppedEvents = 0

    package init() {}

    package var isEmpty: Bool {
        self.events.isEmpty && self.questions.isEmpty && self.limits == nil && self.recovery == nil
    }

    /// Whether somebody waits for an answer, or there is so much that more should not be collected.
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

/// Where what happened goes, and who asks what happened.
package protocol HistoryOutlet: AnyObject, Sendable {
    /// Has the file opened, which is neither looked at nor made before.
    ///
    /// - Throws: when it could not be used after a restart.
    func open() throws(StoreError)

    /// What the file held when it was opened, waited for; nil when it could not be opened.
    func waitUntilOpened() -> HistoryFound?

    /// Takes over everything of `batch`, which is empty afterwards.
    func submit(_ batch: inout HistoryBatch)
}

/// Numbers the records of events of each commit, one higher than the last for ever, and writes them.
///
/// Where it is not known which numbers were given, they begin anew with ones that nobody gave: those of the second.
package struct EventNumbers {
    private var next: UInt64
    /// The mark of the key that devices are numbered with.
    private let keyMark: UInt64

    /// - `last`: the number of the newest record there is, in the journal or in the history; 0 for none.
    package init(after last: UInt64, keyMark: UInt64) {
        self.next = last + 1
        self.keyMark = keyMark
    }

    /// The number before the first one of a beginning, `wall` being the wall clock in milliseconds since 1970.
    static func beginning(wall: Int64) -> UInt64 {
        // Up to the year 2106; what follows is below the highest number there can be.
        UInt64(UInt32(clamping: wall / 1000)) * EventRecord.sequencesOfSecond
    }

    /// Writes the events of a batch, which are not numbered yet, as records of the commit they belong to.
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

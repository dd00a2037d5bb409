package import Engine
package import HTTPTransport
package import Platform
package import Storage
import Synchronization

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

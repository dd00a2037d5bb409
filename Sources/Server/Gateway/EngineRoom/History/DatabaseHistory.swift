package import Platform
package import Storage

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

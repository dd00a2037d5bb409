import Engine
import HTTPTransport
import Platform
import Storage
import Wire

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

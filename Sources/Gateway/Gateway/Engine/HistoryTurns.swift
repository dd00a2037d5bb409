import Bytes
import DeviceEngine
import DeviceJournal
import HTTPTransport
import History

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

    private let file: HistoryFile
    private let retention: EventRetention
    /// By loop number.
    private let loops: [LoopMailbox]
    private let tally: LimitTally<GatewayCountedLimit>
    private let onDropped: (Int) -> Void
    private var isTidy = false
    /// When to write, and when to sync, on the monotonic clock; nil when there is nothing to.
    private var flushAt: Int64?
    private var syncAt: Int64?
    /// When the journal's need may hurry writing and syncing again.
    private var hurryAt: Int64 = 0

    init(
        _ file: HistoryFile,
        _ retention: EventRetention,
        _ loops: [LoopMailbox],
        _ tally: LimitTally<GatewayCountedLimit>,
        _ onDropped: @escaping (Int) -> Void
    ) {
        self.file = file
        self.retention = retention
        self.loops = loops
        self.tally = tally
        self.onDropped = onDropped
    }

    /// How long to wait for somebody who wants something; ten minutes when nothing is to be done.
    var millisecondsToNext: Int64 {
        guard self.isTidy else { return 0 }
        let next = min(self.flushAt ?? .max, self.syncAt ?? .max)
        return next == .max ? 600_000 : max(0, next - SystemClock.monotonic)
    }

    /// Takes everything of a batch.
    func take(_ batch: HistoryBatch) {
        if let limits = batch.limits { self.file.setLimits(limits) }
        if !batch.recovered.isEmpty { self.recover(batch.recovered) }
        if !batch.events.isEmpty {
            var start = 0
            for record in batch.records {
                self.file.append(batch.events[start..<record.end], ofRecord: record.sequence)
                start = record.end
            }
            self.file.append(batch.events[start...])
            self.flushAt = self.flushAt ?? SystemClock.monotonic + Self.flushInterval
        }
        for question in batch.questions { question.answer(from: self.file, self.loops) }
        let droppedEvents = batch.droppedEvents + self.retention.takeGivenUp()
        if droppedEvents > 0 { self.onDropped(droppedEvents) }
    }

    /// Writes and syncs what is due, and does one piece of tidying.
    func work() {
        let now = SystemClock.monotonic
        let isHurried = now >= self.hurryAt && self.retention.heldBytes > Self.heldBytesMax
        if isHurried { self.hurryAt = now + Self.flushInterval }
        if let flushAt = self.flushAt, now >= flushAt || isHurried {
            self.file.flush()
            // What could not be written is tried again.
            self.flushAt = self.file.collectedEvents > 0 ? now + Self.flushInterval : nil
            self.syncAt = self.syncAt ?? now + Self.syncInterval
        }
        if let syncAt = self.syncAt, now >= syncAt || isHurried { self.sync() }
        self.isTidy = !self.file.tidy()
        let left = self.file.takeDropped()
        if left.bySize > 0 { self.tally.met(.historyBytesMax, times: left.bySize) }
        if left.byAge > 0 { self.tally.met(.historySeconds, times: left.byAge) }
    }

    /// Writes and syncs what is left.
    func finish() {
        self.file.flush()
        self.sync()
    }

    private func sync() {
        self.file.sync()
        self.retention.advance(to: self.file.durableSequence)
        let isDone = self.file.durableSequence >= self.file.writtenSequence
        self.syncAt = isDone ? nil : SystemClock.monotonic + Self.syncInterval
    }

    /// Writes what a former process did not come to write.
    private func recover(_ records: [EventRecovery.Record]) {
        var events: [HistoryEvent] = []
        for record in records {
            record.content.withByteView { content in
                // It was read before.
                guard let record = try? EventRecord(content) else { return }
                events.reserveCapacity(record.eventCount)
                try? record.read { events.append($0) }
            }
            self.file.append(events, ofRecord: record.sequence)
            events.removeAll(keepingCapacity: true)
        }
        self.file.flush()
        self.sync()
    }
}

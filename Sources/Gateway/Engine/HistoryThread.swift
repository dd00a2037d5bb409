import Foundation
import HTTPTransport
import History

/// Writes the history, and answers from it, on a thread of its own.
final class HistoryThread: Sendable {
    /// How long events may lie in memory, in milliseconds.
    private static let flushInterval: Int64 = 1000

    private let mailbox = Mailbox<HistoryBatch>()
    private let ended = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - loops: where answers go, by loop number.
    ///   - tally: hears of events that left the history.
    ///   - onDropped: called, on the thread, with how many events were dropped because too many waited.
    ///   - makeFile: opens the file, on the thread that will use it.
    init(
        loops: [LoopMailbox],
        tally: LimitTally<GatewayCountedLimit> = LimitTally(),
        onDropped: @escaping @Sendable (Int) -> Void,
        makeFile: @escaping @Sendable () -> HistoryFile
    ) {
        let mailbox = self.mailbox
        let ended = self.ended
        let thread = Thread {
            Self.run(mailbox, loops, tally, onDropped, makeFile())
            ended.signal()
        }
        thread.start()
        // The system learns the name of a thread that runs.
        thread.name = "history"
    }

    /// Takes over everything of `batch`, which is empty afterwards.
    func submit(_ batch: inout HistoryBatch) {
        self.mailbox.submit(&batch)
    }

    /// Keeps to other bounds from now on.
    func setLimits(_ limits: HistoryLimits) {
        var batch = HistoryBatch()
        batch.limits = limits
        self.mailbox.submit(&batch)
    }

    /// Writes what it was given, ends the thread, and waits for that.
    func stop() {
        self.mailbox.close()
        self.ended.wait()
    }

    private static func run(
        _ mailbox: Mailbox<HistoryBatch>,
        _ loops: [LoopMailbox],
        _ tally: LimitTally<GatewayCountedLimit>,
        _ onDropped: (Int) -> Void,
        _ file: HistoryFile
    ) {
        var batch = HistoryBatch()
        var isTidy = false
        var flushAt: Int64?
        while mailbox.take(into: &batch, waitingAtMost: isTidy ? self.wait(until: flushAt) : 0) {
            if let limits = batch.limits { file.setLimits(limits) }
            if !batch.events.isEmpty {
                file.append(batch.events)
                flushAt = flushAt ?? SystemClock.monotonic + self.flushInterval
            }
            for question in batch.questions { question.answer(from: file, loops) }
            if batch.droppedEvents > 0 { onDropped(batch.droppedEvents) }
            batch.removeAll()
            if self.wait(until: flushAt) == 0 {
                file.flush()
                flushAt = nil
            }
            isTidy = !file.tidy()
            let left = file.takeDropped()
            if left.bySize > 0 { tally.met(.historyBytesMax, times: left.bySize) }
            if left.byAge > 0 { tally.met(.historySeconds, times: left.byAge) }
        }
        file.flush()
    }

    /// How many milliseconds remain until `moment`; ten minutes when there is none.
    private static func wait(until moment: Int64?) -> Int64 {
        moment.map { max(0, $0 - SystemClock.monotonic) } ?? 600_000
    }
}

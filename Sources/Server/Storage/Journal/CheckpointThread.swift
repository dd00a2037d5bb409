package import Engine
import Platform

/// Makes a journal's checkpoints on a thread of its own, and looks after its files and its mark each second. `stop`
/// ends it.
///
/// It is `Sendable` without the compiler's proof: `monitor` guards `wishes`.
package final class CheckpointThread: @unchecked Sendable {
    /// What others ask of the thread.
    private struct Wishes {
        var isCheckpointDue = false
        var isStopping = false
    }

    /// How often the files and the mark are looked after, in nanoseconds.
    private static let lookInterval: Int64 = 1_000_000_000

    private let monitor = Monitor()
    private var wishes = Wishes()
    private let ended = Latch()

    /// Starts the thread, and has the journal call on it.
    ///
    /// - `onFailure`: called on the thread, at most once, when a checkpoint failed, or a file is gone, and the store
    ///   with it.
    package init(
        _ journal: Journal,
        onFailure: @escaping @Sendable (StoreError) -> Void = { _ in }
    ) throws(StoreError) {
        let checkpointer = journal.makeCheckpointer()
        do throws(ThreadFailure) {
            try NamedThread("checkpoint") { [self] in
                self.run(checkpointer, onFailure)
                self.ended.open()
            }
        } catch {
            throw StoreError(message: error.message)
        }
        journal.onCheckpointDue = { self.wish { $0.isCheckpointDue = true } }
    }

    /// Ends the thread after the checkpoint it is at, and waits for that.
    package func stop() {
        self.wish { $0.isStopping = true }
        self.ended.wait()
    }

    private func wish(_ change: (inout Wishes) -> Void) {
        self.monitor.withLock {
            change(&self.wishes)
            self.monitor.signal()
        }
    }

    /// Waits for a wish, at most until `moment`.
    private func takeWishes(waitingUntil moment: Int64) -> Wishes {
        self.monitor.withLock {
            while !self.wishes.isCheckpointDue, !self.wishes.isStopping {
                guard self.monitor.wait(untilNanoseconds: moment) else { break }
            }
            defer { self.wishes.isCheckpointDue = false }
            return self.wishes
        }
    }

    private func run(_ checkpointer: JournalCheckpointer, _ onFailure: (StoreError) -> Void) {
        var nextLook = SystemClock.monotonicNanoseconds + Self.lookInterval
        var isMarkBehind = false
        while true {
            let wishes = self.takeWishes(waitingUntil: nextLook)
            if wishes.isStopping { return }
            do throws(StoreError) {
                if wishes.isCheckpointDue {
                    try checkpointer.checkpoint()
                    isMarkBehind = true
                }
                // Commits wait for whatever is synced beside them, and there may be many checkpoints in a second.
                guard SystemClock.monotonicNanoseconds >= nextLook else { continue }
                nextLook = SystemClock.monotonicNanoseconds + Self.lookInterval
                try checkpointer.checkFiles()
                if isMarkBehind { try checkpointer.syncMark() }
                isMarkBehind = false
            } catch {
                onFailure(error)
                return
            }
        }
    }
}

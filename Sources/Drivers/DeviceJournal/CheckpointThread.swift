package import DeviceEngine
import Foundation
import Platform
import Synchronization

/// Makes a journal's checkpoints on a thread of its own, and looks after its files and its mark each second. `stop`
/// ends it.
package final class CheckpointThread: Sendable {
    private let isDue = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)
    private let isStopping = Atomic(false)

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
                self.ended.signal()
            }
        } catch {
            throw StoreError(message: error.message)
        }
        journal.onCheckpointDue = { [isDue = self.isDue] in isDue.signal() }
    }

    /// Ends the thread after the checkpoint it is at, and waits for that.
    package func stop() {
        self.isStopping.store(true, ordering: .releasing)
        self.isDue.signal()
        self.ended.wait()
    }

    private func run(_ checkpointer: JournalCheckpointer, _ onFailure: (StoreError) -> Void) {
        var nextLook = DispatchTime.now() + 1
        var isMarkBehind = false
        while true {
            let isDue = self.isDue.wait(timeout: nextLook) == .success
            if self.isStopping.load(ordering: .acquiring) { return }
            do throws(StoreError) {
                if isDue {
                    try checkpointer.checkpoint()
                    isMarkBehind = true
                }
                // Commits wait for whatever is synced beside them, and there may be many checkpoints in a second.
                guard .now() >= nextLook else { continue }
                nextLook = .now() + 1
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

package import Platform
import Synchronization

/// A thread that waits for the disk, so that nobody else has to: one thing after the other.
package final class FileWorker: Sendable {
    private struct Job: Sendable {
        let run: @Sendable () -> Void
    }

    private final class Ending: Sendable {
        let isSet = Atomic<Bool>(false)
    }

    private final class Jobs: MailboxBatch {
        var jobs: [Job] = []
        var isEmpty: Bool { self.jobs.isEmpty }

        init() {}

        func append(_ other: Jobs) { self.jobs += other.jobs }
        func removeAll() { self.jobs.removeAll() }
    }

    private let mailbox = Mailbox<Jobs>()
    private let isEnding: Ending
    private let thread: NamedThread

    /// The longest wait, in milliseconds: nothing depends on it.
    private static let waitMax: Int64 = 3_600_000

    package init(_ name: String) throws(ThreadFailure) {
        let mailbox = self.mailbox
        let ending = Ending()
        self.isEnding = ending
        self.thread = try NamedThread(name, signals: .blocked) {
            var batch = Jobs()
            while mailbox.take(into: &batch, waitingAtMost: Self.waitMax) {
                for job in batch.jobs where !ending.isSet.load(ordering: .relaxed) { job.run() }
                batch.removeAll()
            }
        }
    }

    /// Runs `work` after what was submitted before; once it is stopped, not at all.
    package func submit(_ work: @escaping @Sendable () -> Void) {
        var batch = Jobs()
        batch.jobs = [Job(run: work)]
        self.mailbox.submit(&batch)
    }

    /// Ends after what it does now; the rest is not done.
    package func stop() {
        self.isEnding.isSet.store(true, ordering: .relaxed)
        self.mailbox.close()
        self.thread.join()
    }
}

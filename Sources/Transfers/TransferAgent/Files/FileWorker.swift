package import Platform
import Synchronization

/// A thread that waits for the disk, so that nobody else has to.
///
/// What is long is done in parts, in turns with the rest: nobody waits for all of another's file.
package final class FileWorker: Sendable {
    private struct Job: Sendable {
        /// Does a part; says whether more is left.
        let step: @Sendable () -> Bool
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
            var begun: [Job] = []
            while mailbox.take(into: &batch, waitingAtMost: begun.isEmpty ? Self.waitMax : 0) {
                // What has just come is done first: it waits for one part, whatever was begun.
                let round = batch.jobs + begun
                batch.removeAll()
                begun = round.filter { !ending.isSet.load(ordering: .relaxed) && $0.step() }
            }
        }
    }

    /// Calls `step` until it says that nothing is left, in turns with others'; once it is stopped, not any more.
    package func submit(_ step: @escaping @Sendable () -> Bool) {
        var batch = Jobs()
        batch.jobs = [Job(step: step)]
        self.mailbox.submit(&batch)
    }

    /// Ends after what it does now; the rest is not done.
    package func stop() {
        self.isEnding.isSet.store(true, ordering: .relaxed)
        self.mailbox.close()
        self.thread.join()
    }
}

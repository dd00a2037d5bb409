package import DeviceEngine

/// A store that fails, or delays, on command, and remembers what it was given.
package final class CommandedStore: DeviceStore {
    /// The steps that were committed, in their order.
    package private(set) var committed: [EngineStep] = []
    /// How many commits were asked for, failed ones included.
    package private(set) var commits = 0
    /// The numbers of the commits that fail, from 0; all from `failsFrom` on fail too.
    package var failures: Set<Int> = []
    package var failsFrom = Int.max
    /// Runs in the middle of each commit, with its number: what happens while a disk is slow.
    package var whileCommitting: (Int) -> Void = { _ in }

    package init() {}

    package func commit(_ step: EngineStep) throws(StoreError) {
        let number = self.commits
        self.commits += 1
        self.whileCommitting(number)
        guard number < self.failsFrom, !self.failures.contains(number) else {
            throw StoreError(message: "commit \(number) failed on command")
        }
        self.committed.append(step)
    }
}

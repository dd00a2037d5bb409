package import Engine

/// Makes groups durable, one at a time, and lets out what they have to tell.
///
/// While a group is being committed, the engine steps on and collects the next.
package protocol Committer: AnyObject {
    /// What the store is at.
    ///
    /// - Parameters:
    ///   - group: what is collected for the next commit.
    ///   - wish: what that waits for; where it has to, the engine is woken when it need not wait any longer. After a
    ///     failure the engine always is.
    func status(of group: StepGroup, waitingFor wish: CommitWish) -> CommitStatus

    /// How long commits took until now.
    var commitTimes: CommitTimes { get }

    /// Takes a group over, and gives an empty one for it. The store must be idle.
    func submit(_ group: inout StepGroup)

    /// Waits until nothing is being committed; the store does not rest.
    func waitUntilIdle() -> CommitStatus

    /// After a failure: the group that failed, to be refused, in exchange for an empty one; and the store, to be
    /// asked what is durable.
    func takeFailure(_ group: inout StepGroup) -> any RecordStore

    /// Ends once it has committed what it was given, and waits for that.
    func stop()
}

/// What a group waits for.
package enum CommitWish {
    case nothing
    /// To be let out behind the group before it; it has nothing to commit.
    case release
    case commit
}

/// What a store is at.
package enum CommitStatus {
    case idle, busy
    /// Nothing is being committed, and nothing is to be yet.
    case resting
    /// A commit failed; nothing is committed any more.
    case failed(StoreError)
}

/// Makes the committer of a store: groups leave by the outlet once they are durable, and the engine is woken with
/// `ring`.
package typealias CommitterMaker = (
    _ store: any RecordStore, _ outlet: GroupOutlet, _ ring: @escaping @Sendable () -> Void
) throws(StoreError) -> any Committer

/// How long commits took, and the pushes that waited for them, since the process began; times in microseconds.
package struct CommitTimes: Sendable {
    private static let bounds: [Int64] = [
        250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
        5_000_000, 10_000_000,
    ]

    package init() {}

    /// From a push's leaving its loop until it was durable.
    private(set) var admitToDurable = Histogram(bounds: CommitTimes.bounds)
    private(set) var commits = Histogram(bounds: CommitTimes.bounds)
    /// Pushes in one commit.
    private(set) var pushes = Histogram(
        bounds: [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384]
    )

    /// A commit was durable.
    ///
    /// - Returns: the pushes in it.
    @discardableResult
    mutating func committed(_ arrivals: [PushArrival], from start: Int64, to end: Int64) -> Int64 {
        self.commits.record(end - start)
        var count: Int64 = 0
        for arrival in arrivals {
            self.admitToDurable.record(end - arrival.at, times: arrival.count)
            count += arrival.count
        }
        self.pushes.record(count)
        return count
    }
}

import Engine
import Platform

/// Pushes that came to the engine together, and when.
struct PushArrival: BitwiseCopyable {
    /// When they left their loop, by the monotonic clock in microseconds.
    let at: Int64
    let count: Int64
}

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

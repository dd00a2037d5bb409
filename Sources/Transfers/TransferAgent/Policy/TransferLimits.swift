/// The limits of the agent, each with its unit, its default and the reason for it.
package struct TransferLimits: Hashable, Sendable {
    /// The number of sessions. The default of 1,000 is far more than the apps of one user.
    package var sessionsMax = 1_000
    /// The number of transfers, including ended transfers. The default is 100,000, about 40 MB of memory.
    package var transfersMax = 100_000
    /// The number of running transfers. The default of 64 is more than enough to saturate a connection.
    package var runningMax = 64
    /// The number of concurrent event streams of one user. The default of 256 is far more than the workers of one user.
    package var followersMax = 256
    /// The number of concurrent connections of one user: 256 more than event streams, so that connections for requests
    /// remain available.
    package var connectionsPerUserMax: Int { self.followersMax + 256 }
    /// The total size of all files in the state directory, in bytes. The default of 1 TiB leaves the limit to the disk.
    package var stateBytesMax: Int64 = 1 << 40
    /// The size of one file, in bytes. The default of 256 GiB is larger than a background transfer should be.
    package var fileBytesMax: Int64 = 256 << 30
    /// The time for which untaken files and ended transfers are kept, in milliseconds. The default is 7 days.
    package var untakenFor: Int64 = 604_800_000

    package init() {}
}

/// The backoff of a transfer: the wait doubles after each attempt without progress, with random jitter.
package struct RetryPolicy: Hashable, Sendable {
    /// The number of identical consecutive failures after which the server or the file is considered faulty.
    package static let repeatsMax = 3

    /// The first and the longest wait, in milliseconds, before jitter.
    package var first: Int64 = 1000
    package var last: Int64 = 300_000

    package init() {}

    /// The longest wait for a server that never completes its answer, in milliseconds: 72 times `last`, by default 6
    /// hours.
    package var longest: Int64 {
        let (longest, isTooLong) = self.last.multipliedReportingOverflow(by: 72)
        return isTooLong ? self.last : longest
    }

    /// Returns a random wait between half of a bound and the bound. The bound doubles with each attempt without
    /// progress, up to `last`. After `repeatsMax` answers that ended at the same byte, it grows up to `longest`.
    ///
    /// - `repeats`: the number of times in a row that an answer has ended at the same byte.
    package func wait(
        failures: Int,
        repeats: Int = 1,
        using generator: inout some RandomNumberGenerator
    ) -> Int64 {
        var bound = self.last
        if repeats < Self.repeatsMax {
            bound = min(bound, self.first << Int64(max(0, min(failures - 1, 20))))
        } else {
            for _ in Self.repeatsMax..<min(repeats, 10) { bound = min(self.longest, bound * 4) }
        }
        bound = max(1, bound)
        return bound / 2 + Int64(generator.next(upperBound: UInt64(bound - bound / 2 + 1)))
    }
}

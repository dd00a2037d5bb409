/// The limits of the agent. Each comment states the unit, the default and its reason.
package struct TransferLimits: Hashable, Sendable {
    /// The maximum number of sessions. The default of 1,000 is far more than the number of a user's apps.
    package var sessionsMax = 1_000
    /// The maximum number of transfers, including ended ones. The default of 100,000 needs about 50 MB of memory.
    package var transfersMax = 100_000
    /// The maximum number of running transfers. The default of 64 is more than enough to saturate a connection.
    package var runningMax = 64
    /// The maximum number of concurrent event streams of one user. The default of 256 is far more than the number of a
    /// user's workers.
    package var followersMax = 256
    /// The maximum number of concurrent connections of one user: 256 more than event streams. Connections for requests
    /// thus remain available.
    package var connectionsPerUserMax: Int { self.followersMax + 256 }
    /// The maximum total size of all files in the state folder, in bytes. With the default of 1 TiB, the disk is the
    /// limit.
    package var stateBytesMax: Int64 = 1 << 40
    /// The maximum size of one file, in bytes. The default of 256 GiB is larger than a background transfer should be.
    package var fileBytesMax: Int64 = 256 << 30
    /// The time for which the agent keeps ended transfers and finished files that were not moved to a destination, in
    /// milliseconds. The default is 7 days.
    package var untakenFor: Int64 = 604_800_000

    package init() {}
}

/// The backoff of a transfer. The wait doubles after each attempt without progress and has random jitter.
package struct RetryPolicy: Hashable, Sendable {
    /// The number of consecutive identical failures after which the server or the file is considered faulty.
    package static let repeatsMax = 3

    /// The first and the maximum wait without jitter, in milliseconds.
    package var first: Int64 = 1000
    package var last: Int64 = 300_000

    package init() {}

    /// The maximum wait for a server that never completes its answer, in milliseconds: 72 times `last`, by default 6
    /// hours.
    package var longest: Int64 {
        let (longest, isTooLong) = self.last.multipliedReportingOverflow(by: 72)
        return isTooLong ? self.last : longest
    }

    /// Returns a random wait between half of a limit and the limit. The limit doubles with each attempt without
    /// progress, up to `last`. After `repeatsMax` answers that ended at the same byte, the limit increases up to
    /// `longest`.
    ///
    /// - `repeats`: the number of consecutive answers that ended at the same byte.
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

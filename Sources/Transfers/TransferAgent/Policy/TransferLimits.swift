/// Every bound of the agent: its unit, its default, and why it is that number.
package struct TransferLimits: Hashable, Sendable {
    /// Sessions; 1,000, far more than one user has apps.
    package var sessionsMax = 1_000
    /// Transfers that are remembered, ended ones among them; 100,000, some 40 MB of memory.
    package var transfersMax = 100_000
    /// Transfers that run at a time; 64, more than fill any line.
    package var runningMax = 64
    /// Streams of events of one user at a time; 256, far more than one user has workers.
    package var followersMax = 256
    /// Connections of one user at a time; 256 more than streams of events, so that there is always one to ask with.
    package var connectionsPerUserMax: Int { self.followersMax + 256 }
    /// Bytes of all files in the state folder; 1 TiB, so that the disk is what bounds it.
    package var stateBytesMax: Int64 = 1 << 40
    /// Bytes of one file; 256 GiB, larger than any that a background transfer should be.
    package var fileBytesMax: Int64 = 256 << 30
    /// Milliseconds for which a finished file waits to be taken, and an ended transfer is remembered; 7 days.
    package var untakenFor: Int64 = 604_800_000

    package init() {}
}

/// How long a transfer waits for its next attempt: twice as long after each that brought nothing, spread at random.
package struct RetryPolicy: Hashable, Sendable {
    /// After this many identical failures in a row the fault is the server's, or the file's, and no accident.
    package static let repeatsMax = 3

    /// Milliseconds; before the spread.
    package var first: Int64 = 1000
    package var last: Int64 = 300_000

    package init() {}

    /// The longest wait for a server that never ends its answer, in milliseconds: 72 times `last`, 6 hours by default.
    package var longest: Int64 {
        let (longest, isTooLong) = self.last.multipliedReportingOverflow(by: 72)
        return isTooLong ? self.last : longest
    }

    /// The wait after so many attempts in a row that brought nothing: between half of the bound and the bound. Once an
    /// answer has ended `repeatsMax` times after the same byte, the bound grows from `last` to `longest`.
    ///
    /// - `repeats`: how many times in a row an answer has ended after the same byte.
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

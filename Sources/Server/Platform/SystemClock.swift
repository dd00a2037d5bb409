// The only file that uses the system's clocks.
import FoundationEssentials
internal import Glibc

/// The machine's clocks, in milliseconds unless the name says otherwise.
package enum SystemClock {
    /// The current wall-clock time since 1970.
    package static var wall: Int64 { self.milliseconds(CLOCK_REALTIME) }

    /// The time since the machine started, including suspended time.
    package static var boot: Int64 { self.milliseconds(CLOCK_BOOTTIME) }

    /// The time of a clock that is never set, and that stops while the machine is suspended.
    package static var monotonic: Int64 { self.milliseconds(CLOCK_MONOTONIC) }

    /// The time of `monotonic`'s clock, in microseconds.
    package static var monotonicMicroseconds: Int64 { self.monotonicNanoseconds / 1000 }

    /// The time of `monotonic`'s clock, in nanoseconds.
    package static var monotonicNanoseconds: Int64 { self.nanoseconds(CLOCK_MONOTONIC) }

    /// The processor time of this process, in nanoseconds.
    package static var processorNanoseconds: Int64 { self.nanoseconds(CLOCK_PROCESS_CPUTIME_ID) }

    private static func milliseconds(_ clock: clockid_t) -> Int64 {
        let time = self.read(clock)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    private static func nanoseconds(_ clock: clockid_t) -> Int64 {
        let time = self.read(clock)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    private static func read(_ clock: clockid_t) -> timespec {
        var time = timespec()
        unsafe clock_gettime(clock, &time)
        return time
    }
}

/// Functions that write wall-clock times for people.
package enum WallTime {
    /// Returns the time in RFC 3339 format in UTC, rounded down to whole seconds: `2026-11-21T07:30:00Z`.
    ///
    /// - Parameter milliseconds: the milliseconds since 1970.
    package static func text(_ milliseconds: Int64) -> String {
        Date(timeIntervalSince1970: (Double(milliseconds) / 1000).rounded(.down)).formatted(.iso8601)
    }

    /// Returns the time in RFC 3339 format in UTC, rounded up to whole seconds. For a future event: at the time shown,
    /// the event is certainly due.
    ///
    /// - Parameter milliseconds: the milliseconds since 1970.
    package static func textRoundedUp(_ milliseconds: Int64) -> String {
        let rest = milliseconds % 1000
        return self.text(milliseconds - rest + (rest > 0 ? 1000 : 0))
    }
}

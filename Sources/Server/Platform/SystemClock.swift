// The one file that knows the system's clocks.
import FoundationEssentials
internal import Glibc

/// The machine's clocks: milliseconds where the name says nothing else.
package enum SystemClock {
    /// Since 1970, as the wall clock has it at this moment.
    package static var wall: Int64 { self.milliseconds(CLOCK_REALTIME) }

    /// Since the machine started, suspended time included.
    package static var boot: Int64 { self.milliseconds(CLOCK_BOOTTIME) }

    /// On a clock that never steps, and stands while the machine is suspended.
    package static var monotonic: Int64 { self.milliseconds(CLOCK_MONOTONIC) }

    /// The same clock as `monotonic`, in microseconds.
    package static var monotonicMicroseconds: Int64 { self.monotonicNanoseconds / 1000 }

    /// The same clock as `monotonic`, in nanoseconds.
    package static var monotonicNanoseconds: Int64 { self.nanoseconds(CLOCK_MONOTONIC) }

    /// The processor time of this process, in nanoseconds.
    package static var processorNanoseconds: Int64 { self.nanoseconds(CLOCK_PROCESS_CPUTIME_ID) }

    /// The processor time of the calling thread, in nanoseconds.
    package static var threadNanoseconds: Int64 { self.nanoseconds(CLOCK_THREAD_CPUTIME_ID) }

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

/// Wall-clock moments for people.
package enum WallTime {
    /// RFC 3339 in UTC, whole seconds: `2026-11-21T07:30:00Z`.
    ///
    /// - Parameter milliseconds: since 1970.
    package static func text(_ milliseconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(milliseconds) / 1000).formatted(.iso8601)
    }

    /// RFC 3339 rounded up, as every answer tells moments to people: nothing may happen before the moment that is
    /// told, and moments that are reckoned from one another add up.
    ///
    /// - Parameter milliseconds: since 1970.
    package static func textRoundedUp(_ milliseconds: Int64) -> String {
        let rest = milliseconds % 1000
        return self.text(milliseconds - rest + (rest > 0 ? 1000 : 0))
    }
}

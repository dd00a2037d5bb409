import Glibc

/// The machine's clocks, in milliseconds.
package enum SystemClock {
    /// Milliseconds since 1970, as the wall clock has it now.
    package static var wall: Int64 { self.read(CLOCK_REALTIME) }

    /// Milliseconds since the machine started, suspended time included.
    package static var boot: Int64 { self.read(CLOCK_BOOTTIME) }

    /// Milliseconds on the clock that loops use.
    package static var monotonic: Int64 { self.read(CLOCK_MONOTONIC) }

    /// The same in microseconds.
    package static var monotonicMicroseconds: Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        unsafe clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}

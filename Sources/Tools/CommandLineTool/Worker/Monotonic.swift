import Glibc

/// The clock that no one sets.
package enum Monotonic {
    /// Milliseconds since the machine started.
    package static var milliseconds: Int64 {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}

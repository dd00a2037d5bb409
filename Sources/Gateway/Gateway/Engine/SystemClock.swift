import DeviceEngine
import Foundation
import Glibc
import LaunchPolicy

/// The machine's clocks, in milliseconds.
enum SystemClock {
    /// Milliseconds since 1970, as the wall clock has it now.
    static var wall: Int64 { self.read(CLOCK_REALTIME) }

    /// Milliseconds since the machine started, suspended time included.
    static var boot: Int64 { self.read(CLOCK_BOOTTIME) }

    /// What tells this boot from others; nil where the system does not say.
    static let bootID: BootID? = {
        guard let file = FileHandle(forReadingAtPath: "/proc/sys/kernel/random/boot_id"),
            let data = try? file.read(upToCount: 64)
        else { return nil }
        return BootID(text: String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
    }()

    /// Milliseconds on the clock that loops use.
    static var monotonic: Int64 { self.read(CLOCK_MONOTONIC) }

    /// The same in microseconds.
    static var monotonicMicroseconds: Int64 {
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

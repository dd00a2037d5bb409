import Glibc

/// How the gateway's process is.
struct ProcessFacts: Sendable {
    /// Connections open on all listeners.
    let connections: Int
    let uptimeSeconds: Int64
    /// Memory that is resident.
    let memoryBytes: Int64
    /// Processor time spent, of all threads, in milliseconds.
    let cpuMilliseconds: Int64

    /// How it is now.
    ///
    /// - Parameter startedAt: when it started, on the monotonic clock in milliseconds.
    init(connections: Int, startedAt: Int64) {
        self.connections = connections
        self.uptimeSeconds = (SystemClock.monotonic - startedAt) / 1000
        self.memoryBytes = Self.residentBytes
        var time = timespec()
        unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        self.cpuMilliseconds = Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// The second number of `/proc/self/statm`, which counts pages; 0 where it cannot be read.
    private static var residentBytes: Int64 {
        let file = unsafe open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return 0 }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 128)
        let count = unsafe read(file, &bytes, bytes.count)
        let words = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).split(separator: " ")
        guard words.count > 1, let pages = Int64(words[1]) else { return 0 }
        return pages * Int64(sysconf(Int32(_SC_PAGESIZE)))
    }
}

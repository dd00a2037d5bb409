import Platform

/// Rung by a store that has replies, and waited for by an engine that ends.
///
/// It is `Sendable` without the compiler's proof: `monitor` guards `hasRung`.
final class StoreBell: @unchecked Sendable {
    private let monitor = Monitor()
    private var hasRung = false

    init() {}

    func ring() {
        self.monitor.withLock {
            self.hasRung = true
            self.monitor.broadcast()
        }
    }

    /// Waits until it was rung since the last call, so long at most.
    func wait(milliseconds: Int64) {
        let end = SystemClock.monotonic + milliseconds
        self.monitor.withLock {
            while !self.hasRung {
                guard self.monitor.wait(until: end) else { break }
            }
            self.hasRung = false
        }
    }
}

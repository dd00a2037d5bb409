/// Closed at first, and opened once: whoever comes before waits.
///
/// It is `Sendable` without the compiler's proof: `monitor` guards `isOpen`.
package final class Latch: @unchecked Sendable {
    private let monitor = Monitor()
    private var isOpen = false

    package init() {}

    /// Lets everybody through from here on.
    package func open() {
        self.monitor.withLock {
            self.isOpen = true
            self.monitor.broadcast()
        }
    }

    /// Waits until it is open.
    package func wait() {
        self.monitor.withLock {
            while !self.isOpen { self.monitor.wait() }
        }
    }

    /// Waits until it is open, at most until `moment`.
    ///
    /// - Parameter moment: nanoseconds of `SystemClock.monotonicNanoseconds`.
    /// - Returns: whether it is open.
    package func wait(untilNanoseconds moment: Int64) -> Bool {
        self.monitor.withLock {
            while !self.isOpen {
                guard self.monitor.wait(untilNanoseconds: moment) else { break }
            }
            return self.isOpen
        }
    }
}

import Synchronization

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

/// Shows a watchdog that a thread turns: one asks, and the thread answers in its next turn.
package final class Pulse: Sendable {
    private let asked = Atomic<UInt64>(0)
    private let answered = Atomic<UInt64>(0)

    package init() {}

    /// From the watchdog: asks anew. Whoever asks then has the thread make a turn.
    package func ask() {
        self.asked.add(1, ordering: .releasing)
    }

    /// From the watched thread, in each turn: a read and a write of memory.
    package func beat() {
        self.answered.store(self.asked.load(ordering: .acquiring), ordering: .releasing)
    }

    /// Whether there was a turn since it was last asked.
    package var isAnswered: Bool {
        self.answered.load(ordering: .acquiring) == self.asked.load(ordering: .relaxed)
    }
}

/// A value on its way to another thread, which will be the only one that has it.
package final class Handover<Value>: Sendable {
    private let value: Mutex<Value?>

    package init(_ value: consuming sending Value) {
        self.value = Mutex(value)
    }

    /// The value; by one caller, once.
    package func take() -> sending Value {
        guard let value = self.value.withLock({ $0.take() }) else {
            preconditionFailure("a value was handed over twice")
        }
        return value
    }
}

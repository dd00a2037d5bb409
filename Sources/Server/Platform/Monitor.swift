internal import Glibc
import Synchronization

// The one file that knows the system's locks and conditions.

/// A lock at which threads can wait for each other.
///
/// It is the one way to wait for another thread, and the lock of data that threads meet at all the time: the thread
/// sanitizer sees what it does, and not all that `Mutex` does when two threads meet in it. Any other value that threads
/// share is in a `Mutex`.
///
/// Its waits go by the clock that never steps: those of Foundation go by the wall clock, and trap where that stands
/// after 2262. It is `Sendable` without the compiler's proof: what it holds is made for any thread, and never moves.
@safe
@usableFromInline
package final class Monitor: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init() {
        unsafe pthread_mutex_init(self.mutex, nil)
        var attributes = pthread_condattr_t()
        unsafe pthread_condattr_init(&attributes)
        unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        unsafe pthread_cond_init(self.condition, &attributes)
        unsafe pthread_condattr_destroy(&attributes)
    }

    deinit {
        unsafe pthread_cond_destroy(self.condition)
        unsafe pthread_mutex_destroy(self.mutex)
        unsafe self.condition.deallocate()
        unsafe self.mutex.deallocate()
    }

    @usableFromInline
    package func lock() { unsafe pthread_mutex_lock(self.mutex) }

    @usableFromInline
    package func unlock() { unsafe pthread_mutex_unlock(self.mutex) }

    @inlinable
    package func withLock<Result>(_ body: () throws -> Result) rethrows -> Result {
        self.lock()
        defer { self.unlock() }
        return try body()
    }

    /// Ends the wait of one thread.
    package func signal() { unsafe pthread_cond_signal(self.condition) }

    /// Ends the waits of all threads.
    package func broadcast() { unsafe pthread_cond_broadcast(self.condition) }

    /// Lets go of the lock until somebody signals; the wait may end without that, too.
    package func wait() { unsafe pthread_cond_wait(self.condition, self.mutex) }

    /// Lets go of the lock until somebody signals; the wait may end without that, too.
    ///
    /// - Parameter moment: milliseconds of `SystemClock.monotonic`.
    /// - Returns: false when the moment came first.
    package func wait(until moment: Int64) -> Bool { self.wait(untilNanoseconds: moment * 1_000_000) }

    /// Lets go of the lock until somebody signals; the wait may end without that, too.
    ///
    /// - Parameter moment: nanoseconds of `SystemClock.monotonicNanoseconds`.
    /// - Returns: false when the moment came first.
    package func wait(untilNanoseconds moment: Int64) -> Bool {
        var time = timespec(tv_sec: Int(moment / 1_000_000_000), tv_nsec: Int(moment % 1_000_000_000))
        return unsafe pthread_cond_timedwait(self.condition, self.mutex, &time) != ETIMEDOUT
    }
}

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

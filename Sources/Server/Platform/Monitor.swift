internal import Glibc
import Synchronization

// The only file that uses the system's locks and conditions.

/// A lock with a condition on which threads can wait for each other.
///
/// Threads wait for each other only with this class. It also protects data with frequent contention, because the thread
/// sanitizer understands it, but not everything that `Mutex` does under contention. Other shared data uses `Mutex` or
/// `Atomic`.
///
/// The waits use the monotonic clock. Foundation's conditions use the wall clock, and trap if that is after 2262.
///
/// `@unchecked Sendable`: the lock and the condition may be used from any thread, and never move in memory.
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

    /// Wakes one waiting thread.
    package func signal() { unsafe pthread_cond_signal(self.condition) }

    /// Wakes all waiting threads.
    package func broadcast() { unsafe pthread_cond_broadcast(self.condition) }

    /// Releases the lock and waits for a signal; the wait may also end without one.
    package func wait() { unsafe pthread_cond_wait(self.condition, self.mutex) }

    /// Releases the lock and waits for a signal; the wait may also end without one.
    ///
    /// - Parameter moment: the end of the wait, in milliseconds of `SystemClock.monotonic`.
    /// - Returns: false if the wait ended because `moment` passed.
    package func wait(until moment: Int64) -> Bool { self.wait(untilNanoseconds: moment * 1_000_000) }

    /// Releases the lock and waits for a signal; the wait may also end without one.
    ///
    /// - Parameter moment: the end of the wait, in nanoseconds of `SystemClock.monotonicNanoseconds`.
    /// - Returns: false if the wait ended because `moment` passed.
    package func wait(untilNanoseconds moment: Int64) -> Bool {
        var time = timespec(tv_sec: Int(moment / 1_000_000_000), tv_nsec: Int(moment % 1_000_000_000))
        return unsafe pthread_cond_timedwait(self.condition, self.mutex, &time) != ETIMEDOUT
    }
}

/// A latch that is closed at first and opened once. Threads can wait until it is open.
///
/// `@unchecked Sendable`: `monitor` guards `isOpen`.
package final class Latch: @unchecked Sendable {
    private let monitor = Monitor()
    private var isOpen = false

    package init() {}

    /// Opens the latch, and wakes all waiting threads.
    package func open() {
        self.monitor.withLock {
            self.isOpen = true
            self.monitor.broadcast()
        }
    }

    /// Waits until the latch is open.
    package func wait() {
        self.monitor.withLock {
            while !self.isOpen { self.monitor.wait() }
        }
    }

    /// Waits until the latch is open, at most until `moment`.
    ///
    /// - Parameter moment: the end of the wait, in nanoseconds of `SystemClock.monotonicNanoseconds`.
    /// - Returns: true if the latch is open.
    package func wait(untilNanoseconds moment: Int64) -> Bool {
        self.monitor.withLock {
            while !self.isOpen {
                guard self.monitor.wait(untilNanoseconds: moment) else { break }
            }
            return self.isOpen
        }
    }
}

/// A sign of life of a thread for a watchdog: the watchdog asks, and the thread answers in its next turn.
package final class Pulse: Sendable {
    private let asked = Atomic<UInt64>(0)
    private let answered = Atomic<UInt64>(0)

    package init() {}

    /// Asks for an answer. The watchdog calls this function, and then makes the thread take a turn.
    package func ask() {
        self.asked.add(1, ordering: .releasing)
    }

    /// Answers. The watched thread calls this function in each turn; the cost is one read and one write of memory.
    package func beat() {
        self.answered.store(self.asked.load(ordering: .acquiring), ordering: .releasing)
    }

    /// True if the thread has answered the last request.
    package var isAnswered: Bool {
        self.answered.load(ordering: .acquiring) == self.asked.load(ordering: .relaxed)
    }
}

/// A value that moves to another thread, which becomes its only owner.
package final class Handover<Value>: Sendable {
    private let value: Mutex<Value?>

    package init(_ value: consuming sending Value) {
        self.value = Mutex(value)
    }

    /// Returns the value. A second call traps.
    package func take() -> sending Value {
        guard let value = self.value.withLock({ $0.take() }) else {
            preconditionFailure("a value was handed over twice")
        }
        return value
    }
}

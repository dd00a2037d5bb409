internal import Glibc
import Synchronization

// The only file that uses the system's locks and conditions.

/// A lock with a condition on which threads can wait for each other.
///
/// The only way to wait for another thread, and the lock of data with frequent contention: the thread sanitizer
/// understands it, but not everything that `Mutex` does under contention. All other values that threads share are in a
/// `Mutex`.
///
/// Its waits use the monotonic clock: those of Foundation use the wall clock, and trap if it is after 2262. `@unchecked
/// Sendable`: its objects may be used from any thread, and never move.
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

    /// Releases the lock and waits for a signal; the wait may also end without one.
    package func wait() { unsafe pthread_cond_wait(self.condition, self.mutex) }

    /// Releases the lock and waits for a signal; the wait may also end without one.
    ///
    /// - Parameter moment: the end of the wait in milliseconds of `SystemClock.monotonic`.
    /// - Returns: false if the time has passed.
    package func wait(until moment: Int64) -> Bool { self.wait(untilNanoseconds: moment * 1_000_000) }

    /// Releases the lock and waits for a signal; the wait may also end without one.
    ///
    /// - Parameter moment: the end of the wait in nanoseconds of `SystemClock.monotonicNanoseconds`.
    /// - Returns: false if the time has passed.
    package func wait(untilNanoseconds moment: Int64) -> Bool {
        var time = timespec(tv_sec: Int(moment / 1_000_000_000), tv_nsec: Int(moment % 1_000_000_000))
        return unsafe pthread_cond_timedwait(self.condition, self.mutex, &time) != ETIMEDOUT
    }
}

/// A latch, closed at first and opened once; threads that arrive before wait.
///
/// `@unchecked Sendable`: `monitor` guards `isOpen`.
package final class Latch: @unchecked Sendable {
    private let monitor = Monitor()
    private var isOpen = false

    package init() {}

    /// Opens the latch for all threads.
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
    /// - Parameter moment: the end of the wait in nanoseconds of `SystemClock.monotonicNanoseconds`.
    /// - Returns: true if it is open.
    package func wait(untilNanoseconds moment: Int64) -> Bool {
        self.monitor.withLock {
            while !self.isOpen {
                guard self.monitor.wait(untilNanoseconds: moment) else { break }
            }
            return self.isOpen
        }
    }
}

/// Shows a watchdog that a thread is alive: the watchdog asks, and the thread answers in its next turn.
package final class Pulse: Sendable {
    private let asked = Atomic<UInt64>(0)
    private let answered = Atomic<UInt64>(0)

    package init() {}

    /// Asks for an answer. Called by the watchdog, which then makes the thread take a turn.
    package func ask() {
        self.asked.add(1, ordering: .releasing)
    }

    /// Answers. Called by the watched thread in each turn; costs one read and one write of memory.
    package func beat() {
        self.answered.store(self.asked.load(ordering: .acquiring), ordering: .releasing)
    }

    /// True if the thread has answered the last request.
    package var isAnswered: Bool {
        self.answered.load(ordering: .acquiring) == self.asked.load(ordering: .relaxed)
    }
}

/// A value on its way to another thread, which becomes its only owner.
package final class Handover<Value>: Sendable {
    private let value: Mutex<Value?>

    package init(_ value: consuming sending Value) {
        self.value = Mutex(value)
    }

    /// Returns the value; may be called only once.
    package func take() -> sending Value {
        guard let value = self.value.withLock({ $0.take() }) else {
            preconditionFailure("a value was handed over twice")
        }
        return value
    }
}

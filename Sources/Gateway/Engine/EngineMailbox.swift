import Glibc

/// Where loops leave what they have for the engine, and where the engine sleeps.
///
/// `@unchecked Sendable`: `lock` guards every field.
@safe
final class EngineMailbox: @unchecked Sendable {
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let bell: UnsafeMutablePointer<pthread_cond_t>
    private var incoming = CommandBatch()
    private var isSleeping = false
    private var isClosed = false

    init() {
        unsafe self.lock = .allocate(capacity: 1)
        unsafe self.bell = .allocate(capacity: 1)
        var attributes = pthread_condattr_t()
        unsafe pthread_condattr_init(&attributes)
        unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        unsafe pthread_mutex_init(self.lock, nil)
        unsafe pthread_cond_init(self.bell, &attributes)
        unsafe pthread_condattr_destroy(&attributes)
    }

    deinit {
        unsafe pthread_cond_destroy(self.bell)
        unsafe pthread_mutex_destroy(self.lock)
        unsafe self.bell.deallocate()
        unsafe self.lock.deallocate()
    }

    /// Leaves everything of `batch`, which is empty afterwards.
    func submit(_ batch: inout CommandBatch) {
        unsafe pthread_mutex_lock(self.lock)
        if self.incoming.isEmpty {
            swap(&self.incoming, &batch)
        } else {
            self.incoming.append(batch)
            batch.removeAll()
        }
        let isSleeping = self.isSleeping
        unsafe pthread_mutex_unlock(self.lock)
        if isSleeping { unsafe pthread_cond_signal(self.bell) }
    }

    /// The engine ends once it has taken what is there.
    func close() {
        unsafe pthread_mutex_lock(self.lock)
        self.isClosed = true
        unsafe pthread_mutex_unlock(self.lock)
        unsafe pthread_cond_signal(self.bell)
    }

    /// Waits until there is something, at most `milliseconds`, and takes it into `batch`, which must be empty.
    ///
    /// - Returns: false once the mailbox is closed and empty.
    func take(into batch: inout CommandBatch, waitingAtMost milliseconds: Int64) -> Bool {
        unsafe pthread_mutex_lock(self.lock)
        defer { unsafe pthread_mutex_unlock(self.lock) }
        if self.incoming.isEmpty, !self.isClosed, milliseconds > 0 {
            var deadline = timespec()
            unsafe clock_gettime(CLOCK_MONOTONIC, &deadline)
            let nanoseconds = Int(milliseconds) * 1_000_000 + deadline.tv_nsec
            deadline.tv_sec += nanoseconds / 1_000_000_000
            deadline.tv_nsec = nanoseconds % 1_000_000_000
            self.isSleeping = true
            while self.incoming.isEmpty, !self.isClosed {
                guard unsafe pthread_cond_timedwait(self.bell, self.lock, &deadline) == 0 else { break }
            }
            self.isSleeping = false
        }
        swap(&self.incoming, &batch)
        return !(self.isClosed && batch.isEmpty)
    }
}

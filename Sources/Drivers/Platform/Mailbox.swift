import Glibc

/// What is collected for a thread until it comes to take it.
package protocol MailboxBatch: AnyObject {
    var isEmpty: Bool { get }

    init()

    /// Takes over everything of another batch.
    func append(_ other: Self)

    func removeAll()
}

/// Where threads leave what they have for one other, and where that one sleeps.
///
/// `@unchecked Sendable`: `lock` guards every field.
@safe
package final class Mailbox<Batch: MailboxBatch>: @unchecked Sendable {
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let bell: UnsafeMutablePointer<pthread_cond_t>
    private var incoming = Batch()
    private var isSleeping = false
    private var isRung = false
    private var isClosed = false

    package init() {
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

    /// Leaves everything of `batch`, which is empty afterwards. Once the mailbox is closed it is dropped: who is slow
    /// to hear of the end must not put it off.
    package func submit(_ batch: inout Batch) {
        unsafe pthread_mutex_lock(self.lock)
        if self.isClosed {
            batch.removeAll()
        } else if self.incoming.isEmpty {
            swap(&self.incoming, &batch)
        } else {
            self.incoming.append(batch)
            batch.removeAll()
        }
        let isSleeping = self.isSleeping
        unsafe pthread_mutex_unlock(self.lock)
        if isSleeping { unsafe pthread_cond_signal(self.bell) }
    }

    /// Ends the wait of the thread, now or when it next begins, although there may be nothing for it.
    package func ring() {
        unsafe pthread_mutex_lock(self.lock)
        self.isRung = true
        unsafe pthread_mutex_unlock(self.lock)
        unsafe pthread_cond_signal(self.bell)
    }

    /// The thread ends once it has taken what is there.
    package func close() {
        unsafe pthread_mutex_lock(self.lock)
        self.isClosed = true
        unsafe pthread_mutex_unlock(self.lock)
        unsafe pthread_cond_signal(self.bell)
    }

    /// Waits until there is something or it is rung, at most `milliseconds`, and takes what there is into `batch`,
    /// which must be empty.
    ///
    /// - Returns: false once the mailbox is closed and empty.
    package func take(into batch: inout Batch, waitingAtMost milliseconds: Int64) -> Bool {
        unsafe pthread_mutex_lock(self.lock)
        defer { unsafe pthread_mutex_unlock(self.lock) }
        if self.incoming.isEmpty, !self.isClosed, !self.isRung, milliseconds > 0 {
            var deadline = timespec()
            unsafe clock_gettime(CLOCK_MONOTONIC, &deadline)
            let nanoseconds = Int(milliseconds) * 1_000_000 + deadline.tv_nsec
            deadline.tv_sec += nanoseconds / 1_000_000_000
            deadline.tv_nsec = nanoseconds % 1_000_000_000
            self.isSleeping = true
            while self.incoming.isEmpty, !self.isClosed, !self.isRung {
                guard unsafe pthread_cond_timedwait(self.bell, self.lock, &deadline) == 0 else { break }
            }
            self.isSleeping = false
        }
        self.isRung = false
        swap(&self.incoming, &batch)
        return !(self.isClosed && batch.isEmpty)
    }
}

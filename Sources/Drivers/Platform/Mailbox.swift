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
/// It is `Sendable` without the compiler's proof: `monitor` guards every field.
package final class Mailbox<Batch: MailboxBatch>: @unchecked Sendable {
    private let monitor = Monitor()
    private var incoming = Batch()
    private var isSleeping = false
    private var isRung = false
    private var isClosed = false

    package init() {}

    /// Leaves everything of `batch`, which is empty afterwards. Once the mailbox is closed it is dropped: who is slow
    /// to hear of the end must not put it off.
    package func submit(_ batch: inout Batch) {
        self.monitor.lock()
        if self.isClosed {
            batch.removeAll()
        } else if self.incoming.isEmpty {
            swap(&self.incoming, &batch)
        } else {
            self.incoming.append(batch)
            batch.removeAll()
        }
        let isSleeping = self.isSleeping
        self.monitor.unlock()
        if isSleeping { self.monitor.signal() }
    }

    /// Ends the wait of the thread, now or when it next begins, although there may be nothing for it.
    package func ring() {
        self.monitor.lock()
        self.isRung = true
        self.monitor.unlock()
        self.monitor.signal()
    }

    /// The thread ends once it has taken what is there.
    package func close() {
        self.monitor.lock()
        self.isClosed = true
        self.monitor.unlock()
        self.monitor.signal()
    }

    /// Waits until there is something or it is rung, at most `milliseconds`, and takes what there is into `batch`,
    /// which must be empty.
    ///
    /// - Returns: false once the mailbox is closed and empty.
    package func take(into batch: inout Batch, waitingAtMost milliseconds: Int64) -> Bool {
        self.monitor.lock()
        defer { self.monitor.unlock() }
        if self.incoming.isEmpty, !self.isClosed, !self.isRung, milliseconds > 0 {
            let deadline = SystemClock.monotonicNanoseconds + milliseconds * 1_000_000
            self.isSleeping = true
            while self.incoming.isEmpty, !self.isClosed, !self.isRung {
                guard self.monitor.wait(untilNanoseconds: deadline) else { break }
            }
            self.isSleeping = false
        }
        self.isRung = false
        swap(&self.incoming, &batch)
        return !(self.isClosed && batch.isEmpty)
    }
}

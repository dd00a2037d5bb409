/// A batch of work that is collected for a thread.
package protocol MailboxBatch: AnyObject {
    var isEmpty: Bool { get }

    /// True if the batch wakes the thread during a batching window; false if it can wait until the window ends.
    var isUrgent: Bool { get }

    init()

    /// Moves the content of another batch into this one.
    func append(_ other: Self)

    func removeAll()
}

extension MailboxBatch {
    package var isUrgent: Bool { !self.isEmpty }
}

/// A queue through which threads pass work to one other thread, which sleeps while the queue is empty.
///
/// Waking a thread often costs more than the work. Therefore the thread may lend its processing function: while it
/// sleeps, a caller with little work runs the function instead. The thread may also have a batching window. The window
/// collects work that is not urgent and then wakes the thread once.
///
/// `@unchecked Sendable`: `monitor` guards every field, and only one thread at a time calls `work`.
package final class Mailbox<Batch: MailboxBatch>: @unchecked Sendable {
    /// A function that processes a batch and empties it. It returns the milliseconds until its next call is due.
    package typealias Work = (Batch) -> Int64

    private let monitor = Monitor()
    private var incoming = Batch()
    /// The thread's processing function, while the thread lends it.
    private var work: Work?
    private var isSleeping = false
    /// True if the thread sleeps in a batching window, in which only urgent work wakes it.
    private var isInBatchWindow = false
    /// True if another thread runs the processing function of the sleeping thread.
    private var isTurnTaken = false
    /// True if the thread is awake and waits for another thread to finish the processing function.
    private var isTurnAwaited = false
    /// The time when the thread's sleep ends without an event, in nanoseconds of the monotonic clock.
    private var sleepsUntil: Int64 = 0
    private var isSignaled = false
    private var isClosed = false

    package init() {}

    // MARK: Submitting

    /// Queues the content of `batch` and empties it. A closed mailbox drops the content. Slow callers therefore cannot
    /// delay the end.
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
        let wakes = self.isSleeping && !self.isTurnTaken && (!self.isInBatchWindow || self.incoming.isUrgent)
        self.monitor.unlock()
        if wakes { self.monitor.signal() }
    }

    /// Processes `batch` on the calling thread if the mailbox's thread lends its processing function, sleeps, and has
    /// no other work. Otherwise queues the batch. `batch` is empty afterwards.
    ///
    /// - Returns: true if the calling thread processed the batch.
    @discardableResult
    package func perform(_ batch: inout Batch) -> Bool {
        guard let work = self.takeTurn() else {
            if batch.isEmpty { self.signal() } else { self.submit(&batch) }
            return false
        }
        self.endTurn(waitingAtMost: work(batch))
        return true
    }

    /// Ends the current or next wait of the thread, even without work.
    package func signal() {
        self.monitor.lock()
        self.isSignaled = true
        self.monitor.unlock()
        self.monitor.signal()
    }

    /// Closes the mailbox. The thread ends when it has received all queued work.
    package func close() {
        self.monitor.lock()
        self.isClosed = true
        self.monitor.unlock()
        self.monitor.signal()
    }

    /// Returns the thread's processing function, which the caller may run until it calls `endTurn`. Returns nil if the
    /// thread does not lend it or must wake in any case.
    private func takeTurn() -> Work? {
        self.monitor.withLock {
            guard let work = self.work, self.isSleeping, !self.isTurnTaken, self.incoming.isEmpty,
                !self.isSignaled, !self.isClosed, SystemClock.monotonicNanoseconds < self.sleepsUntil
            else { return nil }
            self.isTurnTaken = true
            return work
        }
    }

    private func endTurn(waitingAtMost milliseconds: Int64) {
        self.monitor.lock()
        let moment = SystemClock.monotonicNanoseconds + milliseconds * 1_000_000
        // Waits are whole milliseconds, so repeated computations of the same time may differ by less than one.
        let isEarlier = self.sleepsUntil - moment >= 1_000_000
        self.sleepsUntil = isEarlier ? moment : max(moment, self.sleepsUntil)
        self.isTurnTaken = false
        let wakes = self.isTurnAwaited || !self.isIdle || isEarlier
        self.monitor.unlock()
        if wakes { self.monitor.signal() }
    }

    // MARK: The thread

    /// Lets other threads run a processing function while this thread sleeps; nil ends that. Called by the mailbox's
    /// thread.
    ///
    /// - Parameter work: processes a batch, which is empty afterwards, on the thread that calls `perform`.
    package func lend(_ work: Work?) {
        self.monitor.withLock { self.work = work }
    }

    /// Waits up to `milliseconds` for work or a call of `signal`, and moves the work into `batch`, which must be empty.
    ///
    /// - Parameters:
    ///   - batch: receives the work.
    ///   - milliseconds: the longest wait.
    ///   - window: the first part of the wait, in milliseconds. During it, only urgent work ends the wait.
    /// - Returns: false once the mailbox is closed and empty.
    package func take(into batch: inout Batch, waitingAtMost milliseconds: Int64, batchWindow window: Int64 = 0) -> Bool
    {
        self.monitor.lock()
        defer { self.monitor.unlock() }
        if milliseconds > 0 {
            let now = SystemClock.monotonicNanoseconds
            if window > 0 {
                self.isInBatchWindow = true
                self.pause(until: now + min(window, milliseconds) * 1_000_000) { self.hasUrgentWork }
                self.isInBatchWindow = false
            }
            self.pause(until: now + milliseconds * 1_000_000) { !self.isIdle }
        }
        self.isSignaled = false
        swap(&self.incoming, &batch)
        return !(self.isClosed && batch.isEmpty)
    }

    private var hasUrgentWork: Bool { self.incoming.isUrgent || self.isSignaled || self.isClosed }

    private var isIdle: Bool { self.incoming.isEmpty && !self.isSignaled && !self.isClosed }

    /// Sleeps until `moment` or until `isOver` returns true. `endTurn` may change the time. Also waits while another
    /// thread runs the processing function.
    private func pause(until moment: Int64, unless isOver: () -> Bool) {
        guard !isOver() else { return }
        self.sleepsUntil = moment
        self.isSleeping = true
        while true {
            if self.isTurnTaken {
                self.isTurnAwaited = true
                self.monitor.wait()
                self.isTurnAwaited = false
            } else if isOver() || SystemClock.monotonicNanoseconds >= self.sleepsUntil {
                break
            } else {
                _ = self.monitor.wait(untilNanoseconds: self.sleepsUntil)
            }
        }
        self.isSleeping = false
    }
}

/// Detects changes of a state that is examined at intervals. A change counts only if two consecutive examinations find
/// the same state. Otherwise a file could be read while it is being written.
package struct SettledChange<State: Equatable & Sendable>: Sendable {
    /// The state that the caller last used, or nil if that failed; and the state at the last examination.
    private var taken: State?
    private var seen: State

    package init(_ state: State) {
        self.taken = state
        self.seen = state
    }

    /// - Returns: true if the caller should use `state`: it equals the state at the last examination and has not been
    ///   used yet.
    package mutating func shouldTake(_ state: State) -> Bool {
        defer { self.seen = state }
        guard state == self.seen, state != self.taken else { return false }
        self.taken = state
        return true
    }

    /// Records that the caller could not use the state. The next examination that finds the same state returns true
    /// again.
    package mutating func failed() {
        self.taken = nil
    }
}

/// What is collected for a thread until it comes to take it.
package protocol MailboxBatch: AnyObject {
    var isEmpty: Bool { get }

    /// Whether it ends a rest of the thread, which it would wait for otherwise.
    var isUrgent: Bool { get }

    init()

    /// Takes over everything of another batch.
    func append(_ other: Self)

    func removeAll()
}

extension MailboxBatch {
    package var isUrgent: Bool { !self.isEmpty }
}

/// Where threads leave what they have for one other, and where that one sleeps.
///
/// To wake a thread costs more than most of what there is for it. So the thread may lend its work: while it sleeps,
/// whoever has little for it does that at once, in its place. And the thread may rest: what is not urgent is collected
/// meanwhile and wakes it once.
///
/// It is `Sendable` without the compiler's proof: `monitor` guards every field, and `work` is called by one thread at a
/// time, whose turn it is.
package final class Mailbox<Batch: MailboxBatch>: @unchecked Sendable {
    /// What a thread does with a batch, which is empty afterwards. Its result is how many milliseconds may pass until
    /// the next.
    package typealias Work = (Batch) -> Int64

    private let monitor = Monitor()
    private var incoming = Batch()
    /// What the thread does with a batch, while it lends that.
    private var work: Work?
    private var isSleeping = false
    /// The thread sleeps, and only what is urgent wakes it.
    private var isResting = false
    /// Another thread does the work of the one that sleeps here.
    private var isTurnTaken = false
    /// The thread would go on, and waits for the one that does its work.
    private var isTurnAwaited = false
    /// When the thread's sleep ends by itself, in nanoseconds of the monotonic clock.
    private var sleepsUntil: Int64 = 0
    private var isRung = false
    private var isClosed = false

    package init() {}

    // MARK: Leave

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
        let wakes = self.isSleeping && !self.isTurnTaken && (!self.isResting || self.incoming.isUrgent)
        self.monitor.unlock()
        if wakes { self.monitor.signal() }
    }

    /// Has what `batch` brings done here and now, if the thread lends its work, sleeps, and has nothing else to do;
    /// leaves it for the thread otherwise. `batch` is empty afterwards.
    ///
    /// - Returns: whether it was done here.
    @discardableResult
    package func perform(_ batch: inout Batch) -> Bool {
        guard let work = self.takeTurn() else {
            if batch.isEmpty { self.ring() } else { self.submit(&batch) }
            return false
        }
        self.endTurn(waitingAtMost: work(batch))
        return true
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

    /// The thread's work, for the caller to do until `endTurn`; nil when the thread does not lend it, or is to wake
    /// anyway.
    private func takeTurn() -> Work? {
        self.monitor.withLock {
            guard let work = self.work, self.isSleeping, !self.isTurnTaken, self.incoming.isEmpty,
                !self.isRung, !self.isClosed, SystemClock.monotonicNanoseconds < self.sleepsUntil
            else { return nil }
            self.isTurnTaken = true
            return work
        }
    }

    private func endTurn(waitingAtMost milliseconds: Int64) {
        self.monitor.lock()
        let moment = SystemClock.monotonicNanoseconds + milliseconds * 1_000_000
        // Waits are whole milliseconds: what is reckoned again for one moment differs by less than that.
        let isEarlier = self.sleepsUntil - moment >= 1_000_000
        self.sleepsUntil = isEarlier ? moment : max(moment, self.sleepsUntil)
        self.isTurnTaken = false
        let wakes = self.isTurnAwaited || !self.isIdle || isEarlier
        self.monitor.unlock()
        if wakes { self.monitor.signal() }
    }

    // MARK: The thread

    /// Lets others do the thread's work while it sleeps; nil ends that. By the thread.
    ///
    /// - Parameter work: takes a batch, which is empty afterwards, on the thread that calls `perform`.
    package func lend(_ work: Work?) {
        self.monitor.withLock { self.work = work }
    }

    /// Waits until there is something or it is rung, at most `milliseconds`, and takes what there is into `batch`,
    /// which must be empty.
    ///
    /// - Parameters:
    ///   - batch: what is taken.
    ///   - milliseconds: how long to wait at most.
    ///   - rest: for how many milliseconds of these what is not urgent is collected before it is taken.
    /// - Returns: false once the mailbox is closed and empty.
    package func take(into batch: inout Batch, waitingAtMost milliseconds: Int64, resting rest: Int64 = 0) -> Bool {
        self.monitor.lock()
        defer { self.monitor.unlock() }
        if milliseconds > 0 {
            let now = SystemClock.monotonicNanoseconds
            if rest > 0 {
                self.isResting = true
                self.pause(until: now + min(rest, milliseconds) * 1_000_000) { self.isHurried }
                self.isResting = false
            }
            self.pause(until: now + milliseconds * 1_000_000) { !self.isIdle }
        }
        self.isRung = false
        swap(&self.incoming, &batch)
        return !(self.isClosed && batch.isEmpty)
    }

    private var isHurried: Bool { self.incoming.isUrgent || self.isRung || self.isClosed }

    private var isIdle: Bool { self.incoming.isEmpty && !self.isRung && !self.isClosed }

    /// Sleeps until the moment, which `endTurn` may put off or bring forward, or until `isOver`; and in any case until
    /// nobody else does the thread's work.
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

/// Notices that something which is looked at now and then has changed, and stayed so until the next look: a file that
/// is being written is not read half.
package struct SettledChange<State: Equatable & Sendable>: Sendable {
    /// The state that was taken, nil when that came to nothing; and the one of the last look.
    private var taken: State?
    private var seen: State

    package init(_ state: State) {
        self.taken = state
        self.seen = state
    }

    /// - Returns: whether `state` is to be taken: it is another one than was taken last, and that of the last look.
    package mutating func looked(_ state: State) -> Bool {
        defer { self.seen = state }
        guard state == self.seen, state != self.taken else { return false }
        self.taken = state
        return true
    }

    /// What was to be taken could not be: the next look that finds it the same takes it again.
    package mutating func failed() {
        self.taken = nil
    }
}

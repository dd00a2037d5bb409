/// One transfer, as far as decisions need it; what it is of, and what it is told by, is stored elsewhere.
///
/// A hundred thousand of them wait in memory, so there is no text in one.
package struct Transfer: Hashable, Sendable {
    package let id: TransferID
    /// The order of submission.
    package let sequence: Int64
    package let session: Int32
    /// A number for the server's scheme, name and port.
    package let host: Int32
    package let kind: TransferKind
    /// A moment of the agent's time, as all moments here, in milliseconds: it never steps.
    package let createdAt: Int64
    /// When it is given up.
    package private(set) var deadline: Int64
    package private(set) var state = TransferState.waiting
    /// Before when no attempt is made; 0 for at once.
    package private(set) var notBefore: Int64
    /// Whether `notBefore` is for a failure, and not asked for.
    package private(set) var isBackingOff = false
    /// Whether the last attempt came to nothing while the machine had no network.
    package private(set) var awaitsNetwork = false
    /// Attempts that came to nothing or to the end; the agent's own death makes none.
    package private(set) var attempts: Int32 = 0
    /// Attempts in a row that brought no byte.
    package private(set) var failures: Int32 = 0
    package private(set) var bytes: Int64 = 0
    /// What there is in all; -1 while nobody has said.
    package private(set) var total: Int64 = -1
    /// The last status of a server; 0 while there is none.
    package private(set) var status: Int32 = 0
    package private(set) var endedAt: Int64 = 0
    /// Whether somebody has taken the finished file.
    package private(set) var isTaken = false

    package init(
        id: TransferID,
        sequence: Int64,
        session: Int32,
        host: Int32,
        kind: TransferKind,
        createdAt: Int64,
        deadline: Int64,
        notBefore: Int64
    ) {
        self.id = id
        self.sequence = sequence
        self.session = session
        self.host = host
        self.kind = kind
        self.createdAt = createdAt
        self.deadline = deadline
        self.notBefore = notBefore
    }

    /// What a store keeps of the changing part.
    package struct Memory: Hashable, Sendable {
        package var state: TransferState
        package var notBefore: Int64
        package var isBackingOff: Bool
        package var attempts: Int32
        package var failures: Int32
        package var bytes: Int64
        package var total: Int64
        package var status: Int32
        package var endedAt: Int64
        package var isTaken: Bool

        package init(
            state: TransferState,
            notBefore: Int64,
            isBackingOff: Bool,
            attempts: Int32,
            failures: Int32,
            bytes: Int64,
            total: Int64,
            status: Int32,
            endedAt: Int64,
            isTaken: Bool
        ) {
            self.state = state
            self.notBefore = notBefore
            self.isBackingOff = isBackingOff
            self.attempts = attempts
            self.failures = failures
            self.bytes = bytes
            self.total = total
            self.status = status
            self.endedAt = endedAt
            self.isTaken = isTaken
        }
    }

    /// The changing part; a transfer that runs is stored as one that waits, since nothing runs after a restart.
    package var memory: Memory {
        Memory(
            state: self.state == .running ? .waiting : self.state,
            notBefore: self.notBefore,
            isBackingOff: self.isBackingOff,
            attempts: self.attempts,
            failures: self.failures,
            bytes: self.bytes,
            total: self.total,
            status: self.status,
            endedAt: self.endedAt,
            isTaken: self.isTaken
        )
    }

    /// The agent has started again and found this stored.
    package mutating func restored(_ memory: Memory) {
        self.state = memory.state == .running ? .waiting : memory.state
        self.notBefore = memory.notBefore
        self.isBackingOff = memory.isBackingOff
        self.attempts = memory.attempts
        self.failures = memory.failures
        self.bytes = memory.bytes
        self.total = memory.total
        self.status = memory.status
        self.endedAt = memory.endedAt
        self.isTaken = memory.isTaken
    }
}

// MARK: - Events

extension Transfer {
    package enum AttemptStartedAction: Hashable, Sendable {
        case run
        /// The transfer runs or has ended: nothing is to be begun.
        case ignore
    }

    package mutating func attemptStarted(now: Int64) -> AttemptStartedAction {
        switch self.state {
        case .waiting:
            self.state = .running
            self.mayBegin()
            return .run
        case .running, .finished, .failed, .cancelled: return .ignore
        }
    }

    /// A server has answered, and bytes have come or left.
    package mutating func progressed(bytes: Int64, total: Int64, status: Int32?) {
        guard self.state == .running else { return }
        self.bytes = bytes
        self.total = total
        if let status { self.status = status }
    }

    package enum AttemptFailedAction: Hashable, Sendable {
        case retry(at: Int64)
        case fail(TransferFault)
        case ignore
    }

    /// An attempt came to nothing.
    ///
    /// - `hasProgressed`: whether it brought any byte that is kept; then the next wait is the shortest again.
    /// - `repeats`: how many times in a row the same fault has occurred.
    /// - `isOffline`: whether there is no network by which its server could be reached.
    package mutating func attemptFailed(
        _ fault: TransferFault,
        hasProgressed: Bool,
        repeats: Int = 1,
        isOffline: Bool = false,
        policy: RetryPolicy,
        now: Int64,
        using generator: inout some RandomNumberGenerator
    ) -> AttemptFailedAction {
        guard self.state == .running else { return .ignore }
        self.attempts += 1
        if case .status(let status, _) = fault { self.status = Int32(clamping: status) }
        var isFinal = fault.isFinal
        // A file that never stops changing is sent in vain.
        if case .fileChanged = fault, repeats >= RetryPolicy.repeatsMax { isFinal = true }
        if isFinal || now >= self.deadline {
            self.end(.failed, now)
            return .fail(isFinal ? fault : .timedOut(fault.message))
        }
        self.failures = hasProgressed ? 1 : min(self.failures + 1, 1000)
        let wait = max(
            policy.wait(failures: Int(self.failures), repeats: repeats, using: &generator),
            fault.retryAfter
        )
        self.state = .waiting
        self.notBefore = min(now + wait, self.deadline)
        self.isBackingOff = true
        if fault.isOfNetwork { self.awaitsNetwork = isOffline }
        return .retry(at: self.notBefore)
    }

    package enum NetworkCameAction: Hashable, Sendable {
        /// The transfer may begin at once.
        case begin
        case ignore
    }

    /// There is a network again.
    package mutating func networkCame() -> NetworkCameAction {
        guard self.state == .waiting, self.awaitsNetwork else { return .ignore }
        self.mayBegin()
        self.failures = 0
        return .begin
    }

    package enum WallClockSetAction: Hashable, Sendable {
        /// The moment before which it is not to begin is another one.
        case wait
        case ignore
    }

    /// The wall clock was set by so many milliseconds: what was asked to begin at a moment of it begins at that moment
    /// all the same, and has as long from then on as before.
    package mutating func wallClockSet(by milliseconds: Int64, now: Int64) -> WallClockSetAction {
        guard self.state == .waiting, !self.isBackingOff, self.notBefore > now else { return .ignore }
        let other = max(now, self.notBefore &- milliseconds)
        self.deadline += other - self.notBefore
        self.notBefore = other
        return .wait
    }

    package enum AttemptStoppedAction: Hashable, Sendable {
        case wait
        case ignore
    }

    /// An attempt was ended by us: it is none, and nothing is waited for on its account.
    package mutating func attemptStopped() -> AttemptStoppedAction {
        guard self.state == .running else { return .ignore }
        self.state = .waiting
        return .wait
    }

    package enum AttemptSucceededAction: Hashable, Sendable {
        case finish
        case ignore
    }

    /// All bytes are there, and on the disk.
    package mutating func attemptSucceeded(bytes: Int64, status: Int32, now: Int64) -> AttemptSucceededAction {
        guard self.state == .running else { return .ignore }
        self.attempts += 1
        self.failures = 0
        self.bytes = bytes
        self.total = bytes
        self.status = status
        self.end(.finished, now)
        return .finish
    }

    package enum CancelledAction: Hashable, Sendable {
        /// The transfer is cancelled now.
        case end
        /// The transfer is cancelled now, and its attempt is to be stopped.
        case endAndStop
        /// The transfer had ended before.
        case ignore
    }

    package mutating func cancelled(now: Int64) -> CancelledAction {
        switch self.state {
        case .waiting:
            self.end(.cancelled, now)
            return .end
        case .running:
            self.end(.cancelled, now)
            return .endAndStop
        case .finished, .failed, .cancelled: return .ignore
        }
    }

    package enum DeadlinePassedAction: Hashable, Sendable {
        case fail
        /// The transfer has failed now, and its attempt is to be stopped.
        case failAndStop
        case ignore
    }

    package mutating func deadlinePassed(now: Int64) -> DeadlinePassedAction {
        guard now >= self.deadline else { return .ignore }
        switch self.state {
        case .waiting:
            self.end(.failed, now)
            return .fail
        case .running:
            self.end(.failed, now)
            return .failAndStop
        case .finished, .failed, .cancelled: return .ignore
        }
    }

    package enum TakenAction: Hashable, Sendable {
        case take
        case alreadyTaken
        case notFinished
    }

    /// Somebody wants the finished file, or has it.
    package mutating func taken() -> TakenAction {
        switch self.state {
        case .finished where self.kind == .upload: return .notFinished
        case .finished where self.isTaken: return .alreadyTaken
        case .finished:
            self.isTaken = true
            return .take
        case .waiting, .running, .failed, .cancelled: return .notFinished
        }
    }

    private mutating func mayBegin() {
        self.notBefore = 0
        self.isBackingOff = false
        self.awaitsNetwork = false
    }

    private mutating func end(_ state: TransferState, _ now: Int64) {
        self.state = state
        self.endedAt = now
        self.mayBegin()
    }
}

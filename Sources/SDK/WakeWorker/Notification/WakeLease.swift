import Synchronization
import Wire

/// How long a wake may run: what its handler and its worker both know of it.
final class WakeLease: Sendable {
    private struct Term {
        var deadline: ContinuousClock.Instant
        var expiration: ExpirationReason?
    }

    private let term: Mutex<Term>
    /// Asks the gateway for more time; nil for wakes that no gateway sent.
    private let extender: (any WakeExtender)?
    /// What the handler of a continued task says of it; nil for other wakes, of which nobody is told.
    let reporting: TaskReporting?

    init(
        deadline: ContinuousClock.Instant,
        extender: (any WakeExtender)?,
        reporting: TaskReporting? = nil
    ) {
        self.term = Mutex(Term(deadline: deadline))
        self.extender = extender
        self.reporting = reporting
    }

    var deadline: ContinuousClock.Instant { self.term.withLock { $0.deadline } }

    /// Never negative.
    var timeLeft: Duration { max(.zero, self.deadline - .now) }

    /// Why its time was over before it was handled; nil when it was not, or the reason is not known.
    var expiration: ExpirationReason? { self.term.withLock { $0.expiration } }

    func extended(to deadline: ContinuousClock.Instant) {
        self.term.withLock { $0.deadline = deadline }
    }

    func expired(_ reason: ExpirationReason?) {
        self.term.withLock { $0.expiration = reason }
    }

    /// - Returns: the time that is left now.
    func extend(_ wake: String, by duration: Duration) async throws(WakeWorkerError) -> Duration {
        guard let extender = self.extender else {
            throw WakeWorkerError(.wakeEnded, "no gateway sent this wake, so none gives it more time")
        }
        return try await extender.extend(wake, by: duration)
    }

    /// Tells how far a continued task is.
    func tell(_ wake: String, _ progress: TaskProgress) async throws(WakeWorkerError) {
        guard let extender = self.extender else {
            throw WakeWorkerError(.wakeEnded, "no gateway sent this wake, so none is told of its progress")
        }
        try await extender.tell(progress, of: wake)
    }

    /// Keeps the wake alive while `body` runs.
    func withExtendedTime<Value: Sendable>(
        _ wake: String,
        _ body: () async throws -> Value
    ) async rethrows -> Value {
        self.extender?.beginKeepingAlive(wake)
        defer { self.extender?.endKeepingAlive(wake) }
        return try await body()
    }
}

/// Tells the gateway of a wake that is being handled, and asks for more time.
protocol WakeExtender: Sendable {
    /// - Returns: the time that is left now.
    func extend(_ wake: String, by duration: Duration) async throws(WakeWorkerError) -> Duration

    /// Tells how far a continued task is.
    func tell(_ progress: TaskProgress, of wake: String) async throws(WakeWorkerError)

    /// Keeps a wake alive until as many calls of `endKeepingAlive` have come.
    func beginKeepingAlive(_ wake: String)
    func endKeepingAlive(_ wake: String)
}

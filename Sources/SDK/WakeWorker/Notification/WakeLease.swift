import Synchronization

/// How long a wake may run: what its notification and its worker both know of it.
final class WakeLease: Sendable {
    private let end: Mutex<ContinuousClock.Instant>
    /// Asks the gateway for more time; nil for notifications that no gateway sent.
    let extender: (any WakeExtender)?

    init(deadline: ContinuousClock.Instant, extender: (any WakeExtender)?) {
        self.end = Mutex(deadline)
        self.extender = extender
    }

    var deadline: ContinuousClock.Instant { self.end.withLock { $0 } }

    func extended(to deadline: ContinuousClock.Instant) {
        self.end.withLock { $0 = deadline }
    }
}

/// Asks for more time.
protocol WakeExtender: Sendable {
    /// - Returns: the time that is left now.
    func extend(_ wake: String, by duration: Duration) async throws(WakeWorkerError) -> Duration

    /// Keeps a wake alive until as many calls of `endKeepingAlive` have come.
    func beginKeepingAlive(_ wake: String)
    func endKeepingAlive(_ wake: String)
}

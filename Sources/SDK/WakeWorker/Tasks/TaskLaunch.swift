package import Wire

/// One launch of a background task, or the word that transfers of a session have finished, as its wake says it: for
/// programs that hand it on, and that take every kind.
package struct TaskLaunch: Sendable {
    package let message: TaskMessage
    private let lease: WakeLease

    init(_ message: TaskMessage, _ lease: WakeLease) {
        self.message = message
        self.lease = lease
    }

    /// Until when it may run; progress and extensions move it. By this machine's clock.
    package var deadline: ContinuousClock.Instant { self.lease.deadline }

    /// Why its time was over before it was handled; nil when it was not, or the reason is not known.
    package var expiration: ExpirationReason? { self.lease.expiration }

    /// Tells the gateway how far a continued task is; an advance moves its deadline.
    ///
    /// A report that does not arrive is not sent again.
    ///
    /// - Throws: `WakeWorkerError`: `wakeEnded` when it is too late, `refused` when the gateway refuses it,
    ///   `cancelled`, and what keeps a request from the gateway.
    package func tell(_ progress: TaskProgress) async throws(WakeWorkerError) {
        try await self.lease.tell(self.message.wake, progress)
    }
}

import Synchronization
import WakeWorker
import Wire

/// A wake in a test. The test determines when the wake expires.
final class TestWake: Sendable {
    private struct State {
        /// The function that cancels the handler; nil until the handler runs.
        var cancel: (@Sendable () -> Void)?
        var isCancelled = false
    }

    let lease: WakeLease
    private let extender: TestExtender
    private let state = Mutex(State())

    init(timeLeft: Duration, extensionLimit: Duration) {
        self.extender = TestExtender(lastDeadline: .now + timeLeft + extensionLimit)
        self.lease = WakeLease(timeLeft: timeLeft, extender: self.extender)
        self.extender.extends(self.lease)
    }

    /// The extensions that were granted to the handler.
    var extensions: [Duration] { self.extender.extensions }

    /// Runs a handler in a task, like a worker. `expire` and `end` cancel the task.
    func run<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let task = Task { try await body() }
        let isCancelled = self.state.withLock { state in
            state.cancel = { task.cancel() }
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    /// Warns of the deadline by cancelling the handler. Its result counts until the deadline.
    func expire(_ reason: ExpirationReason, timeLeft: Duration) {
        self.lease.expiring(reason, timeLeft: timeLeft, silence: .zero)
        self.cancel()
    }

    /// Ends the wake by cancelling the handler.
    func end(_ reason: ExpirationReason) {
        self.extender.end()
        self.lease.expired(reason)
        self.cancel()
    }

    private func cancel() {
        let cancel = self.state.withLock { state in
            state.isCancelled = true
            return state.cancel
        }
        cancel?()
    }
}

/// An object that grants a handler more time, up to a limit.
private final class TestExtender: WakeExtender {
    private struct Grant {
        var isOver = false
        var extensions: [Duration] = []
        weak var lease: WakeLease?
    }

    private let grant = Mutex(Grant())
    private let lastDeadline: ContinuousClock.Instant

    init(lastDeadline: ContinuousClock.Instant) {
        self.lastDeadline = lastDeadline
    }

    var extensions: [Duration] { self.grant.withLock { $0.extensions } }

    /// Sets the lease whose deadline is moved by extensions.
    func extends(_ lease: WakeLease) { self.grant.withLock { $0.lease = lease } }

    func end() { self.grant.withLock { $0.isOver = true } }

    func extend(_ wake: String, by duration: Duration) async throws(WakeWorkerError) -> Duration {
        let last = self.lastDeadline
        return try self.grant.withLock { grant throws(WakeWorkerError) in
            guard !grant.isOver, let lease = grant.lease else {
                throw .test(.wakeEnded, "the test has ended the wake")
            }
            guard lease.deadline < last else {
                throw .test(.extensionLimitReached, "the wake has all the time of its extensionLimit")
            }
            let deadline = max(lease.deadline, min(.now + max(.seconds(1), duration), last))
            grant.extensions.append(duration)
            lease.extended(to: deadline)
            return deadline - .now
        }
    }

    func beginKeepingAlive(_ wake: String) {}

    func endKeepingAlive(_ wake: String) {}
}

extension ExpirationReason {
    init(_ expiration: BackgroundTaskExpiration) {
        self = ExpirationReason(rawValue: expiration.rawValue) ?? .deadline
    }
}

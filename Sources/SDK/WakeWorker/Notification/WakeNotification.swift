import FoundationEssentials
import Synchronization
package import Wire

/// A wake for one device: one silent push, or several coalesced pushes.
///
/// ```swift
/// struct News: Decodable { let edition: Int }
///
/// try await worker.run { notification in
///     let news = try notification.payload(as: News.self)
///     return try await fetch(edition: news.edition) ? .newData : .noData
/// }
/// ```
public struct WakeNotification: Identifiable, Sendable {
    /// The wake's identifier: 128 random bits, new for every launch.
    public var id: String { self.message.wake }
    /// The token of the device, in hexadecimal digits.
    public var deviceToken: String { self.message.device }
    /// The topic of the device.
    public var topic: String { self.message.topic }
    /// The `apns-id` of the push; nil if an operator requested the wake without an `apns-id`.
    public var apnsID: String? { self.message.apnsID }
    /// The collapse id that the provider sent; nil if it sent none.
    public var collapseID: String? { self.message.collapseID }
    /// The push's priority: 1, 5 or 10.
    public var priority: Int { self.message.priority }
    /// The number of this attempt of the push, starting at 1.
    public var attempt: Int { self.message.attempt }
    /// The number of older pushes that were coalesced into this push.
    public var coalescedCount: Int { self.message.coalesced }
    /// The time at which the gateway accepted the push, in milliseconds since 1970 by the gateway's clock.
    public var receivedAt: Int64 { self.message.receivedAt }
    /// The time at which the gateway accepted the oldest of the coalesced pushes, in the same unit.
    public var firstReceivedAt: Int64 { self.message.firstReceivedAt }
    /// The trace context of the push, from the provider's `traceparent` header (W3C Trace Context); nil if it sent
    /// none. Spans of the handler should be children of this context.
    public var traceparent: String? { self.message.traceparent }
    /// The provider's `tracestate` header; nil if it sent none.
    public var tracestate: String? { self.message.tracestate }
    /// The `traceparent` values of at most eight coalesced pushes, newest first. Use them as span links.
    public var traceLinks: [String] { self.message.traceLinks }
    /// The JSON text of the push, as the provider sent it; empty for a wake without a push.
    public var payload: [UInt8] { self.message.payload }
    /// The original deadline of the wake, in milliseconds since 1970 by the gateway's clock.
    package var firstDeadline: Int64 { self.message.deadline }
    private let message: WakeMessage
    package let lease: WakeLease

    /// Creates a notification for the test of a handler. No gateway is involved.
    ///
    /// - Parameters:
    ///   - deviceToken: the token of the device, in hexadecimal digits.
    ///   - topic: the device's topic.
    ///   - payload: the JSON text of the push.
    ///   - timeLeft: the time until the deadline. The deadline cannot be extended, and the handler is not cancelled.
    ///
    /// ```swift
    /// let notification = WakeNotification(topic: "com.example.news", payload: #"{"edition":7}"#)
    /// ```
    public init(
        deviceToken: String = "00000000000000000000000000000000",
        topic: String,
        payload: String,
        timeLeft: Duration = .seconds(30)
    ) {
        self.init(deviceToken: deviceToken, topic: topic, payload: payload, WakeLease(timeLeft: timeLeft))
    }

    /// Creates a notification with this lease, for tests. No gateway is involved.
    package init(deviceToken: String, topic: String, payload: String, _ lease: WakeLease) {
        let id = "00000000000000000000000000000000"
        self.message = WakeMessage(wake: id, device: deviceToken, topic: topic, payload: Array(payload.utf8))
        self.lease = lease
    }

    /// Creates a notification whose deadline cannot be extended.
    package init(_ message: WakeMessage) {
        self.init(message, WakeLease(deadline: .now, extender: nil))
    }

    init(_ message: WakeMessage, _ lease: WakeLease) {
        self.message = message
        self.lease = lease
    }

    /// Decodes the payload.
    ///
    /// - Parameter type: the type to decode.
    /// - Throws: `DecodingError` if the payload does not match the type.
    public func payload<Value: Decodable>(as type: Value.Type) throws -> Value {
        try JSONDecoder().decode(type, from: Data(self.payload))
    }
}

// MARK: - Time

extension WakeNotification {
    /// The time until which the handler's result counts, by this machine's clock. An extension moves it. The handler's
    /// task is cancelled earlier; `policy.expirationLead` is the time between the two.
    public var deadline: ContinuousClock.Instant { self.lease.deadline }

    /// The time until the deadline; never negative.
    public var timeLeft: Duration { self.lease.timeLeft }

    /// Requests more time, as `beginBackgroundTask` does on iOS.
    ///
    /// - Parameter duration: the time that the handler needs from now, rounded up to whole seconds.
    /// - Returns: the remaining time. It is shorter than the requested time if the gateway's `policy.maxExtension` does
    ///   not permit more.
    /// - Throws: ``WakeWorkerError``: `extensionLimitReached` if the gateway grants no more time, `wakeEnded` if the
    ///   wake has ended, `cancelled`, and the errors of a failed request.
    ///
    /// ```swift
    /// let left = try await notification.extend(by: .seconds(60))
    /// ```
    @discardableResult
    public func extend(by duration: Duration = .seconds(30)) async throws(WakeWorkerError) -> Duration {
        try await self.lease.extend(self.id, by: duration)
    }

    /// Extends the wake repeatedly while `body` runs, until the gateway grants no more time. After that, the handler's
    /// task is cancelled before the deadline as usual.
    ///
    /// - Parameter body: the work that needs more time.
    /// - Returns: the result of `body`.
    /// - Throws: the error of `body`.
    ///
    /// ```swift
    /// let archive = try await notification.withExtendedTime { try await download() }
    /// ```
    public func withExtendedTime<Value: Sendable>(_ body: () async throws -> Value) async rethrows -> Value {
        try await self.lease.withExtendedTime(self.id, body)
    }
}

extension WakeNotification: CustomStringConvertible {
    /// The wake's id and topic. The payload and the token are not included.
    public var description: String { "wake \(self.id) of \(self.topic)" }
}

/// The result of handling a wake, like `UIBackgroundFetchResult` on iOS.
public enum BackgroundFetchResult: String, Hashable, Sendable, CaseIterable {
    /// New data was fetched. This result resets the device's penalty for expired wakes.
    case newData
    /// No new data was available.
    case noData
    /// An error occurred. A push with remaining attempts launches again later.
    case failed
}

/// A result that is set once. One task can wait for it.
final class Completion<Value: Sendable>: Sendable {
    private enum State {
        case begun
        case awaited(CheckedContinuation<Value, Never>)
        case completed(Value)
    }

    private let state = Mutex(State.begun)

    func awaited(by continuation: CheckedContinuation<Value, Never>) {
        let early: Value? = self.state.withLock { state in
            if case .completed(let result) = state { return result }
            state = .awaited(continuation)
            return nil
        }
        if let early { continuation.resume(returning: early) }
    }

    /// True after a result was set.
    var isCompleted: Bool {
        self.state.withLock { state in
            if case .completed = state { true } else { false }
        }
    }

    /// - Returns: false if a result was already set.
    @discardableResult
    func complete(_ result: Value) -> Bool {
        let before = self.state.withLock { state in
            defer { if case .completed = state {} else { state = .completed(result) } }
            return state
        }
        switch before {
        case .begun: return true
        case .awaited(let continuation):
            continuation.resume(returning: result)
            return true
        case .completed: return false
        }
    }
}

/// A flag that is raised by changes. The first `raise` after each `lower` calls `wasRaised`.
final class ChangeSignal: Sendable {
    private let isUp = Atomic(false)
    private let wasRaised: @Sendable () -> Void

    /// - Parameter wasRaised: called on the thread that makes the change.
    init(_ wasRaised: @escaping @Sendable () -> Void) {
        self.wasRaised = wasRaised
    }

    /// True if a change was recorded since the last call of `lower`.
    var isRaised: Bool { self.isUp.load(ordering: .acquiring) }

    /// Records a change.
    func raise() {
        guard !self.isUp.exchange(true, ordering: .acquiringAndReleasing) else { return }
        self.wasRaised()
    }

    /// Rearms the signal. Reads after this call see every change that was recorded before the call.
    func lower() { self.isUp.store(false, ordering: .sequentiallyConsistent) }
}

/// The remaining time of a wake, shared by its handler and its worker.
package final class WakeLease: Sendable {
    private struct Term {
        var deadline: ContinuousClock.Instant
        var expiration: ExpirationReason?
        /// True if the handler was cancelled because of a near deadline, and the wake has not ended yet.
        var isExpiring = false
        /// The time after the deadline in which the wake may continue if the gateway sends nothing.
        var silence = Duration.zero
        /// The completion that fails when the wake ends.
        var failing: Completion<BackgroundFetchResult>?
    }

    private let term: Mutex<Term>
    /// The object that requests more time from the gateway; nil for a wake that no gateway sent.
    private let extender: (any WakeExtender)?
    /// The progress of a continued task; nil for other wakes.
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

    /// Creates a lease for a wake that no gateway sent.
    ///
    /// - `extender`: the object that grants more time; nil if none is granted.
    package convenience init(timeLeft: Duration, extender: (any WakeExtender)? = nil) {
        self.init(deadline: .now + timeLeft, extender: extender)
    }

    package var deadline: ContinuousClock.Instant { self.term.withLock { $0.deadline } }

    /// The time until the deadline; never negative.
    var timeLeft: Duration { max(.zero, self.deadline - .now) }

    /// The reason why the wake ended before its handler. It is nil if the handler ended first or the reason is unknown.
    package var expiration: ExpirationReason? { self.term.withLock { $0.expiration } }

    package func extended(to deadline: ContinuousClock.Instant) {
        self.term.withLock { $0.deadline = deadline }
    }

    /// Records that the wake has ended.
    package func expired(_ reason: ExpirationReason?) { self.endGrace { $0.expiration = reason } }

    /// Ends the cleanup time of a cancelled handler.
    func endGrace() { self.endGrace { _ in } }

    private func endGrace(_ change: (inout Term) -> Void) {
        let failing = self.term.withLock { term in
            change(&term)
            term.isExpiring = false
            defer { term.failing = nil }
            return term.failing
        }
        failing?.complete(.failed)
    }

    /// Records that the deadline is near.
    ///
    /// - `silence`: the time after the deadline in which the wake may continue if the gateway sends nothing.
    package func expiring(_ reason: ExpirationReason, timeLeft: Duration, silence: Duration) {
        self.term.withLock {
            $0.expiration = reason
            $0.isExpiring = true
            $0.silence = silence
            $0.deadline = .now + timeLeft
        }
    }

    /// The remaining time in which a handler may clean up after a cancellation because of a near deadline; otherwise
    /// nil.
    ///
    /// Normally the gateway sends `expired` at the deadline, which ends this time. Without that event, the time may be
    /// longer. The worker then asks the gateway, because another process may have extended the deadline.
    package var graceLeft: Duration? {
        self.term.withLock { $0.isExpiring ? max(.zero, $0.deadline + $0.silence - .now) : nil }
    }

    /// Fails `completion` when the wake ends, if the handler was cancelled because of a near deadline. Otherwise fails
    /// it immediately.
    func fail(_ completion: Completion<BackgroundFetchResult>) {
        let isOver = self.term.withLock { term in
            if term.isExpiring { term.failing = completion }
            return !term.isExpiring
        }
        if isOver { completion.complete(.failed) }
    }

    /// Requests more time from the gateway.
    ///
    /// - Returns: the remaining time.
    func extend(_ wake: String, by duration: Duration) async throws(WakeWorkerError) -> Duration {
        guard let extender = self.extender else {
            throw WakeWorkerError(.wakeEnded, "no gateway sent this wake, so none gives it more time")
        }
        return try await extender.extend(wake, by: duration)
    }

    /// Extends the wake repeatedly while `body` runs.
    func withExtendedTime<Value: Sendable>(
        _ wake: String,
        _ body: () async throws -> Value
    ) async rethrows -> Value {
        self.extender?.beginKeepingAlive(wake)
        defer { self.extender?.endKeepingAlive(wake) }
        return try await body()
    }
}

/// Sends requests about a wake in progress to the gateway.
package protocol WakeExtender: Sendable {
    /// - Returns: the remaining time.
    func extend(_ wake: String, by duration: Duration) async throws(WakeWorkerError) -> Duration

    /// Extends a wake repeatedly. Every call must be balanced by a call of `endKeepingAlive`, and the last one stops
    /// the extensions.
    func beginKeepingAlive(_ wake: String)
    func endKeepingAlive(_ wake: String)
}

/// An error that returns a wake to the gateway. A handler throws it when its work cannot begin.
///
/// The wake does not count as an attempt of its push or task. If another worker is free, it receives the wake. Throw
/// this error only if no work was done. After three returned wakes in a row, the gateway sends the worker no more
/// wakes. The worker then subscribes again after a wait of up to a minute, as soon as no wake is running.
///
/// ```swift
/// try await worker.run { notification in
///     guard let model = try? loadModel() else { throw WakeRelease("the model cannot be loaded") }
///     return try await model.handle(notification) ? .newData : .noData
/// }
/// ```
public struct WakeRelease: Error, Hashable, Sendable, CustomStringConvertible {
    /// The maximum size of a reason, in bytes. A longer reason is truncated.
    public static let reasonBytesMax = 256

    /// The reason why the work could not begin. Operators see it.
    public let reason: String

    /// Creates the error.
    ///
    /// - Parameter reason: the reason why the work could not begin. It must not contain a secret.
    public init(_ reason: String) {
        var kept = reason
        while kept.utf8.count > Self.reasonBytesMax { kept.removeLast() }
        self.reason = kept
    }

    /// The reason.
    public var description: String { self.reason }
}

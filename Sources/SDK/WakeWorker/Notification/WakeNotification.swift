import FoundationEssentials
import Synchronization
package import Wire

/// A wake: a silent push, or several in one, for one device.
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
    /// The wake's id: 128 random bits, new for every launch.
    public let id: String
    /// The device it is for, in hexadecimal digits.
    public let deviceToken: String
    /// The topic the device belongs to.
    public let topic: String
    /// The `apns-id` of the push; nil for a wake that an operator made without one.
    public let apnsID: String?
    /// The collapse id that the provider gave, if it did.
    public let collapseID: String?
    /// The push's priority: 1, 5 or 10.
    public let priority: Int
    /// Which launch of this push it is, from 1.
    public let attempt: Int
    /// How many older pushes it stands for besides its own.
    public let coalescedCount: Int
    /// When the gateway took the push, in milliseconds since 1970 by the gateway's clock.
    public let receivedAt: Int64
    /// When the gateway took the oldest push that it stands for, in the same unit.
    public let firstReceivedAt: Int64
    /// The trace that the push belongs to, as its provider's `traceparent` header said (W3C Trace Context); nil when it
    /// had none. What the handler records in a trace belongs below it.
    public let traceparent: String?
    /// The provider's `tracestate` header; nil when there was none.
    public let tracestate: String?
    /// The `traceparent` of older pushes that it stands for, the newest first, at most eight: links of a span.
    public let traceLinks: [String]
    /// The JSON text of the push, as the provider sent it; empty for a wake without a push.
    public let payload: [UInt8]
    /// The deadline that it came with, in milliseconds since 1970 by the gateway's clock.
    package let firstDeadline: Int64
    let lease: WakeLease

    /// A notification that no gateway sent, to test a handler with.
    ///
    /// - Parameters:
    ///   - deviceToken: the device it is for.
    ///   - topic: the topic the device belongs to.
    ///   - payload: the JSON text of the push.
    ///   - timeLeft: how long until its deadline. Nobody extends it, and nobody cancels the handler.
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

    /// A notification that no gateway sent, with this lease.
    package init(deviceToken: String, topic: String, payload: String, _ lease: WakeLease) {
        self.id = "00000000000000000000000000000000"
        self.deviceToken = deviceToken
        self.topic = topic
        self.apnsID = nil
        self.collapseID = nil
        self.priority = 5
        self.attempt = 1
        self.coalescedCount = 0
        self.receivedAt = 0
        self.firstReceivedAt = 0
        self.traceparent = nil
        self.tracestate = nil
        self.traceLinks = []
        self.payload = Array(payload.utf8)
        self.firstDeadline = 0
        self.lease = lease
    }

    /// As a gateway would send it, and nobody to give it more time.
    package init(_ message: WakeMessage) {
        self.init(message, WakeLease(deadline: .now, extender: nil))
    }

    init(_ message: WakeMessage, _ lease: WakeLease) {
        self.id = message.wake
        self.deviceToken = message.device
        self.topic = message.topic
        self.apnsID = message.apnsID
        self.collapseID = message.collapseID
        self.priority = message.priority
        self.attempt = message.attempt
        self.coalescedCount = message.coalesced
        self.receivedAt = message.receivedAt
        self.firstReceivedAt = message.firstReceivedAt
        self.traceparent = message.traceparent
        self.tracestate = message.tracestate
        self.traceLinks = message.traceLinks
        self.payload = message.payload
        self.firstDeadline = message.deadline
        self.lease = lease
    }

    /// Reads the payload.
    ///
    /// - Parameter type: what to read it as.
    /// - Throws: `DecodingError` when the payload is not of that shape.
    public func payload<Value: Decodable>(as type: Value.Type) throws -> Value {
        try JSONDecoder().decode(type, from: Data(self.payload))
    }
}

// MARK: - Time

extension WakeNotification {
    /// Until when the handler's result counts; an extension moves it. The handler's task is cancelled
    /// `policy.expirationLead` before. By this machine's clock, whatever the gateway's says.
    public var deadline: ContinuousClock.Instant { self.lease.deadline }

    /// How long until the deadline; never negative.
    public var timeLeft: Duration { self.lease.timeLeft }

    /// The reason for which the handler's task was cancelled; nil when it was not, or the worker was stopped.
    package var expiration: ExpirationReason? { self.lease.expiration }

    /// The time that a handler which was cancelled has to clean up; nil unless its deadline is only near.
    package var graceLeft: Duration? { self.lease.graceLeft }

    /// Has `completion` fail when the wake ends.
    func fail(_ completion: Completion) { self.lease.fail(completion) }

    /// Asks for more time, as `beginBackgroundTask` does on iOS.
    ///
    /// - Parameter duration: how long from now the handler still needs; whole seconds, rounded up.
    /// - Returns: the time that is left now. It may be less than was asked for, when the gateway's
    ///   `policy.maxExtension` does not give as much.
    /// - Throws: ``WakeWorkerError``: `extensionLimitReached` when the gateway gives no more, `wakeEnded` when it is
    ///   too late, `cancelled`, and what keeps a request from the gateway.
    ///
    /// ```swift
    /// let left = try await notification.extend(by: .seconds(60))
    /// ```
    @discardableResult
    public func extend(by duration: Duration = .seconds(30)) async throws(WakeWorkerError) -> Duration {
        try await self.lease.extend(self.id, by: duration)
    }

    /// Keeps the wake alive while `body` runs: asks for more time whenever half of it has passed, until the gateway
    /// gives no more. After that the handler's task is cancelled before the deadline, as always.
    ///
    /// - Parameter body: what takes longer.
    /// - Returns: what `body` does.
    /// - Throws: what `body` does.
    ///
    /// ```swift
    /// let archive = try await notification.withExtendedTime { try await download() }
    /// ```
    public func withExtendedTime<Value: Sendable>(_ body: () async throws -> Value) async rethrows -> Value {
        try await self.lease.withExtendedTime(self.id, body)
    }
}

extension WakeNotification: CustomStringConvertible {
    /// The wake's id and topic; neither payload nor token.
    public var description: String { "wake \(self.id) of \(self.topic)" }
}

/// What handling a wake came to, as `UIBackgroundFetchResult` says it on iOS.
public enum BackgroundFetchResult: String, Hashable, Sendable, CaseIterable {
    /// There was new data, and it was fetched. The device's penalty for wakes that took too long is taken back.
    case newData
    /// There was nothing new.
    case noData
    /// Something went wrong: the push is launched again later, as long as it has attempts left.
    case failed
}

/// The first result that comes, for whoever awaits it.
final class Completion: Sendable {
    private enum State {
        case begun
        case awaited(CheckedContinuation<BackgroundFetchResult, Never>)
        case completed(BackgroundFetchResult)
    }

    private let state = Mutex(State.begun)

    func awaited(by continuation: CheckedContinuation<BackgroundFetchResult, Never>) {
        let early: BackgroundFetchResult? = self.state.withLock { state in
            if case .completed(let result) = state { return result }
            state = .awaited(continuation)
            return nil
        }
        if let early { continuation.resume(returning: early) }
    }

    /// True once a result has come.
    var isCompleted: Bool {
        self.state.withLock { state in
            if case .completed = state { true } else { false }
        }
    }

    /// - Returns: false when a result came before.
    @discardableResult
    func complete(_ result: BackgroundFetchResult) -> Bool {
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

/// What a completion handler keeps: when it goes without a call, the wake has failed.
final class CompletionCall: Sendable {
    private let completion: Completion

    init(_ completion: Completion) {
        self.completion = completion
    }

    deinit {
        self.completion.complete(.failed)
    }

    func call(_ result: BackgroundFetchResult) {
        self.completion.complete(result)
    }
}

/// Says that something has changed: once, until whoever hears of it has looked.
final class ChangeSignal: Sendable {
    private let isUp = Atomic(false)
    private let wasRaised: @Sendable () -> Void

    /// - Parameter wasRaised: is called from the thread that changes something.
    init(_ wasRaised: @escaping @Sendable () -> Void) {
        self.wasRaised = wasRaised
    }

    /// Whether something has changed that nobody has looked at.
    var isRaised: Bool { self.isUp.load(ordering: .acquiring) }

    /// Something has changed.
    func raise() {
        guard !self.isUp.exchange(true, ordering: .acquiringAndReleasing) else { return }
        self.wasRaised()
    }

    /// What is looked at from here on has every change that was told.
    func lower() { self.isUp.store(false, ordering: .sequentiallyConsistent) }
}

/// How long a wake may run: what its handler and its worker both know of it.
package final class WakeLease: Sendable {
    private struct Term {
        var deadline: ContinuousClock.Instant
        var expiration: ExpirationReason?
        /// True if the handler was cancelled because the deadline is near, and nothing has ended the wake since.
        var isExpiring = false
        /// How long after the deadline the gateway may say nothing while the wake goes on.
        var silence = Duration.zero
        /// What has failed when the wake ends.
        var failing: Completion?
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

    /// A lease of a wake that no gateway sent.
    ///
    /// - `extender`: gives it more time; nil for none.
    package convenience init(timeLeft: Duration, extender: (any WakeExtender)? = nil) {
        self.init(deadline: .now + timeLeft, extender: extender)
    }

    package var deadline: ContinuousClock.Instant { self.term.withLock { $0.deadline } }

    /// Never negative.
    var timeLeft: Duration { max(.zero, self.deadline - .now) }

    /// Why its time was over before it was handled; nil when it was not, or the reason is not known.
    var expiration: ExpirationReason? { self.term.withLock { $0.expiration } }

    package func extended(to deadline: ContinuousClock.Instant) {
        self.term.withLock { $0.deadline = deadline }
    }

    /// The wake has ended.
    package func expired(_ reason: ExpirationReason?) { self.endGrace { $0.expiration = reason } }

    /// A handler that was cancelled gets no more time to clean up.
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

    /// The deadline is near, in so long.
    ///
    /// - `silence`: how long after the deadline it is known that nobody got more time, when the gateway says nothing.
    package func expiring(_ reason: ExpirationReason, timeLeft: Duration, silence: Duration) {
        self.term.withLock {
            $0.expiration = reason
            $0.isExpiring = true
            $0.silence = silence
            $0.deadline = .now + timeLeft
        }
    }

    /// The time that a handler which was cancelled has to clean up; nil unless its deadline is only near.
    ///
    /// The gateway's word ends it at the deadline. Without that word it lasts until the gateway was asked, as another
    /// process may have got more time.
    var graceLeft: Duration? {
        self.term.withLock { $0.isExpiring ? max(.zero, $0.deadline + $0.silence - .now) : nil }
    }

    /// A handler that was cancelled as its deadline is near has failed when its wake ends before it says anything else.
    func fail(_ completion: Completion) {
        let isOver = self.term.withLock { term in
            if term.isExpiring { term.failing = completion }
            return !term.isExpiring
        }
        if isOver { completion.complete(.failed) }
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
            throw WakeWorkerError(.wakeEnded, "no gateway sent this wake, so its progress is not reported")
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
package protocol WakeExtender: Sendable {
    /// - Returns: the time that is left now.
    func extend(_ wake: String, by duration: Duration) async throws(WakeWorkerError) -> Duration

    /// Tells how far a continued task is.
    func tell(_ progress: TaskProgress, of wake: String) async throws(WakeWorkerError)

    /// Keeps a wake alive until as many calls of `endKeepingAlive` have come.
    func beginKeepingAlive(_ wake: String)
    func endKeepingAlive(_ wake: String)
}

/// An error that gives a wake back: a handler throws it when its work could not begin.
///
/// The wake is lost, which costs its push or task no attempt, and another worker gets it if one is free. Throw it only
/// before anything was done. A gateway gives a worker no more wakes after three in a row that it gave back; the worker
/// subscribes again after a wait of up to a minute.
///
/// ```swift
/// try await worker.run { notification in
///     guard let model = try? loadModel() else { throw WakeRelease("the model cannot be loaded") }
///     return try await model.handle(notification) ? .newData : .noData
/// }
/// ```
public struct WakeRelease: Error, Hashable, Sendable, CustomStringConvertible {
    /// The most bytes of a reason; the rest of a longer one is left out.
    public static let reasonBytesMax = 256

    /// Why the work could not begin. Operators see it.
    public let reason: String

    /// Makes the error.
    ///
    /// - Parameter reason: why the work could not begin; it must hold no secret.
    public init(_ reason: String) {
        var kept = reason
        while kept.utf8.count > Self.reasonBytesMax { kept.removeLast() }
        self.reason = kept
    }

    /// The reason.
    public var description: String { self.reason }
}

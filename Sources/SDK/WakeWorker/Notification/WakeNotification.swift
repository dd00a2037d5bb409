import FoundationEssentials
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
        self.lease = WakeLease(deadline: .now + timeLeft, extender: nil)
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
    /// When the handler's task is cancelled, at the latest; an extension moves it. By this machine's clock, whatever
    /// the gateway's says.
    public var deadline: ContinuousClock.Instant { self.lease.deadline }

    /// How long until the deadline; never negative.
    public var timeLeft: Duration { self.lease.timeLeft }

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
    /// gives no more. After that the handler's task is cancelled at the deadline, as always.
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

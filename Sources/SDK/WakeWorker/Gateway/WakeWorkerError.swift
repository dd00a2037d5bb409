package import HTTPClient

/// What went wrong, and what to do about it.
///
/// Compare `code` to tell errors apart; show `message` to people. Neither holds a payload or a token.
///
/// ```swift
/// do {
///     try await worker.run { _ in .newData }
/// } catch where error.code == .refused {
///     log("the gateway does not let this worker in: \(error.message)")
/// }
/// ```
public struct WakeWorkerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error. More kinds may come, so compare with those you know.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Kind: String {
            case badArgument, badCredentials, untrusted, unreachable, timedOut, refused, badAnswer
            case wakeEnded, extensionLimitReached, alreadyRunning, duplicateTask, unavailable, cancelled
        }

        private let kind: Kind

        /// A URL, topic, token, name or number that cannot be used.
        public static let badArgument = Code(kind: .badArgument)
        /// A file with a certificate, key or token cannot be read or used.
        public static let badCredentials = Code(kind: .badCredentials)
        /// The gateway's certificate is not trusted, or the TLS handshake failed.
        public static let untrusted = Code(kind: .untrusted)
        /// Nobody answers at the gateway's address, or the connection broke.
        public static let unreachable = Code(kind: .unreachable)
        /// The gateway did not answer in time, or was silent for too long.
        public static let timedOut = Code(kind: .timedOut)
        /// The gateway answered with an error; its reason and remedy are in the message.
        public static let refused = Code(kind: .refused)
        /// What answered does not speak as a WakeGate gateway does.
        public static let badAnswer = Code(kind: .badAnswer)
        /// The wake has ended already: its time is not extended, and its result does not count.
        public static let wakeEnded = Code(kind: .wakeEnded)
        /// The wake has all the time that the gateway's `policy.maxExtension` gives.
        public static let extensionLimitReached = Code(kind: .extensionLimitReached)
        /// `run` was called while it runs, or a handler is registered after it was called.
        public static let alreadyRunning = Code(kind: .alreadyRunning)
        /// A background task or session has a handler already.
        public static let duplicateTask = Code(kind: .duplicateTask)
        /// The machine lacks what a worker needs: threads, descriptors or memory.
        public static let unavailable = Code(kind: .unavailable)
        /// The task that waited was cancelled.
        public static let cancelled = Code(kind: .cancelled)

        /// The name of the code.
        public var description: String { self.kind.rawValue }
    }

    /// What kind of error it is.
    public let code: Code
    /// What happened, and the remedy.
    public let message: String

    /// Why there was no answer, for programs that explain it in their own words.
    package let cause: HTTPClientError?

    /// Whether another try may come to something else: a gateway is not there, or a file is being written.
    let isPassing: Bool

    /// The gateway's answer, when it was one.
    let refusal: GatewayRefusal?

    /// Whether the gateway refuses the worker's token or certificate, and will do so until it is given another.
    package var isCredentialRefused: Bool { self.refusal?.status == 401 || self.refusal?.status == 403 }

    init(
        _ code: Code,
        _ message: String,
        cause: HTTPClientError? = nil,
        isPassing: Bool = false,
        refusal: GatewayRefusal? = nil
    ) {
        self.code = code
        self.message = message
        self.cause = cause
        self.isPassing = isPassing
        self.refusal = refusal
    }

    /// An error of a wake that no gateway sent.
    package static func test(_ code: Code, _ message: String) -> WakeWorkerError { WakeWorkerError(code, message) }

    /// The code and the message.
    public var description: String { "\(self.code): \(self.message)" }
}

/// What the gateway answered to a request that it refused.
struct GatewayRefusal: Hashable, Sendable {
    let status: Int
    let reason: String
    /// How many seconds the gateway wants to be left alone; nil when it does not say so.
    let retryAfter: Int64?
}

package import HTTPClient

/// An error of a worker, with its cause and its remedy.
///
/// Compare `code` to distinguish errors, and show `message` to people. Neither contains a payload or a token.
///
/// ```swift
/// do {
///     try await worker.run { _ in .newData }
/// } catch where error.code == .refused {
///     log("the gateway does not let this worker in: \(error.message)")
/// }
/// ```
public struct WakeWorkerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error. Later versions may add kinds.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the code.
        public let description: String

        /// A URL, topic, token, name or number that cannot be used.
        public static let badArgument = Code(description: "badArgument")
        /// A file with a certificate, key or token cannot be read or used.
        public static let badCredentials = Code(description: "badCredentials")
        /// The gateway's certificate is not trusted, or the TLS handshake failed.
        public static let untrusted = Code(description: "untrusted")
        /// No server answers at the gateway's address, or the connection broke.
        public static let unreachable = Code(description: "unreachable")
        /// The gateway did not answer in time, or its stream was silent for too long.
        public static let timedOut = Code(description: "timedOut")
        /// The gateway answered with an error; the message has the reason and the remedy.
        public static let refused = Code(description: "refused")
        /// The answer does not have the format of a WakeGate gateway's answer.
        public static let badAnswer = Code(description: "badAnswer")
        /// The wake has already ended. Its time cannot be extended, and its result does not count.
        public static let wakeEnded = Code(description: "wakeEnded")
        /// The wake already has the maximum time that the gateway's `policy.maxExtension` permits.
        public static let extensionLimitReached = Code(description: "extensionLimitReached")
        /// `run` was called a second time, or a handler was registered after `run` was called.
        public static let alreadyRunning = Code(description: "alreadyRunning")
        /// The background task or session already has a handler.
        public static let duplicateTask = Code(description: "duplicateTask")
        /// The machine lacks resources that a worker needs: threads, descriptors or memory.
        public static let unavailable = Code(description: "unavailable")
        /// The waiting task was cancelled.
        public static let cancelled = Code(description: "cancelled")
    }

    /// The kind of error.
    public let code: Code
    /// A message for people: the cause and the remedy.
    public let message: String

    /// The underlying client error, for programs that write their own error messages.
    package let cause: HTTPClientError?

    /// True if the error is temporary, for example because the gateway is unreachable or a file is being written. A
    /// retry may then succeed.
    let isPassing: Bool

    /// The gateway's error answer; nil for other errors.
    let refusal: GatewayRefusal?

    /// True if the gateway refuses the worker's token or certificate. A retry cannot succeed with the same credentials.
    package var isCredentialRefused: Bool { self.refusal?.isOfCredential == true }

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

    /// Creates an error about a wake that no gateway sent, for tests.
    package static func test(_ code: Code, _ message: String) -> WakeWorkerError { WakeWorkerError(code, message) }

    /// The code and the message.
    public var description: String { "\(self.code): \(self.message)" }
}

/// The gateway's answer to a refused request.
struct GatewayRefusal: Hashable, Sendable {
    let status: Int
    let reason: String
    /// The minimum wait that the gateway requests, in seconds; nil if it requests none.
    let retryAfter: Int?
    /// True if the gateway refuses the token or the client certificate, and not for example the caller's network.
    let isOfCredential: Bool
}

import Wire

/// Why a transfer, or its last try, has failed.
public struct BackgroundTransferFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of a failure. More kinds may come, so compare with those you know.
    public struct Reason: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The word, as the agent writes it.
        public let rawValue: String

        /// A word that may be new to this library.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// No connection to the server could be made.
        public static let connectionFailed = Reason(rawValue: "ConnectionFailed")
        /// The session's `resourceTimeout` has passed.
        public static let timedOut = Reason(rawValue: "TimedOut")
        /// The server answered with an error: see ``BackgroundTransfer/httpStatus``.
        public static let httpStatus = Reason(rawValue: "HTTPStatus")
        /// The server's certificate is not trusted.
        public static let certificate = Reason(rawValue: "Certificate")
        /// The server redirected more than ten times.
        public static let tooManyRedirects = Reason(rawValue: "TooManyRedirects")
        /// What came has another SHA-256 than was said.
        public static let badChecksum = Reason(rawValue: "BadChecksum")
        /// There is more than `bytesMax`.
        public static let tooLarge = Reason(rawValue: "TooLarge")
        /// The disk lacks the space.
        public static let noSpace = Reason(rawValue: "NoSpace")
        /// The server redirected to something else than HTTP.
        public static let forbiddenProtocol = Reason(rawValue: "ForbiddenProtocol")
        /// The file to upload cannot be read.
        public static let fileUnreadable = Reason(rawValue: "FileUnreadable")
        /// What comes cannot be written.
        public static let fileUnwritable = Reason(rawValue: "FileUnwritable")
        /// The file to upload changed while it was sent.
        public static let fileChanged = Reason(rawValue: "FileChanged")
        /// The server answered with success before it had read the whole upload.
        public static let serverStoppedReading = Reason(rawValue: "ServerStoppedReading")
        /// The server sent a content coding that was not requested.
        public static let unrequestedCoding = Reason(rawValue: "UnrequestedCoding")
        /// The server sent fewer bytes, or more, than it had said.
        public static let wrongLength = Reason(rawValue: "WrongLength")
        /// The connection broke.
        public static let interrupted = Reason(rawValue: "Interrupted")

        /// The word.
        public var description: String { self.rawValue }
    }

    /// What kind of failure it is.
    public let reason: Reason
    /// What happened, and the remedy.
    public let message: String

    /// Reads what the agent says; nil when it says nothing.
    init?(_ object: JSONValue) {
        guard let reason = object["reason"]?.text else { return nil }
        self.reason = Reason(rawValue: reason)
        self.message = object["message"]?.text ?? ""
    }

    /// The reason and the message.
    public var description: String { "\(self.reason): \(self.message)" }
}

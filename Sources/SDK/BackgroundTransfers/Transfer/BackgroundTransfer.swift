public import FoundationEssentials
package import Wire

/// A transfer, as the agent reported it at one point in time.
///
/// ```swift
/// for transfer in try await session.transfers(in: .waiting) {
///     log("\(transfer.url): \(transfer.why ?? "")")
/// }
/// ```
public struct BackgroundTransfer: Hashable, Sendable, Identifiable {
    /// The direction of a transfer.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// A file is received from a server.
        case download
        /// A file is sent to a server.
        case upload
    }

    /// The state of a transfer. Every transfer reaches one of the last three states and then keeps it, even if
    /// processes crash.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// The transfer has not started or is waiting to be retried; ``BackgroundTransfer/why`` says why.
        case waiting
        /// The transfer is in progress.
        case running
        /// The transfer is complete. The file of a download is stored durably.
        case finished
        /// The transfer has failed permanently; ``BackgroundTransfer/failure`` says why.
        case failed
        /// The transfer was cancelled.
        case cancelled

        /// True for a final state.
        public var isEnd: Bool { self == .finished || self == .failed || self == .cancelled }
    }

    /// The identifier of the transfer.
    public let id: BackgroundTransferID
    /// The identifier of the session.
    public let session: String
    /// The direction of the transfer.
    public let kind: Kind
    /// The source or destination URL, without user name and password.
    public let url: String
    /// The state of the transfer.
    public let state: State
    /// The number of bytes transferred so far.
    public let bytes: Int64
    /// The total number of bytes; nil if unknown.
    public let total: Int64?
    /// The number of attempts that were started.
    public let attemptCount: Int
    /// The status code of the server's last response; nil if there was none.
    public let httpStatus: Int?
    /// The failure of the transfer or of its latest attempt; nil if no attempt has failed.
    public let failure: BackgroundTransferFailure?
    /// The reason why the transfer is waiting, as a sentence; nil if it is not waiting.
    public let why: String?
    /// The reason why the transfer is waiting, as a word; nil if it is not waiting.
    public let hold: BackgroundTransferHold?
    /// The time at which the transfer was added.
    public let createdAt: Date
    /// The time at which the transfer ended; nil before.
    public let endedAt: Date?
    /// The time of the next attempt; nil if none is scheduled.
    public let nextAttemptAt: Date?
    /// The note of the request.
    public let note: String?
    /// The SHA-256 of a finished download, in hexadecimal digits; nil if unknown.
    public let sha256: String?
    /// True if ``BackgroundSession/take(_:to:replacing:)`` has moved the file of the download.
    public let isTaken: Bool

    /// Reads a transfer object of the agent; nil if it is malformed.
    package init?(_ object: JSONValue) {
        guard let id = object["transfer"]?.text.flatMap({ BackgroundTransferID($0) }),
            let kind = object["kind"]?.text.flatMap({ Kind(rawValue: $0) }),
            let state = object["state"]?.text.flatMap({ State(rawValue: $0) })
        else { return nil }
        self.id = id
        self.session = object["session"]?.text ?? ""
        self.kind = kind
        self.url = object["url"]?.text ?? ""
        self.state = state
        self.bytes = object["bytes"]?.integer ?? 0
        self.total = object["total"]?.integer
        self.attemptCount = Int(clamping: object["attempts"]?.integer ?? 0)
        self.httpStatus = object["status"]?.integer.map { Int(clamping: $0) }
        self.failure = object["error"].flatMap { BackgroundTransferFailure($0) }
        self.why = object["why"]?.text
        self.hold = object["held"]?.text.map { BackgroundTransferHold(rawValue: $0) }
        self.createdAt = object["createdAt"]?.instant ?? Date(timeIntervalSince1970: 0)
        self.endedAt = object["endedAt"]?.instant
        self.nextAttemptAt = object["nextAttemptAt"]?.instant
        self.note = object["note"]?.text
        self.sha256 = object["sha256"]?.text
        self.isTaken = object["taken"]?.bool ?? false
    }

    /// The progress in bytes.
    public var progress: BackgroundTransferProgress {
        BackgroundTransferProgress(transfer: self.id, bytes: self.bytes, total: self.total)
    }
}

/// The progress of a transfer in bytes.
public struct BackgroundTransferProgress: Hashable, Sendable {
    /// The identifier of the transfer.
    public let transfer: BackgroundTransferID
    /// The number of bytes transferred so far.
    public let bytes: Int64
    /// The total number of bytes; nil if unknown.
    public let total: Int64?

    /// The fraction that is complete, from 0 to 1; nil if the total is unknown.
    public var fraction: Double? {
        guard let total = self.total else { return nil }
        return total > 0 ? min(1, max(0, Double(self.bytes) / Double(total))) : 1
    }

    init(transfer: BackgroundTransferID, bytes: Int64, total: Int64?) {
        self.transfer = transfer
        self.bytes = bytes
        self.total = total
    }

    /// Reads the data of an event; nil if it is malformed.
    init?(_ object: JSONValue) {
        guard let id = object["transfer"]?.text.flatMap({ BackgroundTransferID($0) }),
            let bytes = object["bytes"]?.integer
        else { return nil }
        self.init(transfer: id, bytes: bytes, total: object["total"]?.integer)
    }
}

/// The reason why a transfer is waiting. Each reason is named after the state or event that ends it.
public struct BackgroundTransferHold: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The word that the agent uses.
    public let rawValue: String

    /// Creates a reason from a word. The word may be unknown to this version of the library.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// The next use of the app, after the app was force-quit on the session's device.
    public static let forceQuit = BackgroundTransferHold(rawValue: "forceQuit")
    /// The gateway's report whether the app was force-quit. The transfer waits at most 10 seconds for it.
    public static let appState = BackgroundTransferHold(rawValue: "appState")
    /// External power, for a discretionary transfer.
    public static let power = BackgroundTransferHold(rawValue: "power")
    /// The end of the low power mode, for a discretionary transfer.
    public static let lowPower = BackgroundTransferHold(rawValue: "lowPower")
    /// A cooler machine, for a discretionary transfer.
    public static let thermal = BackgroundTransferHold(rawValue: "thermal")
    /// A network that is not metered.
    public static let metered = BackgroundTransferHold(rawValue: "metered")
    /// A network without data saving.
    public static let constrained = BackgroundTransferHold(rawValue: "constrained")
    /// Any network.
    public static let network = BackgroundTransferHold(rawValue: "network")
    /// The earliest start time.
    public static let earliestBegin = BackgroundTransferHold(rawValue: "earliestBegin")
    /// The time of the next attempt.
    public static let backoff = BackgroundTransferHold(rawValue: "backoff")
    /// A free slot, because the maximum number of transfers is running.
    public static let slots = BackgroundTransferHold(rawValue: "slots")

    /// The word.
    public var description: String { self.rawValue }
}

/// The identifier of a transfer, assigned by the agent: 32 hexadecimal digits.
public struct BackgroundTransferID: Hashable, Sendable, CustomStringConvertible, LosslessStringConvertible {
    /// The digits, in lowercase.
    public let description: String

    /// Creates an identifier from its digits.
    ///
    /// - Parameter text: 32 hexadecimal digits.
    /// - Returns: nil if the text has another form.
    public init?(_ text: String) {
        guard text.utf8.count == 32, text.utf8.allSatisfy({ $0.hexDigitValue != nil }) else { return nil }
        self.description = text.lowercased()
    }
}

/// The failure of a transfer or of its latest attempt.
public struct BackgroundTransferFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure. Later versions may add kinds.
    public struct Reason: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The word that the agent uses.
        public let rawValue: String

        /// Creates a reason from a word. The word may be unknown to this version of the library.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The connection to the server could not be established.
        public static let connectionFailed = Reason(rawValue: "ConnectionFailed")
        /// The session's `resourceTimeout` has passed.
        public static let timedOut = Reason(rawValue: "TimedOut")
        /// The server answered with an error: see ``BackgroundTransfer/httpStatus``.
        public static let httpStatus = Reason(rawValue: "HTTPStatus")
        /// The server's certificate is not trusted.
        public static let certificate = Reason(rawValue: "Certificate")
        /// The server redirected more than ten times.
        public static let tooManyRedirects = Reason(rawValue: "TooManyRedirects")
        /// The SHA-256 of the received file differs from the expected value.
        public static let badChecksum = Reason(rawValue: "BadChecksum")
        /// The file is larger than `bytesMax`.
        public static let tooLarge = Reason(rawValue: "TooLarge")
        /// The disk is full.
        public static let noSpace = Reason(rawValue: "NoSpace")
        /// The server redirected to a protocol other than HTTP and HTTPS.
        public static let forbiddenProtocol = Reason(rawValue: "ForbiddenProtocol")
        /// The file to upload cannot be read.
        public static let fileUnreadable = Reason(rawValue: "FileUnreadable")
        /// The received file cannot be written.
        public static let fileUnwritable = Reason(rawValue: "FileUnwritable")
        /// The file to upload changed during the transfer.
        public static let fileChanged = Reason(rawValue: "FileChanged")
        /// The server answered with success before it had read the whole upload.
        public static let serverStoppedReading = Reason(rawValue: "ServerStoppedReading")
        /// The server sent a content encoding that was not requested.
        public static let unrequestedCoding = Reason(rawValue: "UnrequestedCoding")
        /// The server sent fewer or more bytes than announced.
        public static let wrongLength = Reason(rawValue: "WrongLength")
        /// The connection was interrupted.
        public static let interrupted = Reason(rawValue: "Interrupted")

        /// The word.
        public var description: String { self.rawValue }
    }

    /// The kind of failure.
    public let reason: Reason
    /// A message for people: the cause and the remedy.
    public let message: String

    /// Reads a failure object of the agent; nil if it has no reason.
    init?(_ object: JSONValue) {
        guard let reason = object["reason"]?.text else { return nil }
        self.reason = Reason(rawValue: reason)
        self.message = object["message"]?.text ?? ""
    }

    /// The reason and the message.
    public var description: String { "\(self.reason): \(self.message)" }
}

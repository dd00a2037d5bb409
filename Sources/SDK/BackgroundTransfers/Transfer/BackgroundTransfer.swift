public import FoundationEssentials
package import Wire

/// A transfer as the agent knows it at one moment.
///
/// ```swift
/// for transfer in try await session.transfers(in: .waiting) {
///     log("\(transfer.url): \(transfer.why ?? "")")
/// }
/// ```
public struct BackgroundTransfer: Hashable, Sendable, Identifiable {
    /// What is transferred.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// A file comes from a server.
        case download
        /// A file goes to a server.
        case upload
    }

    /// How far a transfer is. It ends in exactly one of the last three, whatever dies meanwhile.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// The transfer waits: ``BackgroundTransfer/why`` says for what.
        case waiting
        /// The transfer is under way.
        case running
        /// The transfer is complete, and its file is safe.
        case finished
        /// The transfer has failed for good: ``BackgroundTransfer/failure`` says why.
        case failed
        /// The transfer was cancelled.
        case cancelled

        /// Whether nothing more becomes of it.
        public var isEnd: Bool { self == .finished || self == .failed || self == .cancelled }
    }

    /// The transfer's name.
    public let id: BackgroundTransferID
    /// The identifier of its session.
    public let session: String
    /// What is transferred.
    public let kind: Kind
    /// Where it comes from, or goes to; without a user's name and password.
    public let url: String
    /// How far it is.
    public let state: State
    /// How many bytes are there.
    public let bytes: Int64
    /// How many bytes it has in all; nil while that is not known.
    public let total: Int64?
    /// How often it was begun.
    public let attemptCount: Int
    /// The status code of the server's last answer; nil when there was none.
    public let httpStatus: Int?
    /// Why it failed, or the last try did; nil when none has.
    public let failure: BackgroundTransferFailure?
    /// Why it waits, in a sentence; nil when it does not.
    public let why: String?
    /// What it waits for; nil when it does not wait.
    public let hold: BackgroundTransferHold?
    /// When it was added.
    public let createdAt: Date
    /// When it ended; nil before that.
    public let endedAt: Date?
    /// When it is tried again; nil when it does not wait for that.
    public let nextAttemptAt: Date?
    /// The note that it was added with.
    public let note: String?
    /// The SHA-256 of a finished download, in hexadecimal digits; nil when it is not known.
    public let sha256: String?
    /// Whether its file was taken: see ``BackgroundSession/take(_:to:replacing:)``.
    public let isTaken: Bool

    /// Reads what the agent says of a transfer; nil when it cannot be read.
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

    /// How far it is, in bytes.
    public var progress: BackgroundTransferProgress {
        BackgroundTransferProgress(transfer: self.id, bytes: self.bytes, total: self.total)
    }
}

/// How far a transfer is, in bytes.
public struct BackgroundTransferProgress: Hashable, Sendable {
    /// The transfer.
    public let transfer: BackgroundTransferID
    /// How many bytes are there.
    public let bytes: Int64
    /// How many bytes it has in all; nil while that is not known.
    public let total: Int64?

    /// What part of it is there, 0 to 1; nil while its size is not known.
    public var fraction: Double? {
        guard let total = self.total else { return nil }
        return total > 0 ? min(1, max(0, Double(self.bytes) / Double(total))) : 1
    }

    init(transfer: BackgroundTransferID, bytes: Int64, total: Int64?) {
        self.transfer = transfer
        self.bytes = bytes
        self.total = total
    }

    /// Reads the data of an event; nil when it cannot be read.
    init?(_ object: JSONValue) {
        guard let id = object["transfer"]?.text.flatMap({ BackgroundTransferID($0) }),
            let bytes = object["bytes"]?.integer
        else { return nil }
        self.init(transfer: id, bytes: bytes, total: object["total"]?.integer)
    }
}

/// What a transfer waits for.
public struct BackgroundTransferHold: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The word, as the agent writes it.
    public let rawValue: String

    /// A word that may be new to this library.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// External power: the transfer is discretionary.
    public static let power = BackgroundTransferHold(rawValue: "power")
    /// The end of the low power mode: the transfer is discretionary.
    public static let lowPower = BackgroundTransferHold(rawValue: "lowPower")
    /// A machine that is less hot: the transfer is discretionary.
    public static let thermal = BackgroundTransferHold(rawValue: "thermal")
    /// A network that is not metered.
    public static let metered = BackgroundTransferHold(rawValue: "metered")
    /// A network.
    public static let network = BackgroundTransferHold(rawValue: "network")
    /// The moment before which it is not to begin.
    public static let earliestBegin = BackgroundTransferHold(rawValue: "earliestBegin")
    /// The moment of its next try.
    public static let backoff = BackgroundTransferHold(rawValue: "backoff")
    /// The end of another transfer: as many run as may.
    public static let slots = BackgroundTransferHold(rawValue: "slots")

    /// The word.
    public var description: String { self.rawValue }
}

/// The name of a transfer, which the agent makes: 32 hexadecimal digits.
public struct BackgroundTransferID: Hashable, Sendable, CustomStringConvertible, LosslessStringConvertible {
    /// The digits, in lower case.
    public let description: String

    /// Reads the digits.
    ///
    /// - Parameter text: 32 hexadecimal digits.
    /// - Returns: nil for anything else.
    public init?(_ text: String) {
        guard text.utf8.count == 32, text.utf8.allSatisfy({ $0 &- 0x30 < 10 || ($0 | 0x20) &- 0x61 < 6 }) else {
            return nil
        }
        self.description = text.lowercased()
    }
}

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

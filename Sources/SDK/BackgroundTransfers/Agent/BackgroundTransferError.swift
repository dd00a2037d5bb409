/// What went wrong, and what to do about it.
///
/// Compare `code` to tell errors apart; show `message` to people. It holds no header of a transfer.
///
/// ```swift
/// do {
///     try await session.download(from: "https://example.com/film.mp4", to: "/srv/films/film.mp4")
/// } catch where error.code == .noAgent {
///     log("start the agent: \(error.message)")
/// }
/// ```
public struct BackgroundTransferError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error. More kinds may come, so compare with those you know.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Kind: String {
            case badArgument, noAgent, notPermitted, timedOut, interrupted, badAnswer, badSession, badTransfer, badPath
            case unknownSession, unknownTransfer, tooManySessions, tooManyTransfers, noSpace
            case notFinished, alreadyTaken, fileExists, transferFailed, transferCancelled
            case refused, unavailable, cancelled
        }

        private let kind: Kind

        /// An identifier, address, URL or number that cannot be used.
        public static let badArgument = Code(kind: .badArgument)
        /// No agent listens at its socket.
        public static let noAgent = Code(kind: .noAgent)
        /// The agent is another user's.
        public static let notPermitted = Code(kind: .notPermitted)
        /// The agent did not answer in time.
        public static let timedOut = Code(kind: .timedOut)
        /// The agent ended before it answered, and may have done what it was asked for.
        public static let interrupted = Code(kind: .interrupted)
        /// What answered does not speak as an agent does.
        public static let badAnswer = Code(kind: .badAnswer)
        /// A setting of the session cannot be used; the message names it.
        public static let badSession = Code(kind: .badSession)
        /// A member of the request cannot be used; the message names it.
        public static let badTransfer = Code(kind: .badTransfer)
        /// A file cannot be put where it is to go.
        public static let badPath = Code(kind: .badPath)
        /// The agent has no such session.
        public static let unknownSession = Code(kind: .unknownSession)
        /// The session has no such transfer.
        public static let unknownTransfer = Code(kind: .unknownTransfer)
        /// The agent has as many sessions as it may.
        public static let tooManySessions = Code(kind: .tooManySessions)
        /// The agent has as many transfers as it may.
        public static let tooManyTransfers = Code(kind: .tooManyTransfers)
        /// A disk lacks the space.
        public static let noSpace = Code(kind: .noSpace)
        /// The transfer is no download that has finished.
        public static let notFinished = Code(kind: .notFinished)
        /// The file of the transfer was taken before.
        public static let alreadyTaken = Code(kind: .alreadyTaken)
        /// A file is there already, and was not to be replaced.
        public static let fileExists = Code(kind: .fileExists)
        /// The transfer that was waited for has failed: see ``BackgroundTransferError/transfer``.
        public static let transferFailed = Code(kind: .transferFailed)
        /// The transfer that was waited for was cancelled.
        public static let transferCancelled = Code(kind: .transferCancelled)
        /// The agent refuses it for another reason, which the message says.
        public static let refused = Code(kind: .refused)
        /// The machine lacks what the library needs: threads, descriptors or memory.
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
    /// The transfer that failed or was cancelled, when that is the error.
    public let transfer: BackgroundTransfer?

    /// Whether another try may come to something else: an agent starts again.
    let isPassing: Bool

    init(_ code: Code, _ message: String, transfer: BackgroundTransfer? = nil, isPassing: Bool = false) {
        self.code = code
        self.message = message
        self.transfer = transfer
        self.isPassing = isPassing
    }

    /// The code and the message.
    public var description: String { "\(self.code): \(self.message)" }

    static let taskCancelled = BackgroundTransferError(.cancelled, "the task that waited was cancelled")
}

extension BackgroundTransferError.Code {
    /// - Parameter reason: as the agent writes it.
    init(reason: String, status: Int) {
        self =
            switch reason {
            case "BadSession": .badSession
            case "BadTransfer": .badTransfer
            case "BadPath": .badPath
            case "UnknownSession": .unknownSession
            case "UnknownTransfer": .unknownTransfer
            case "TooManySessions": .tooManySessions
            case "TooManyTransfers": .tooManyTransfers
            case "NoSpace": .noSpace
            case "NotFinished": .notFinished
            case "AlreadyTaken": .alreadyTaken
            case "FileExists": .fileExists
            default: status == 403 ? .notPermitted : .refused
            }
    }
}

/// An error of a background transfer, with its cause and its remedy.
///
/// Compare `code` to distinguish errors, and show `message` to people. The message contains no header of a transfer.
///
/// ```swift
/// do {
///     try await session.download(from: "https://example.com/film.mp4", to: "/srv/films/film.mp4")
/// } catch where error.code == .noAgent {
///     log("start the agent: \(error.message)")
/// }
/// ```
public struct BackgroundTransferError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error. Later versions may add kinds.
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
        /// No agent listens on the socket.
        public static let noAgent = Code(kind: .noAgent)
        /// The agent belongs to another user.
        public static let notPermitted = Code(kind: .notPermitted)
        /// The agent did not answer in time.
        public static let timedOut = Code(kind: .timedOut)
        /// The connection ended before the agent answered. The agent may have processed the request.
        public static let interrupted = Code(kind: .interrupted)
        /// The answer does not have the format of a transfers agent's answer.
        public static let badAnswer = Code(kind: .badAnswer)
        /// A setting of the session cannot be used; the message names it.
        public static let badSession = Code(kind: .badSession)
        /// A member of the request cannot be used; the message names it.
        public static let badTransfer = Code(kind: .badTransfer)
        /// A file cannot be moved to the requested path.
        public static let badPath = Code(kind: .badPath)
        /// The agent has no such session.
        public static let unknownSession = Code(kind: .unknownSession)
        /// The session has no such transfer.
        public static let unknownTransfer = Code(kind: .unknownTransfer)
        /// The agent has reached its maximum number of sessions.
        public static let tooManySessions = Code(kind: .tooManySessions)
        /// The agent has reached its maximum number of transfers.
        public static let tooManyTransfers = Code(kind: .tooManyTransfers)
        /// The disk is full.
        public static let noSpace = Code(kind: .noSpace)
        /// The transfer is not a finished download.
        public static let notFinished = Code(kind: .notFinished)
        /// The file of the transfer was already moved with ``BackgroundSession/take(_:to:replacing:)``.
        public static let alreadyTaken = Code(kind: .alreadyTaken)
        /// A file exists at the destination, and the call does not permit replacing it.
        public static let fileExists = Code(kind: .fileExists)
        /// The awaited transfer has failed: see ``BackgroundTransferError/transfer``.
        public static let transferFailed = Code(kind: .transferFailed)
        /// The awaited transfer was cancelled.
        public static let transferCancelled = Code(kind: .transferCancelled)
        /// The agent refused the request for another reason; the message says why.
        public static let refused = Code(kind: .refused)
        /// The machine lacks resources that the library needs: threads, descriptors or memory.
        public static let unavailable = Code(kind: .unavailable)
        /// The waiting task was cancelled.
        public static let cancelled = Code(kind: .cancelled)

        /// The name of the code.
        public var description: String { self.kind.rawValue }
    }

    /// The kind of error.
    public let code: Code
    /// A message for people: the cause and the remedy.
    public let message: String
    /// The transfer that failed or was cancelled, for the codes `transferFailed` and `transferCancelled`.
    public let transfer: BackgroundTransfer?

    /// True if the error is temporary, for example because the agent is restarting. A retry may then succeed.
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
    /// - `reason`: the reason in the agent's error answer, which is the name of the code with a capital first letter.
    init(reason: String, status: Int) {
        let kind = Kind(rawValue: reason.prefix(1).lowercased() + reason.dropFirst())
        self = kind.map { Self(kind: $0) } ?? (status == 403 ? .notPermitted : .refused)
    }
}

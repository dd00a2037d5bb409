/// Why an attempt at a transfer came to nothing.
package enum TransferFault: Hashable, Sendable {
    /// No connection, one that was cut, or a silent peer; in words.
    case connectionFailed(String)
    /// The answer ended, or stopped, after so many bytes of the file and before its end; in words. The total is -1 if
    /// the server did not say it.
    case answerCut(bytes: Int64, total: Int64, String)
    /// The server answered with a status that is no success.
    case status(Int, retryAfterSeconds: Int?)
    /// The server's certificate is not trusted; in words.
    case certificate(String)
    case tooManyRedirects(Int)
    case badChecksum(expected: String, found: String)
    case tooLarge(bytesMax: Int64)
    case noSpace(missingBytes: Int64)
    /// The space is there, and other running downloads have claimed it.
    case spaceClaimed(missingBytes: Int64)
    /// A URL, of the transfer or of a redirect, of another scheme than http and https.
    case forbiddenProtocol(String)
    case fileUnreadable(String)
    case fileUnwritable(String)
    /// The file changed while it was sent.
    case fileChanged(String)
    /// The server answered with success before it had been sent the whole file.
    case serverStoppedReading(sent: Int64, total: Int64)
    /// The answer has a content coding that was not requested.
    case unrequestedCoding(String)
    case wrongLength(String)
    /// The time for the whole transfer is over; what the last attempt came to, in words.
    case timedOut(String)
    /// The transfer cannot be told any more from what is stored of it; in words.
    case interrupted(String)

    /// The name that programs know it by.
    package var reason: String {
        switch self {
        case .connectionFailed, .answerCut: "ConnectionFailed"
        case .status: "HTTPStatus"
        case .certificate: "Certificate"
        case .tooManyRedirects: "TooManyRedirects"
        case .badChecksum: "BadChecksum"
        case .tooLarge: "TooLarge"
        case .noSpace, .spaceClaimed: "NoSpace"
        case .forbiddenProtocol: "ForbiddenProtocol"
        case .fileUnreadable: "FileUnreadable"
        case .fileUnwritable: "FileUnwritable"
        case .fileChanged: "FileChanged"
        case .serverStoppedReading: "ServerStoppedReading"
        case .unrequestedCoding: "UnrequestedCoding"
        case .wrongLength: "WrongLength"
        case .timedOut: "TimedOut"
        case .interrupted: "Interrupted"
        }
    }

    /// Every reason there is.
    package static let reasons = [
        "ConnectionFailed", "HTTPStatus", "Certificate", "TooManyRedirects", "BadChecksum", "TooLarge", "NoSpace",
        "ForbiddenProtocol", "FileUnreadable", "FileUnwritable", "FileChanged", "ServerStoppedReading",
        "UnrequestedCoding", "WrongLength", "TimedOut", "Interrupted",
    ]

    /// What happened and what to do about it.
    package var message: String {
        switch self {
        case .connectionFailed(let words): "The connection failed: \(words)."
        case .answerCut(let bytes, let total, let words):
            "The answer ended after \(bytes)\(total < 0 ? "" : " of \(total)") bytes: \(words)."
        case .status(let status, _): "The server answered \(status); see what the URL and its credentials are worth."
        case .certificate(let words):
            "The server's certificate is not trusted: \(words). Name its authority with --trust, or correct the URL."
        case .tooManyRedirects(let most): "The server redirected more than \(most) times; correct the URL."
        case .badChecksum(let expected, let found):
            "The SHA-256 of what came is \(found), not \(expected); ask whoever publishes it which is right."
        case .tooLarge(let most): "There is more than the \(most) bytes that are allowed; raise bytesMax."
        case .noSpace(let missing): "\(missing) bytes of space are missing; free them, and ask for the transfer again."
        case .spaceClaimed(let missing):
            "\(missing) bytes of space are missing while other downloads run; this one is tried again."
        case .forbiddenProtocol(let url): "\(url) is not of http or https; nothing else is spoken."
        case .fileUnreadable(let words): "The file to be sent cannot be read: \(words)."
        case .fileUnwritable(let words): "What comes cannot be written to the state folder: \(words)."
        case .fileChanged(let path):
            "\(path) changed while it was sent; add the transfer when the file is complete."
        case .serverStoppedReading(let sent, let total):
            "The server answered with success after it had been sent \(sent) of \(total) bytes; correct the server, or "
                + "set the session's acceptsEarlyAnswers if that is all it needs."
        case .unrequestedCoding(let coding):
            "The server sent content-encoding \(coding), which was not requested; correct the server, or add the "
                + "header accept-encoding to the transfer to store the encoded bytes."
        case .wrongLength(let words): "The server's lengths disagree: \(words)."
        case .timedOut(let words):
            "The time for the whole transfer (resourceTimeout) is over; the last attempt: \(words)"
        case .interrupted(let words): "The transfer cannot go on: \(words)."
        }
    }

    /// Whether another attempt would come to the same.
    package var isFinal: Bool {
        switch self {
        case .connectionFailed, .answerCut, .fileChanged, .spaceClaimed: false
        case .status(let status, _):
            switch status {
            case 408, 429, 500...599: false
            default: true
            }
        default: true
        }
    }

    /// How long the server asks to be left alone, in milliseconds.
    package var retryAfter: Int64 {
        switch self {
        case .status(_, let seconds): Int64(max(0, min(seconds ?? 0, 604_800))) * 1000
        default: 0
        }
    }

    /// Returns the number of times in a row that this fault has occurred.
    ///
    /// Only faults that become more conclusive with an identical repetition are counted; all others return 1.
    ///
    /// - Parameters:
    ///   - message: the message of the previous fault.
    ///   - count: the number that this function returned for the previous fault.
    package func repeats(after message: String?, _ count: Int) -> Int {
        switch self {
        case .answerCut, .fileChanged: message == self.message ? count + 1 : 1
        default: 1
        }
    }

    /// True if the fault may be a network that is not there.
    var isOfNetwork: Bool {
        switch self {
        case .connectionFailed, .answerCut: true
        default: false
        }
    }
}

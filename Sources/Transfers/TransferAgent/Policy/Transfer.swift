/// The state of one transfer, on which decisions depend. Its URL, headers and further data are stored elsewhere,
/// because memory must have space for a hundred thousand transfers.
@dynamicMemberLookup
package struct Transfer: Hashable, Sendable {
    package let id: TransferID
    /// The number of the transfer in the order of submission.
    package let sequence: Int64
    package let session: Int32
    /// The server as scheme, host and port.
    package let host: String
    package let kind: TransferKind
    /// The time of submission, in milliseconds of the agent's clock. All times of this type use this clock, which never
    /// jumps.
    package let createdAt: Int64
    /// The time at which the transfer fails if it has not ended.
    package private(set) var deadline: Int64
    /// True if the last attempt failed while the machine had no network.
    package private(set) var awaitsNetwork = false
    private var course: StoredState

    /// The part of a transfer that changes and is stored.
    package struct StoredState: Hashable, Sendable {
        package var state = TransferState.waiting
        /// The earliest time of the next attempt; 0 for no restriction.
        package var notBefore: Int64
        /// True if a failed attempt has set `notBefore`.
        package var isBackingOff = false
        /// The number of failed and completed attempts. Attempts that the agent stopped do not count.
        package var attempts: Int32 = 0
        /// The number of consecutive failed attempts. After an attempt with new bytes, counting restarts at 1.
        package var failures: Int32 = 0
        package var bytes: Int64 = 0
        /// The total number of bytes; -1 while unknown.
        package var total: Int64 = -1
        /// The last status from a server; 0 if there is none.
        package var status: Int32 = 0
        package var endedAt: Int64 = 0
        /// True if the finished file was moved to the caller's destination.
        package var isTaken = false

        /// The state in its stored form. No attempt survives a restart, so a running transfer is stored as waiting.
        fileprivate var atRest: StoredState {
            var storedState = self
            if self.state == .running { storedState.state = .waiting }
            return storedState
        }
    }

    package init(
        id: TransferID,
        sequence: Int64,
        session: Int32,
        host: String,
        kind: TransferKind,
        createdAt: Int64,
        deadline: Int64,
        notBefore: Int64
    ) {
        self.id = id
        self.sequence = sequence
        self.session = session
        self.host = host
        self.kind = kind
        self.createdAt = createdAt
        self.deadline = deadline
        self.course = StoredState(notBefore: notBefore)
    }

    package private(set) subscript<Value>(dynamicMember member: WritableKeyPath<StoredState, Value>) -> Value {
        get { self.course[keyPath: member] }
        set { self.course[keyPath: member] = newValue }
    }

    /// The changing part of the transfer in its stored form.
    package var storedState: StoredState { self.course.atRest }

    /// Restores the stored part after a restart of the agent.
    package mutating func restore(_ storedState: StoredState) { self.course = storedState.atRest }
}

// MARK: - Events

extension Transfer {
    /// - Returns: true if the attempt must run; false if the transfer is running or has ended.
    package mutating func attemptStarted() -> Bool {
        guard self.state == .waiting else { return false }
        self.state = .running
        self.mayBegin()
        return true
    }

    /// Records the progress: the answer's status and the transferred bytes.
    package mutating func progressed(bytes: Int64, total: Int64, status: Int32?) {
        guard self.state == .running else { return }
        self.bytes = bytes
        self.total = total
        if let status { self.status = status }
    }

    package enum AttemptFailedAction: Hashable, Sendable {
        case retry(at: Int64)
        case fail(TransferFault)
        case ignore
    }

    /// Handles a failed attempt.
    ///
    /// - `hasProgressed`: true if the attempt has stored new bytes. The backoff then starts again.
    /// - `repeats`: the number of consecutive occurrences of the same fault.
    /// - `isOffline`: true if the machine does not have a network to reach the server.
    package mutating func attemptFailed(
        _ fault: TransferFault,
        hasProgressed: Bool,
        repeats: Int = 1,
        isOffline: Bool = false,
        policy: RetryPolicy,
        now: Int64,
        using generator: inout some RandomNumberGenerator
    ) -> AttemptFailedAction {
        guard self.state == .running else { return .ignore }
        self.attempts += 1
        if case .status(let status, _) = fault { self.status = Int32(clamping: status) }
        var isFinal = fault.isFinal
        // It is pointless to send a file that keeps changing.
        if case .fileChanged = fault, repeats >= RetryPolicy.repeatsMax { isFinal = true }
        if isFinal || now >= self.deadline {
            self.end(.failed, now)
            return .fail(isFinal ? fault : .timedOut(fault.message))
        }
        self.failures = hasProgressed ? 1 : min(self.failures + 1, 1000)
        let wait = max(
            policy.wait(failures: Int(self.failures), repeats: repeats, using: &generator),
            fault.retryAfter
        )
        self.state = .waiting
        self.notBefore = min(now + wait, self.deadline)
        self.isBackingOff = true
        if fault.isOfNetwork { self.awaitsNetwork = isOffline }
        return .retry(at: self.notBefore)
    }

    /// Handles that the network is available again.
    ///
    /// - Returns: true if the transfer may begin now.
    package mutating func networkCame() -> Bool {
        guard self.state == .waiting, self.awaitsNetwork else { return false }
        self.mayBegin()
        self.failures = 0
        return true
    }

    /// Handles a step of the wall clock by `milliseconds`. A requested start time keeps its wall clock time. The
    /// deadline moves together with it.
    ///
    /// - Returns: true if the earliest start time has changed.
    package mutating func adjustForWallClockChange(by milliseconds: Int64, now: Int64) -> Bool {
        guard self.state == .waiting, !self.isBackingOff, self.notBefore > now else { return false }
        let other = max(now, self.notBefore &- milliseconds)
        self.deadline += other - self.notBefore
        self.notBefore = other
        return true
    }

    /// Handles that the agent has stopped an attempt. The attempt does not count and does not cause a backoff.
    ///
    /// - Returns: true if the transfer waits now; false if it was not running.
    package mutating func attemptStopped() -> Bool {
        guard self.state == .running else { return false }
        self.state = .waiting
        return true
    }

    /// Records that all bytes are transferred and durable. Ignores a transfer that is not running.
    package mutating func attemptSucceeded(bytes: Int64, status: Int32, now: Int64) {
        guard self.state == .running else { return }
        self.attempts += 1
        self.failures = 0
        self.bytes = bytes
        self.total = bytes
        self.status = status
        self.end(.finished, now)
    }

    /// - Returns: true if the transfer is cancelled, and an attempt must be stopped; false if it had already ended.
    package mutating func cancelled(now: Int64) -> Bool {
        guard !self.state.hasEnded else { return false }
        self.end(.cancelled, now)
        return true
    }

    /// - Returns: true if the transfer has failed, and an attempt must be stopped; false if it had already ended or the
    ///   deadline has not passed.
    package mutating func deadlinePassed(now: Int64) -> Bool {
        guard now >= self.deadline, !self.state.hasEnded else { return false }
        self.end(.failed, now)
        return true
    }

    /// Records that a caller moves or has moved the finished file to its destination.
    ///
    /// - Returns: false unless the transfer is a finished download whose file was not moved before.
    package mutating func markTaken() -> Bool {
        guard self.state == .finished, self.kind == .download, !self.isTaken else { return false }
        self.isTaken = true
        return true
    }

    private mutating func mayBegin() {
        self.notBefore = 0
        self.isBackingOff = false
        self.awaitsNetwork = false
    }

    private mutating func end(_ state: TransferState, _ now: Int64) {
        self.state = state
        self.endedAt = now
        self.mayBegin()
    }
}

/// The identifier of a transfer: 128 unpredictable bits, written as 32 hexadecimal digits.
package struct TransferID: Hashable, BitwiseCopyable, Sendable, CustomStringConvertible {
    package let first: UInt64
    package let second: UInt64

    package init(_ bits: (UInt64, UInt64)) {
        self.first = bits.0
        self.second = bits.1
    }

    /// - Returns: nil unless the text consists of 32 lowercase hexadecimal digits.
    package init?(_ text: some StringProtocol) {
        guard text.utf8.count == 32, text.utf8.allSatisfy({ $0 &- 0x30 < 10 || $0 &- 0x61 < 6 }),
            let first = UInt64(text.prefix(16), radix: 16), let second = UInt64(text.suffix(16), radix: 16)
        else { return nil }
        self.init((first, second))
    }

    package var description: String { Self.digits(self.first) + Self.digits(self.second) }

    private static func digits(_ word: UInt64) -> String {
        let text = String(word, radix: 16)
        return String(repeating: "0", count: 16 - text.count) + text
    }
}

/// The reason why an attempt at a transfer failed.
package enum TransferFault: Error, Hashable, Sendable {
    /// The connection failed, was interrupted, or transferred no bytes for too long. The text is a description.
    case connectionFailed(String)
    /// The answer ended early, after this many bytes of the file. `total` is -1 if the server did not announce the
    /// length. The text is a description.
    case answerCut(bytes: Int64, total: Int64, String)
    /// The server answered with a status other than success.
    case status(Int, retryAfterSeconds: Int?)
    /// The server's certificate is not trusted. The text is a description.
    case certificate(String)
    case tooManyRedirects(Int)
    case badChecksum(expected: String, found: String)
    case tooLarge(bytesMax: Int64)
    case noSpace(missingBytes: Int64)
    /// There is enough free space, but other running downloads have claimed it.
    case spaceClaimed(missingBytes: Int64)
    /// The URL of the transfer or of a redirect has another scheme than http and https.
    case forbiddenProtocol(String)
    case fileUnreadable(String)
    /// The file to be sent does not respond, or those of too many earlier attempts do not. The text is a description.
    case fileUnresponsive(String)
    case fileUnwritable(String)
    /// The file changed while it was being sent.
    case fileChanged(String)
    /// The server answered with success before it had read the whole file.
    case serverStoppedReading(sent: Int64, total: Int64)
    /// The answer has a content coding that was not requested.
    case unrequestedCoding(String)
    case wrongLength(String)
    /// The transfer has reached its deadline. The text is the result of the last attempt.
    case timedOut(String)
    /// The stored data of the transfer is unreadable. The text is a description.
    case interrupted(String)

    /// The fault of an upload whose file does not respond.
    package static func unresponsive(_ file: String?) -> Self {
        .fileUnresponsive("\(file ?? "") does not respond; check that its file system is available")
    }

    /// The reason as one word, for programs.
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
        case .fileUnreadable, .fileUnresponsive: "FileUnreadable"
        case .fileUnwritable: "FileUnwritable"
        case .fileChanged: "FileChanged"
        case .serverStoppedReading: "ServerStoppedReading"
        case .unrequestedCoding: "UnrequestedCoding"
        case .wrongLength: "WrongLength"
        case .timedOut: "TimedOut"
        case .interrupted: "Interrupted"
        }
    }

    /// All reasons.
    package static let reasons = [
        "ConnectionFailed", "HTTPStatus", "Certificate", "TooManyRedirects", "BadChecksum", "TooLarge", "NoSpace",
        "ForbiddenProtocol", "FileUnreadable", "FileUnwritable", "FileChanged", "ServerStoppedReading",
        "UnrequestedCoding", "WrongLength", "TimedOut", "Interrupted",
    ]

    /// The cause and the remedy.
    package var message: String {
        switch self {
        case .connectionFailed(let words): "The connection failed: \(words)."
        case .answerCut(let bytes, let total, let words):
            "The answer ended after \(bytes)\(total < 0 ? "" : " of \(total)") bytes: \(words)."
        case .status(let status, _): "The server answered \(status); see what the URL and its credentials are worth."
        case .certificate(let words):
            "The server's certificate is not trusted: \(words). Name its authority with --trust, or correct the URL."
        case .tooManyRedirects(let maximum): "The server redirected more than \(maximum) times; correct the URL."
        case .badChecksum(let expected, let found):
            "The SHA-256 of the received bytes is \(found), not \(expected); ask the publisher which is right."
        case .tooLarge(let maximum):
            "There is more than the \(maximum) bytes that are allowed; raise bytesMax, or limits.fileBytes of the "
                + "agent."
        case .noSpace(let missing):
            "\(missing) bytes of space are missing; free them, or raise limits.stateBytes of the agent, and ask for "
                + "the transfer again."
        case .spaceClaimed(let missing):
            "\(missing) bytes of space are missing while other downloads run; this one is tried again."
        case .forbiddenProtocol(let url): "\(url) is not of http or https; nothing else is spoken."
        case .fileUnreadable(let words), .fileUnresponsive(let words):
            "The file to be sent cannot be read: \(words)."
        case .fileUnwritable(let words): "The received bytes cannot be written to the state folder: \(words)."
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
        case .interrupted(let words): "The transfer cannot continue: \(words)."
        }
    }

    /// True if any other attempt would also fail.
    package var isFinal: Bool {
        switch self {
        case .connectionFailed, .answerCut, .fileChanged, .fileUnresponsive, .spaceClaimed: false
        case .status(let status, _):
            switch status {
            case 408, 429, 500...599: false
            default: true
            }
        default: true
        }
    }

    /// The minimum wait that the server has requested, in milliseconds; 0 if it requested none.
    package var retryAfter: Int64 {
        switch self {
        case .status(_, let seconds): Int64(max(0, min(seconds ?? 0, 604_800))) * 1000
        default: 0
        }
    }

    /// Returns the number of consecutive occurrences of this fault.
    ///
    /// Counts only faults that point to a problem of the server or the file if they recur identically. Returns 1 for
    /// other faults.
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

    /// True if the lack of a network may have caused the fault.
    var isOfNetwork: Bool {
        switch self {
        case .connectionFailed, .answerCut: true
        default: false
        }
    }
}

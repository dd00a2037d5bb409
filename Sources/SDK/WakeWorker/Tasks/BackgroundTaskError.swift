import Wire

/// An error of submitting or cancelling a request of a background task, with its cause and its remedy.
///
/// Catch a code or compare `code` to distinguish errors, and show `message` to people.
///
/// ```swift
/// do {
///     try await scheduler.submit(.processing("com.example.app.db-cleanup"))
/// } catch BackgroundTaskError.tooManyPendingTaskRequests {
///     try await scheduler.cancelAll()
/// }
/// ```
public struct BackgroundTaskError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error. Later versions may add kinds.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Kind: String {
            case notPermitted, unavailable, notForeground, tooManyPendingTaskRequests, immediateRunIneligible
            case badTaskRequest, tooManySessions, noDevice, unknownDevice, unregistered, tooManyRequests, shutdown
            case failed
        }

        private let kind: Kind

        /// The topic's configuration does not permit the identifier.
        public static let notPermitted = Code(kind: .notPermitted)
        /// The device does not permit background refresh.
        public static let unavailable = Code(kind: .unavailable)
        /// The device is not in use, but a continued task requires it.
        public static let notForeground = Code(kind: .notForeground)
        /// The device already has the maximum number of pending requests of this kind.
        public static let tooManyPendingTaskRequests = Code(kind: .tooManyPendingTaskRequests)
        /// The strategy of the task is `fail`, and the task cannot be launched now.
        public static let immediateRunIneligible = Code(kind: .immediateRunIneligible)
        /// A field of the request is invalid; the message names it.
        public static let badTaskRequest = Code(kind: .badTaskRequest)
        /// The device already has eight other sessions with pending transfers.
        public static let tooManySessions = Code(kind: .tooManySessions)
        /// The worker has no device or several devices. Use ``WakeWorker/scheduler(for:)``.
        public static let noDevice = Code(kind: .noDevice)
        /// The gateway does not know the device.
        public static let unknownDevice = Code(kind: .unknownDevice)
        /// The device was removed.
        public static let unregistered = Code(kind: .unregistered)
        /// A rate limit or size limit of the gateway was reached: see ``BackgroundTaskError/retryAfter``.
        public static let tooManyRequests = Code(kind: .tooManyRequests)
        /// The gateway is shutting down.
        public static let shutdown = Code(kind: .shutdown)
        /// The error is not specific to background tasks: see ``BackgroundTaskError/cause``.
        public static let failed = Code(kind: .failed)

        /// The name of the code.
        public var description: String { self.kind.rawValue }

        /// Returns true if an error has this code. It makes `catch BackgroundTaskError.notPermitted` possible.
        ///
        /// - Parameters:
        ///   - code: the code.
        ///   - error: the error, of any type.
        public static func ~= (code: Code, error: any Error) -> Bool { (error as? BackgroundTaskError)?.code == code }
    }

    /// The kind of error.
    public let code: Code
    /// A message for people: the cause and the remedy.
    public let message: String
    /// The minimum wait that the gateway requests; nil if it requests none.
    public let retryAfter: Duration?
    /// The error of the request to the gateway; nil if no request was sent.
    public let cause: WakeWorkerError?

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
        self.retryAfter = nil
        self.cause = nil
    }

    init(_ error: WakeWorkerError) {
        self.code = error.refusal.map { Code($0) } ?? .failed
        self.message = error.message
        self.retryAfter = error.refusal?.retryAfter.map { .seconds($0) }
        self.cause = error
    }

    /// The code and the message.
    public var description: String { "\(self.code): \(self.message)" }

    /// - Throws: `badTaskRequest` if the text is not an identifier. The message names the field.
    static func checkIdentifier(_ text: String, _ field: String) throws(BackgroundTaskError) {
        guard !BackgroundTaskName.isIdentifier(text) else { return }
        throw BackgroundTaskError(
            .badTaskRequest,
            "\(field) is \"\(text)\"; write 1 to 255 letters, digits, periods, hyphens and underscores"
        )
    }
}

/// The codes as members of the error. `catch` clauses can name them like the codes of `BGTaskScheduler.Error` on iOS.
extension BackgroundTaskError {
    /// The code ``Code/notPermitted``.
    public static var notPermitted: Code { .notPermitted }
    /// The code ``Code/unavailable``.
    public static var unavailable: Code { .unavailable }
    /// The code ``Code/notForeground``.
    public static var notForeground: Code { .notForeground }
    /// The code ``Code/tooManyPendingTaskRequests``.
    public static var tooManyPendingTaskRequests: Code { .tooManyPendingTaskRequests }
    /// The code ``Code/immediateRunIneligible``.
    public static var immediateRunIneligible: Code { .immediateRunIneligible }
    /// The code ``Code/badTaskRequest``.
    public static var badTaskRequest: Code { .badTaskRequest }
    /// The code ``Code/tooManySessions``.
    public static var tooManySessions: Code { .tooManySessions }
    /// The code ``Code/noDevice``.
    public static var noDevice: Code { .noDevice }
    /// The code ``Code/unknownDevice``.
    public static var unknownDevice: Code { .unknownDevice }
    /// The code ``Code/unregistered``.
    public static var unregistered: Code { .unregistered }
    /// The code ``Code/tooManyRequests``.
    public static var tooManyRequests: Code { .tooManyRequests }
    /// The code ``Code/shutdown``.
    public static var shutdown: Code { .shutdown }
    /// The code ``Code/failed``.
    public static var failed: Code { .failed }
}

extension BackgroundTaskError.Code {
    /// - Parameter refusal: the gateway's answer. Its reason is the name of the code with a capital first letter.
    init(_ refusal: GatewayRefusal) {
        let kind = Kind(rawValue: refusal.reason.prefix(1).lowercased() + refusal.reason.dropFirst())
        self = kind.map { Self(kind: $0) } ?? (refusal.status == 429 ? .tooManyRequests : .failed)
    }
}

/// The identifier of a background task, the name of a session, or a pattern for either.
package struct BackgroundTaskName: Hashable, Sendable {
    /// The maximum length, in characters.
    package static let lengthMax = 255

    package let text: String
    /// True for the name of a session. Tasks and sessions have separate namespaces.
    package let isSession: Bool

    package init(_ text: String, isSession: Bool) {
        self.text = text
        self.isSession = isSession
    }

    /// True if a handler can be registered for this name, which must be an identifier or a pattern.
    package var isUsable: Bool {
        Self.isIdentifier(self.text.hasSuffix(".*") ? String(self.text.dropLast(2)) : self.text)
            && self.text.utf8.count <= Self.lengthMax
    }

    /// Returns true if the text is 1 to 255 letters, digits, periods, hyphens and underscores.
    package static func isIdentifier(_ text: String) -> Bool {
        1...self.lengthMax ~= text.utf8.count && text.utf8.allSatisfy { $0.isLetterOrDigit(or: ".-_") }
    }

    /// The pattern that matches this name and its siblings, such as `com.example.export.*` for
    /// `com.example.export.film`.
    var pattern: String {
        guard let stop = self.text.lastIndex(of: "."), stop > self.text.startIndex else { return "\(self.text).*" }
        return "\(self.text[..<stop]).*"
    }

    /// The names with which a handler for this name may be registered, best match first.
    package var candidates: [BackgroundTaskName] {
        var candidates = [self]
        // The asterisk of a pattern stands for at least one character, so the last character is ignored.
        var prefix = self.text.dropLast()
        while let stop = prefix.lastIndex(of: ".") {
            prefix = prefix[..<stop]
            guard !prefix.isEmpty else { break }
            candidates.append(BackgroundTaskName("\(prefix).*", isSession: self.isSession))
        }
        return candidates
    }
}

/// Why a request of a background task was not submitted, or not cancelled, and what to do about it.
///
/// Catch a code, or compare `code`, to tell errors apart; show `message` to people.
///
/// ```swift
/// do {
///     try await scheduler.submit(.processing("com.example.app.db-cleanup"))
/// } catch BackgroundTaskError.tooManyPendingTaskRequests {
///     try await scheduler.cancelAll()
/// }
/// ```
public struct BackgroundTaskError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error. More kinds may come, so compare with those you know.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Kind: String {
            case notPermitted, unavailable, notForeground, tooManyPendingTaskRequests, immediateRunIneligible
            case badTaskRequest, tooManySessions, noDevice, unknownDevice, unregistered, tooManyRequests, shutdown
            case failed
        }

        private let kind: Kind

        /// The topic's configuration does not permit the identifier.
        public static let notPermitted = Code(kind: .notPermitted)
        /// The device does not allow background refresh.
        public static let unavailable = Code(kind: .unavailable)
        /// The device is not in use, as it must be for a task that a person starts.
        public static let notForeground = Code(kind: .notForeground)
        /// As many requests of the kind wait as may.
        public static let tooManyPendingTaskRequests = Code(kind: .tooManyPendingTaskRequests)
        /// A task that is to launch at once or never cannot launch now.
        public static let immediateRunIneligible = Code(kind: .immediateRunIneligible)
        /// A field of the request cannot be used; the message names it.
        public static let badTaskRequest = Code(kind: .badTaskRequest)
        /// Eight sessions of the device wait already.
        public static let tooManySessions = Code(kind: .tooManySessions)
        /// The worker stands for no device, or for several: ``WakeWorker/scheduler(for:)`` names one.
        public static let noDevice = Code(kind: .noDevice)
        /// The gateway does not know the device.
        public static let unknownDevice = Code(kind: .unknownDevice)
        /// The device was removed.
        public static let unregistered = Code(kind: .unregistered)
        /// A limit of the gateway is reached: see ``BackgroundTaskError/retryAfter``.
        public static let tooManyRequests = Code(kind: .tooManyRequests)
        /// The gateway is shutting down.
        public static let shutdown = Code(kind: .shutdown)
        /// What went wrong is no matter of background tasks: see ``BackgroundTaskError/cause``.
        public static let failed = Code(kind: .failed)

        /// The name of the code.
        public var description: String { self.kind.rawValue }

        /// Returns true if an error has this code, for `catch BackgroundTaskError.notPermitted`.
        ///
        /// - Parameters:
        ///   - code: the code.
        ///   - error: the error, of any type.
        public static func ~= (code: Code, error: any Error) -> Bool { (error as? BackgroundTaskError)?.code == code }
    }

    /// What kind of error it is.
    public let code: Code
    /// What happened, and the remedy.
    public let message: String
    /// How long the gateway wants to be left alone; nil when it does not say so.
    public let retryAfter: Duration?
    /// What kept the request from the gateway, or what the gateway answered; nil when nothing was sent.
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

    /// - Throws: `badTaskRequest`, with the field, for what is no identifier.
    static func checkIdentifier(_ text: String, _ field: String) throws(BackgroundTaskError) {
        guard !BackgroundTaskName.isIdentifier(text) else { return }
        throw BackgroundTaskError(
            .badTaskRequest,
            "\(field) is \"\(text)\"; write 1 to 255 letters, digits, full stops, hyphens and underscores"
        )
    }
}

/// The codes under the names that `catch` takes, as those of `BGTaskScheduler.Error` on iOS.
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
    init(_ refusal: GatewayRefusal) {
        self =
            switch refusal.reason {
            case "NotPermitted": .notPermitted
            case "Unavailable": .unavailable
            case "NotForeground": .notForeground
            case "TooManyPendingTaskRequests": .tooManyPendingTaskRequests
            case "ImmediateRunIneligible": .immediateRunIneligible
            case "BadTaskRequest": .badTaskRequest
            case "TooManySessions": .tooManySessions
            case "UnknownDevice": .unknownDevice
            case "Unregistered": .unregistered
            case "Shutdown": .shutdown
            default: refusal.status == 429 ? .tooManyRequests : .failed
            }
    }
}

/// The identifier of background tasks or the name of a session, or a pattern for some.
package struct BackgroundTaskName: Hashable, Sendable {
    /// The longest, in characters.
    package static let lengthMax = 255

    package let text: String
    /// Whether it is of sessions; tasks and sessions of one name are two things.
    package let isSession: Bool

    package init(_ text: String, isSession: Bool) {
        self.text = text
        self.isSession = isSession
    }

    /// Whether it can be registered: it is an identifier, or one with `.*` after it.
    package var isUsable: Bool {
        Self.isIdentifier(self.text.hasSuffix(".*") ? String(self.text.dropLast(2)) : self.text)
            && self.text.utf8.count <= Self.lengthMax
    }

    /// Whether it is 1 to 255 letters, digits, full stops, hyphens and underscores.
    package static func isIdentifier(_ text: String) -> Bool {
        1...self.lengthMax ~= text.utf8.count
            && text.utf8.allSatisfy { ($0 | 0x20) &- 0x61 < 26 || $0 &- 0x30 < 10 || ".-_".utf8.contains($0) }
    }

    /// The pattern that stands for this name and its neighbors: `com.example.export.*` for `com.example.export.film`.
    var pattern: String {
        guard let stop = self.text.lastIndex(of: "."), stop > self.text.startIndex else { return "\(self.text).*" }
        return "\(self.text[..<stop]).*"
    }

    /// The names under which a handler for this one may be registered, the closest first.
    package var candidates: [BackgroundTaskName] {
        var candidates = [self]
        // A pattern stands for at least one character after its full stop.
        var prefix = self.text.dropLast()
        while let stop = prefix.lastIndex(of: ".") {
            prefix = prefix[..<stop]
            guard !prefix.isEmpty else { break }
            candidates.append(BackgroundTaskName("\(prefix).*", isSession: self.isSession))
        }
        return candidates
    }
}

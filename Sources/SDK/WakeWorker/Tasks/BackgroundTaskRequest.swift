public import FoundationEssentials
package import Wire

/// A wish that a background task be launched once: see ``BackgroundTaskScheduler/submit(_:)``.
///
/// ```swift
/// try await scheduler.submit(.processing("com.example.app.db-cleanup", requiresExternalPower: true))
/// ```
public struct BackgroundTaskRequest: Hashable, Sendable {
    /// The kind.
    public let kind: BackgroundTaskKind
    /// The identifier: 1 to 255 letters, digits, full stops, hyphens and underscores.
    public let identifier: String
    /// The earliest moment at which it may launch; nil for the moment of its submission.
    public var earliestBegin: Date?
    /// Whether the device must have a network.
    public var requiresNetworkConnectivity = false
    /// Whether the device must be charging.
    public var requiresExternalPower = false
    /// What a person sees of a continued task, before its handler says something else; 256 bytes at most.
    public var title: String?
    /// What a person sees below the title; 256 bytes at most.
    public var subtitle: String?
    /// What becomes of a continued task that cannot launch at once.
    public var strategy = SubmissionStrategy.queue
    /// What the worker's machine must have for a continued task.
    public var requiredResources: BackgroundTaskResources = []

    /// What becomes of a continued task that cannot launch at once.
    public enum SubmissionStrategy: String, Hashable, Sendable, CaseIterable {
        /// The task waits for its turn.
        case queue
        /// The task is refused, with `immediateRunIneligible`.
        case fail
    }

    /// A request for a short task, such as fetching what is new. One waits on a device at most.
    ///
    /// - Parameters:
    ///   - identifier: the identifier that its handler is registered for.
    ///   - earliestBegin: the earliest moment at which it may launch; nil for the moment of its submission.
    public static func appRefresh(_ identifier: String, earliestBegin: Date? = nil) -> BackgroundTaskRequest {
        BackgroundTaskRequest(kind: .appRefresh, identifier: identifier, earliestBegin: earliestBegin)
    }

    /// A request for a task of minutes, for when the device is idle. Ten wait on a device at most.
    ///
    /// - Parameters:
    ///   - identifier: the identifier that its handler is registered for.
    ///   - requiresNetworkConnectivity: whether the device must have a network, at its launch and while it runs.
    ///   - requiresExternalPower: whether the device must be charging, at its launch and while it runs.
    ///   - earliestBegin: the earliest moment at which it may launch; nil for the moment of its submission.
    public static func processing(
        _ identifier: String,
        requiresNetworkConnectivity: Bool = false,
        requiresExternalPower: Bool = false,
        earliestBegin: Date? = nil
    ) -> BackgroundTaskRequest {
        BackgroundTaskRequest(
            kind: .processing,
            identifier: identifier,
            earliestBegin: earliestBegin,
            requiresNetworkConnectivity: requiresNetworkConnectivity,
            requiresExternalPower: requiresExternalPower
        )
    }

    /// A request for a task that a person started and waits for, while the device is in use. It launches at once, or
    /// when continued tasks before it have ended, and has time as long as it makes progress. Ten wait on a device at
    /// most.
    ///
    /// - Parameters:
    ///   - identifier: the identifier that its handler is registered for.
    ///   - title: what a person sees of it; 256 bytes at most.
    ///   - subtitle: what a person sees below the title; 256 bytes at most.
    ///   - strategy: what becomes of it when it cannot launch at once.
    ///   - requiredResources: what the worker's machine must have: ``WakeWorker/supportedResources()`` says what there
    ///     is.
    ///
    /// ```swift
    /// try await scheduler.submit(.continued("com.example.app.export.film", title: "Exporting", strategy: .fail))
    /// ```
    public static func continued(
        _ identifier: String,
        title: String? = nil,
        subtitle: String? = nil,
        strategy: SubmissionStrategy = .queue,
        requiredResources: BackgroundTaskResources = []
    ) -> BackgroundTaskRequest {
        BackgroundTaskRequest(
            kind: .continued,
            identifier: identifier,
            title: title,
            subtitle: subtitle,
            strategy: strategy,
            requiredResources: requiredResources
        )
    }

    /// The body of a submission.
    ///
    /// - Throws: `badTaskRequest`, with the field that cannot be sent.
    package func json() throws(BackgroundTaskError) -> [UInt8] {
        try BackgroundTaskError.checkIdentifier(self.identifier, "identifier")
        var members = ["\"identifier\":\"\(self.identifier)\"", "\"kind\":\"\(self.kind.rawValue)\""]
        if let earliestBegin = self.earliestBegin {
            guard let milliseconds = earliestBegin.millisecondsSince1970 else {
                throw BackgroundTaskError(.badTaskRequest, "earliestBegin is not a time from 1970 to the year 9999")
            }
            members.append("\"earliestBegin\":\(milliseconds)")
        }
        if self.requiresNetworkConnectivity { members.append("\"requiresNetworkConnectivity\":true") }
        if self.requiresExternalPower { members.append("\"requiresExternalPower\":true") }
        for (name, text) in [("title", self.title), ("subtitle", self.subtitle)] {
            guard let text else { continue }
            guard text.utf8.count <= TaskReporting.textBytesMax else {
                let message = "\(name) has \(text.utf8.count) bytes; it has \(TaskReporting.textBytesMax) at most"
                throw BackgroundTaskError(.badTaskRequest, message)
            }
            members.append("\"\(name)\":\(JSONText.quoted(text))")
        }
        if self.strategy != .queue { members.append("\"strategy\":\"\(self.strategy.rawValue)\"") }
        let resources = self.requiredResources.names.map { "\"\($0)\"" }.joined(separator: ",")
        if !resources.isEmpty { members.append("\"resources\":[\(resources)]") }
        return Array("{\(members.joined(separator: ","))}".utf8)
    }
}

/// What became of a request that was submitted.
public struct BackgroundTaskSubmission: Hashable, Sendable {
    /// What the gateway did with a request. More cases may come; give a `switch` a `default`.
    public enum Disposition: String, Hashable, Sendable, CaseIterable {
        /// The request was launched at once.
        case launched
        /// The request waits.
        case scheduled
        /// The request waits, in place of an earlier one of its identifier.
        case replaced
    }

    /// The request's identifier.
    public let identifier: String
    /// What the gateway did with it.
    public let disposition: Disposition
    /// When it may launch at the earliest; nil while something holds it, and when it was launched.
    public let eligibleAt: Date?
    /// What holds it, such as `active` or `worker`; nil when nothing does.
    public let held: String?

    /// A submission that no gateway took.
    package init(identifier: String, disposition: Disposition) {
        self.identifier = identifier
        self.disposition = disposition
        self.eligibleAt = nil
        self.held = nil
    }

    /// Reads the gateway's answer; nil when it cannot be read.
    package init?(_ object: JSONValue) {
        guard let identifier = object["identifier"]?.text,
            let disposition = object["disposition"]?.text.flatMap({ Disposition(rawValue: $0) })
        else { return nil }
        self.identifier = identifier
        self.disposition = disposition
        self.eligibleAt = object["eligibleAt"]?.integer.map { Date(millisecondsSince1970: $0) }
        self.held = object["held"]?.text
    }
}

/// A request that waits for its launch: see ``BackgroundTaskScheduler/pendingRequests()``.
public struct PendingTaskRequest: Hashable, Sendable {
    /// The request's identifier.
    public let identifier: String
    /// The kind.
    public let kind: BackgroundTaskKind
    /// When it was submitted, by the gateway's clock.
    public let submittedAt: Date
    /// The earliest moment at which it may launch, as it was submitted; nil when it named none.
    public let earliestBegin: Date?
    /// Whether the device must have a network.
    public let requiresNetworkConnectivity: Bool
    /// Whether the device must be charging.
    public let requiresExternalPower: Bool
    /// How often it was launched: more than 0 when a launch was lost.
    public let attemptCount: Int
    /// When it may launch at the earliest; nil while something holds it.
    public let eligibleAt: Date?
    /// What holds it, such as `active` or `worker`; nil when nothing does.
    public let held: String?
    /// One sentence that says why it waits.
    public let why: String

    /// A request that waits at no gateway.
    package init(_ request: BackgroundTaskRequest, submittedAt: Date) {
        self.identifier = request.identifier
        self.kind = request.kind
        self.submittedAt = submittedAt
        self.earliestBegin = request.earliestBegin
        self.requiresNetworkConnectivity = request.requiresNetworkConnectivity
        self.requiresExternalPower = request.requiresExternalPower
        self.attemptCount = 0
        self.eligibleAt = nil
        self.held = nil
        self.why = ""
    }

    /// Reads one of the gateway's answer; nil when it cannot be read, or is of a kind that is not known.
    package init?(_ object: JSONValue) {
        guard let identifier = object["identifier"]?.text,
            let kind = object["kind"]?.text.flatMap({ BackgroundTaskKind(rawValue: $0) })
        else { return nil }
        self.identifier = identifier
        self.kind = kind
        self.submittedAt = Date(millisecondsSince1970: object["submittedAt"]?.integer ?? 0)
        self.earliestBegin = object["earliestBegin"]?.integer.map { Date(millisecondsSince1970: $0) }
        self.requiresNetworkConnectivity = object["requiresNetworkConnectivity"]?.bool ?? false
        self.requiresExternalPower = object["requiresExternalPower"]?.bool ?? false
        self.attemptCount = Int(clamping: object["attempts"]?.integer ?? 0)
        self.eligibleAt = object["eligibleAt"]?.integer.map { Date(millisecondsSince1970: $0) }
        self.held = object["held"]?.text
        self.why = object["why"]?.text ?? ""
    }
}

extension Duration {
    /// So many minutes.
    ///
    /// - Parameter minutes: how many.
    public static func minutes(_ minutes: Int) -> Duration { .seconds(60) * minutes }

    /// So many hours.
    ///
    /// - Parameter hours: how many.
    public static func hours(_ hours: Int) -> Duration { .seconds(3600) * hours }
}

extension Date {
    /// The moment that comes so long after another.
    ///
    /// - Parameters:
    ///   - date: a moment.
    ///   - duration: how long after it; before it when it is negative.
    public static func + (date: Date, duration: Duration) -> Date {
        let (seconds, attoseconds) = duration.components
        return date.addingTimeInterval(Double(seconds) + Double(attoseconds) / 1e18)
    }

    /// Rounded to the nearest; nil for a moment before 1970 or after the year 9999.
    var millisecondsSince1970: Int64? {
        let milliseconds = (self.timeIntervalSince1970 * 1000).rounded()
        guard (0...Double(WakeMessage.instantMax)).contains(milliseconds) else { return nil }
        return Int64(milliseconds)
    }

    init(millisecondsSince1970 milliseconds: Int64) {
        self.init(timeIntervalSince1970: Double(milliseconds) / 1000)
    }
}

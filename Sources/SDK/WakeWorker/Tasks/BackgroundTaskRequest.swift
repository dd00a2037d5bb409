public import FoundationEssentials
package import Wire

/// A request to launch a background task once: see ``BackgroundTaskScheduler/submit(_:)``.
///
/// ```swift
/// try await scheduler.submit(.processing("com.example.app.db-cleanup", requiresExternalPower: true))
/// ```
public struct BackgroundTaskRequest: Hashable, Sendable {
    /// The kind of the task.
    public let kind: BackgroundTaskKind
    /// The identifier: 1 to 255 letters, digits, periods, hyphens and underscores.
    public let identifier: String
    /// The earliest launch time; nil for the time of submission.
    public var earliestBegin: Date?
    /// True if the device must have a network connection.
    public var requiresNetworkConnectivity = false
    /// True if the device must be charging.
    public var requiresExternalPower = false
    /// The initial title of a continued task, which a person sees until the handler changes it; at most 256 bytes.
    public var title: String?
    /// The initial text that a person sees below the title; at most 256 bytes.
    public var subtitle: String?
    /// The handling of a continued task that cannot be launched immediately.
    public var strategy = SubmissionStrategy.queue
    /// The resources that a continued task requires of the worker's machine.
    public var requiredResources: BackgroundTaskResources = []

    /// The handling of a continued task that cannot be launched immediately.
    public enum SubmissionStrategy: String, Hashable, Sendable, CaseIterable {
        /// The task waits until it can be launched.
        case queue
        /// The request is refused with `immediateRunIneligible`.
        case fail
    }

    /// Creates a request for a short task, such as fetching new data. A device may have at most one pending request of
    /// this kind.
    ///
    /// - Parameters:
    ///   - identifier: the identifier with which the handler is registered.
    ///   - earliestBegin: the earliest launch time; nil for the time of submission.
    public static func appRefresh(_ identifier: String, earliestBegin: Date? = nil) -> BackgroundTaskRequest {
        BackgroundTaskRequest(kind: .appRefresh, identifier: identifier, earliestBegin: earliestBegin)
    }

    /// Creates a request for a task that takes minutes and runs while the device is idle. A device may have at most ten
    /// pending requests of this kind.
    ///
    /// - Parameters:
    ///   - identifier: the identifier with which the handler is registered.
    ///   - requiresNetworkConnectivity: true if the device must have a network connection at launch and while the task
    ///     runs.
    ///   - requiresExternalPower: true if the device must be charging at launch and while the task runs.
    ///   - earliestBegin: the earliest launch time; nil for the time of submission.
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

    /// Creates a request for a task that a person started and waits for, while the device is in use. The task launches
    /// immediately, or when earlier continued tasks have ended. It may run as long as it makes progress. A device may
    /// have at most ten pending requests of this kind.
    ///
    /// - Parameters:
    ///   - identifier: the identifier with which the handler is registered.
    ///   - title: the title that a person sees; at most 256 bytes.
    ///   - subtitle: the text that a person sees below the title; at most 256 bytes.
    ///   - strategy: the handling of a task that cannot be launched immediately.
    ///   - requiredResources: the resources that the worker's machine must have: see
    ///     ``WakeWorker/supportedResources()``.
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

    /// Returns the JSON body of a submission.
    ///
    /// - Throws: `badTaskRequest` if a field is invalid. The message names the field.
    package func json() throws(BackgroundTaskError) -> [UInt8] {
        try BackgroundTaskError.checkIdentifier(self.identifier, "identifier")
        let earliestBegin = self.earliestBegin?.millisecondsSince1970
        guard earliestBegin != nil || self.earliestBegin == nil else {
            throw BackgroundTaskError(.badTaskRequest, "earliestBegin is not a time from 1970 to the year 9999")
        }
        for (name, text) in [("title", self.title), ("subtitle", self.subtitle)] {
            guard let bytes = text?.utf8.count, bytes > TaskProgress.textBytesMax else { continue }
            let message = "\(name) has \(bytes) bytes; it has \(TaskProgress.textBytesMax) at most"
            throw BackgroundTaskError(.badTaskRequest, message)
        }
        return JSONWriter.object { json in
            json.member("identifier", self.identifier)
            json.member("kind", self.kind.rawValue)
            json.member("earliestBegin", ifPresent: earliestBegin)
            if self.requiresNetworkConnectivity { json.member("requiresNetworkConnectivity", true) }
            if self.requiresExternalPower { json.member("requiresExternalPower", true) }
            json.member("title", ifPresent: self.title)
            json.member("subtitle", ifPresent: self.subtitle)
            if self.strategy != .queue { json.member("strategy", self.strategy.rawValue) }
            let resources = self.requiredResources.names
            guard !resources.isEmpty else { return }
            json.beginArray("resources")
            for name in resources { json.string(name) }
            json.endArray()
        }
    }
}

/// The outcome of a submitted request.
public struct BackgroundTaskSubmission: Hashable, Sendable {
    /// The gateway's decision about a request. Later versions may add cases, so a `switch` needs a `default`.
    public enum Disposition: String, Hashable, Sendable, CaseIterable {
        /// The request was launched immediately.
        case launched
        /// The request is pending.
        case scheduled
        /// The request is pending and has replaced an earlier request with the same identifier.
        case replaced
    }

    /// The request's identifier.
    public let identifier: String
    /// The gateway's decision.
    public let disposition: Disposition
    /// The earliest launch time; nil while a condition holds the request, and after a launch.
    public let eligibleAt: Date?
    /// The condition that holds the request, such as `active` or `worker`; nil if none holds it.
    public let held: String?

    /// Creates a submission for tests. No gateway is involved.
    package init(identifier: String, disposition: Disposition) {
        self.identifier = identifier
        self.disposition = disposition
        self.eligibleAt = nil
        self.held = nil
    }

    /// Reads the gateway's answer; nil if it is malformed.
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

/// A pending request: see ``BackgroundTaskScheduler/pendingRequests()``.
public struct PendingTaskRequest: Hashable, Sendable {
    /// The request's identifier.
    public let identifier: String
    /// The kind of the task.
    public let kind: BackgroundTaskKind
    /// The time of submission, by the gateway's clock.
    public let submittedAt: Date
    /// The earliest launch time in the request; nil if the request had none.
    public let earliestBegin: Date?
    /// True if the device must have a network connection.
    public let requiresNetworkConnectivity: Bool
    /// True if the device must be charging.
    public let requiresExternalPower: Bool
    /// The number of attempts so far; above 0 only if a launch was lost.
    public let attemptCount: Int
    /// The earliest launch time; nil while a condition holds the request.
    public let eligibleAt: Date?
    /// The condition that holds the request, such as `active` or `worker`; nil if none holds it.
    public let held: String?
    /// The reason why the request is pending, as a sentence.
    public let why: String

    /// Creates a pending request for tests. No gateway is involved.
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

    /// Reads a request in the gateway's answer; nil if it is malformed or of an unknown kind.
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
    /// Returns a duration of minutes.
    ///
    /// - Parameter minutes: the number of minutes.
    public static func minutes(_ minutes: Int) -> Duration { .seconds(60) * minutes }

    /// Returns a duration of hours.
    ///
    /// - Parameter hours: the number of hours.
    public static func hours(_ hours: Int) -> Duration { .seconds(3600) * hours }
}

extension Date {
    /// Returns the date that is `duration` after `date`.
    ///
    /// - Parameters:
    ///   - date: the start date.
    ///   - duration: the duration to add; may be negative.
    public static func + (date: Date, duration: Duration) -> Date {
        let (seconds, attoseconds) = duration.components
        return date.addingTimeInterval(Double(seconds) + Double(attoseconds) / 1e18)
    }

    /// The time in milliseconds since 1970, rounded to the nearest millisecond; nil before 1970 or after the year 9999.
    var millisecondsSince1970: Int64? {
        let milliseconds = (self.timeIntervalSince1970 * 1000).rounded()
        guard (0...Double(WakeMessage.instantMax)).contains(milliseconds) else { return nil }
        return Int64(milliseconds)
    }

    init(millisecondsSince1970 milliseconds: Int64) {
        self.init(timeIntervalSince1970: Double(milliseconds) / 1000)
    }
}

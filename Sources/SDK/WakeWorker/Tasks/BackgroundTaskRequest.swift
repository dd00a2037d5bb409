public import FoundationEssentials

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
                throw BackgroundTaskError(.badTaskRequest, "earliestBegin is no moment from 1970 to the year 9999")
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
            members.append("\"\(name)\":\(JSONText.string(text))")
        }
        if self.strategy != .queue { members.append("\"strategy\":\"\(self.strategy.rawValue)\"") }
        let resources = self.requiredResources.names.map { "\"\($0)\"" }.joined(separator: ",")
        if !resources.isEmpty { members.append("\"resources\":[\(resources)]") }
        return Array("{\(members.joined(separator: ","))}".utf8)
    }
}

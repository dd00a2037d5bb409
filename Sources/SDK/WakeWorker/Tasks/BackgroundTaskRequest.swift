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
        return Array("{\(members.joined(separator: ","))}".utf8)
    }
}

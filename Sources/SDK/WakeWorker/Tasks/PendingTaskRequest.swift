public import FoundationEssentials
package import Wire

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

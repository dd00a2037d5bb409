package import Wire

/// A filter for events.
package struct EventFilter: Hashable, Sendable {
    /// The topic; nil for all topics.
    package var topic: String?
    /// The token in lower-case digits; nil for all devices.
    package var device: String?
    /// A word for the result of an event: its name, disposition, outcome or reason; nil for all.
    package var outcome: String?

    package init() {}

    package func takes(_ event: LiveEvent) -> Bool {
        if let topic = self.topic, event.topic != topic { return false }
        if let device = self.device, event.device != device { return false }
        guard let outcome = self.outcome else { return true }
        return [event.kind.rawValue, event.disposition, event.outcome, event.reason].contains(outcome)
    }
}

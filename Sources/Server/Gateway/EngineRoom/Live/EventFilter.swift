package import Wire

/// Which events somebody wants to hear of.
package struct EventFilter: Hashable, Sendable {
    /// nil for those of every topic.
    package var topic: String?
    /// A token in lower-case digits; nil for those of every device.
    package var device: String?
    /// What an event says of how something went: its name, disposition, outcome or reason; nil for every one.
    package var outcome: String?

    package init() {}

    package func takes(_ event: LiveEvent) -> Bool {
        if let topic = self.topic, event.topic != topic { return false }
        if let device = self.device, event.device != device { return false }
        guard let outcome = self.outcome else { return true }
        return [event.kind.rawValue, event.disposition, event.outcome, event.reason].contains(outcome)
    }
}

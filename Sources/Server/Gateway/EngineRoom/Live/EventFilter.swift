package import Wire

/// A filter for events.
package struct EventFilter: Hashable, Sendable {
    /// The topic; nil for all topics.
    package var topic: String?
    /// The token in lower-case digits; nil for all devices.
    package var device: String?
    /// Words for the result of an event: its name, disposition, outcome or reason; empty for all.
    package var outcomes: Set<String> = []

    package init() {}

    package func takes(_ event: LiveEvent) -> Bool {
        if let topic = self.topic, event.topic != topic { return false }
        if let device = self.device, event.device != device { return false }
        guard !self.outcomes.isEmpty else { return true }
        let words = [event.kind.rawValue, event.disposition, event.outcome, event.reason]
        return words.contains { $0.map { self.outcomes.contains($0) } ?? false }
    }
}

package import Wire

/// A filter for the events of a stream.
package struct EventFilter: Hashable, Sendable {
    /// The topic; nil for all topics.
    package var topic: String?
    /// The device token in lowercase hexadecimal digits; nil for all devices.
    package var device: String?
    /// The permitted words, one of which must be the event's kind, disposition, outcome or reason; empty for all
    /// events.
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

package import Wire

/// What happens at a gateway, for people: a line for each thing.
package enum EventText {
    private static let nameWidth = 10

    /// One line without its line feed, such as
    /// `2026-11-21T07:20:00Z push       scheduled  com.example.app  0badcafe...  apns-id 8f3b...`.
    package static func line(_ news: LiveNews) -> String {
        switch news {
        case .missed(let count): "wakegate: \(count) or more events were not shown: they came too fast"
        case .event(let event): self.line(event)
        }
    }

    private static func line(_ event: LiveEvent) -> String {
        let name = event.kind.rawValue
        let parts = [
            "\(TimeText.instant(Double(event.at))) \(name)"
                + String(repeating: " ", count: max(0, self.nameWidth - name.count)),
            event.disposition ?? event.outcome ?? event.reason, event.detail, event.topic.isEmpty ? nil : event.topic,
            event.device, event.wake.map { "wake \($0)" }, event.apnsID.map { "apns-id \($0)" },
        ]
        return TerminalText.harmless(parts.compactMap { $0 }.joined(separator: "  "))
    }
}

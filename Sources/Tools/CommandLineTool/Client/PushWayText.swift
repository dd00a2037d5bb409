package import Wire

/// The way of one push for people, a line for every step.
package struct PushWayText {
    package let apnsID: String
    private var shown = 0

    package init(_ apnsID: String) {
        self.apnsID = apnsID
    }

    /// The lines of the steps that were not there before, such as `2026-11-21T07:20:00Z result newData`.
    ///
    /// That it was received, and what it took the place of, is left out: the answer to the push has said so.
    ///
    /// - Parameter answer: that of `/v1/pushes/<apns-id>`.
    package mutating func newLines(_ answer: JSONValue) -> [String] {
        let events = answer["events"]?.elements ?? []
        defer { self.shown = max(self.shown, events.count) }
        return events.dropFirst(self.shown).compactMap { self.line($0) }
    }

    private func line(_ event: JSONValue) -> String? {
        guard let name = event["event"]?.text, name != "received", name != "absorbed" else { return nil }
        var parts = [event["at"]?.number.map { TimeText.instant($0) } ?? "-", name]
        if let other = event["other"]?.text { parts.append("into \(other)") }
        if let detail = event["detail"]?.text {
            parts[1] += name == "result" ? "" : ","
            parts.append(detail)
        }
        return TerminalText.harmless(parts.joined(separator: " "))
    }
}

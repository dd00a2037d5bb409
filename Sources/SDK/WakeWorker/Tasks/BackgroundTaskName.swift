/// The identifier of background tasks or the name of a session, or a pattern for some.
package struct BackgroundTaskName: Hashable, Sendable {
    /// The longest, in characters.
    package static let lengthMax = 255

    package let text: String
    /// Whether it is of sessions; tasks and sessions of one name are two things.
    package let isSession: Bool

    package init(_ text: String, isSession: Bool) {
        self.text = text
        self.isSession = isSession
    }

    /// Whether it can be registered: it is an identifier, or one with `.*` after it.
    package var isUsable: Bool {
        Self.isIdentifier(self.text.hasSuffix(".*") ? String(self.text.dropLast(2)) : self.text)
            && self.text.utf8.count <= Self.lengthMax
    }

    /// Whether it is 1 to 255 letters, digits, full stops, hyphens and underscores.
    package static func isIdentifier(_ text: String) -> Bool {
        1...self.lengthMax ~= text.utf8.count
            && text.utf8.allSatisfy { ($0 | 0x20) &- 0x61 < 26 || $0 &- 0x30 < 10 || ".-_".utf8.contains($0) }
    }

    /// The names under which a handler for this one may be registered, the closest first.
    package var candidates: [BackgroundTaskName] {
        var candidates = [self]
        // A pattern stands for at least one character after its full stop.
        var prefix = self.text.dropLast()
        while let stop = prefix.lastIndex(of: ".") {
            prefix = prefix[..<stop]
            guard !prefix.isEmpty else { break }
            candidates.append(BackgroundTaskName("\(prefix).*", isSession: self.isSession))
        }
        return candidates
    }
}

/// How far a continued task's command is, as it says so itself.
package struct CommandProgress: Hashable, Sendable {
    /// The most bytes of a text that are told.
    package static let textBytesMax = 256
    /// The largest count that is told: the last whole number that every JSON reader keeps.
    package static let countMax: Int64 = 1 << 53 - 1

    package let completed: Int64
    package let total: Int64
    /// What a person sees of it; nil when the command says nothing.
    package let text: String?

    package init(completed: Int64, total: Int64, text: String? = nil) {
        self.completed = completed
        self.total = total
        self.text = text
    }

    /// Reads a line such as `progress 10/100 Exporting`; nil for anything else.
    ///
    /// - Parameter line: without its line feed.
    package init?(line: [UInt8]) {
        let words = String(decoding: line, as: UTF8.self).split(maxSplits: 2) { $0 == " " || $0 == "\t" || $0 == "\r" }
        guard words.count > 1, words[0] == "progress" else { return nil }
        let counts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard counts.count == 2, let completed = Self.count(counts[0]), let total = Self.count(counts[1]) else {
            return nil
        }
        self.completed = completed
        self.total = total
        self.text = words.count > 2 ? Self.shown(words[2]) : nil
    }

    private static func count(_ digits: Substring) -> Int64? {
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int64(digits) else { return nil }
        return count <= self.countMax ? count : nil
    }

    /// The text without spaces around it, cut between two characters; nil for none.
    private static func shown(_ text: Substring) -> String? {
        var left = self.textBytesMax
        let trimmed = text.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed()
        let shown = trimmed.prefix { character in
            left -= character.utf8.count
            return left >= 0
        }
        return shown.isEmpty ? nil : String(shown)
    }
}

/// The beginnings of doc comments. Each comment is read alone, in a list of symbols or in a popup, so it must not begin
/// with a word that refers to the comment before it.
enum DocComments {
    static let pronouns: Set<Substring> = ["It", "Its", "That", "Their", "Them", "These", "They", "Those"]
    static let references = [
        "All of them", "Any of them", "Of them", "Of those", "One of them", "The one ", "The same,",
    ]

    static func violations(in file: SourceText) -> [Violation] {
        var violations: [Violation] = []
        var isInComment = false
        for (number, line) in zip(1..., file.lines) {
            let text = line.drop { $0 == " " }
            let isComment = text.hasPrefix("///")
            defer { isInComment = isComment }
            guard isComment, !isInComment else { continue }
            let sentence = text.dropFirst(3).drop { $0 == " " }
            let word = sentence.prefix { $0.isLetter }
            let reference = self.references.first { sentence.hasPrefix($0) }
            guard let opening = self.pronouns.contains(word) ? String(word) : reference else { continue }
            let message = "a comment that opens on \"\(opening)\": name its subject, for a reader who sees it alone"
            violations.append(Violation(path: file.path, line: number, message: message))
        }
        return violations
    }
}

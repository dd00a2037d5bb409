/// How the comments of declarations begin: each is read alone, in a list of symbols or beside the cursor, so it may
/// not open on a word that stands for something in the comment before it.
enum DocComments {
    static let pronouns: Set<Substring> = ["It", "Its", "That", "Their", "Them", "These", "They", "Those"]

    static func violations(in file: SourceText) -> [Violation] {
        var violations: [Violation] = []
        var isInComment = false
        for (number, line) in zip(1..., file.lines) {
            let text = line.drop { $0 == " " }
            let isComment = text.hasPrefix("///")
            defer { isInComment = isComment }
            guard isComment, !isInComment else { continue }
            let word = text.dropFirst(3).drop { $0 == " " }.prefix { $0.isLetter }
            guard self.pronouns.contains(word) else { continue }
            let message = "a comment that opens on \"\(word)\": name what it is about, for whoever reads it alone"
            violations.append(Violation(path: file.path, line: number, message: message))
        }
        return violations
    }
}

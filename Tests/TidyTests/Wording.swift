/// Wordings that make a native-speaking engineer stumble, each with the standard term.
///
/// A list of words finds no bad sentence that avoids them; it keeps out the ones that this project once used most.
enum Wording {
    /// The file of the list, which holds every wording.
    static let path = "Tests/TidyTests/Wording.swift"

    enum Kind: CaseIterable {
        case documentation, comment, string

        /// The hints that are allowed in a thousand lines.
        var budget: Int { self == .documentation ? 0 : 5 }
    }

    /// A text of one line that a person reads.
    struct Line: Equatable {
        let kind: Kind
        let number: Int
        let text: Substring
        /// True for the first line of a documentation comment.
        var isSummary = false
    }

    private struct Phrase {
        let words: [String]
        let remedy: String
        /// The next words after which the phrase is plain English; nil if the phrase may stand at the end.
        var plainBefore: Set<String>?
    }

    private static let phrases: [String: [Phrase]] = {
        let list: [(String, remedy: String)] = [
            ("goes on|go on|going on|went on|gone on", "continue, resume, keep"),
            ("hangs on|hang on|hung on", "depend on"),
            ("befell|befall|befalls", "happen to"),
            ("is to be|are to be|was to be|were to be", "must be, should be"),
            ("nobody|whoever|somebody", "name the actor: the client, no caller, the worker"),
            ("beside", "next to, with, in addition to"),
            ("for ever", "indefinitely"),
            ("by itself|by themselves", "automatically, on its own"),
            ("as it stands|as it is|as it was|as they are|as they were|as they stand", "unchanged"),
            ("is told|was told|are told|were told|be told|been told", "reported, notified"),
            ("tells of|tell of|tells what|tells whether|tells how|tells when|tells which", "reports"),
            ("what waits|what came|what comes|what was sent|what ran|what runs", "use a noun: pending pushes"),
            ("what is left|what was left|what there is|what there was", "use a noun: the remaining bytes"),
            ("one of its own|one of their own|those of its own", "its own, a separate"),
            ("has it that|have it that", "requires, specifies"),
            ("let out|lets out", "publish, release"),
            ("in force|in its place", "in effect, instead"),
            ("is over with|is up with", "is finished"),
            ("thereof|thereby|wherein|hitherto|whereof", "rephrase"),
            ("more than it may|more than they may", "more than allowed"),
            ("patience", "timeout, grace period"),
            ("without a word|in silence", "silently"),
            ("mend|mends|mended", "fix, repair"),
            ("seldom", "rarely"),
            ("dear|dearer", "expensive"),
            ("at one moment|at a moment", "at one instant"),
            ("how far it is|how many there are|how long it is", "use a noun: progress, count, duration"),
            ("those that are|ones that are|those which are", "use a noun"),
        ]
        var phrases: [String: [Phrase]] = [:]
        func add(_ text: String, _ remedy: String, plainBefore: Set<String>? = nil) {
            let words = text.split(separator: " ").map(String.init)
            phrases[words[0], default: []].append(Phrase(words: words, remedy: remedy, plainBefore: plainBefore))
        }
        for (texts, remedy) in list { for text in texts.split(separator: "|") { add(String(text), remedy) } }
        add("is no", "is not a", plainBefore: ["longer", "more", "need", "such", "way", "guarantee"])
        return phrases
    }()

    private static let openings: Set<String> = [
        "what", "whether", "those", "whoever", "nobody", "somebody", "something", "of", "it", "its", "that", "how",
        "where", "who",
    ]

    /// Returns the wordings in a line, each with its remedy.
    static func hints(in line: Line) -> [String] {
        let words = self.words(line.text)
        var hints: [String] = []
        for (place, word) in words.enumerated() {
            for phrase in self.phrases[word] ?? [] where words[place...].starts(with: phrase.words) {
                if let plain = phrase.plainBefore {
                    let next = words.dropFirst(place + phrase.words.count).first
                    guard let next, next != "-", !plain.contains(next) else { continue }
                }
                hints.append("\"\(phrase.words.joined(separator: " "))\": \(phrase.remedy)")
            }
        }
        if line.isSummary, let first = words.first, self.openings.contains(first), !line.text.contains("?") {
            hints.append("\"\(first)\" at the beginning: open with a noun or a verb")
        }
        return hints
    }

    /// Returns the words of a text in lower case, with a hyphen for punctuation and for code in backquotes.
    private static func words(_ text: Substring) -> [String] {
        var (words, word, isCode) = ([String](), "", false)
        for character in text.lowercased() + " " {
            if !isCode, character.isLetter || character == "'" || character == "-" {
                word.append(character)
                continue
            }
            if !word.isEmpty { words.append(word) }
            word = ""
            if character == "`" { isCode.toggle() }
            if !isCode, character != " " { words.append("-") }
        }
        return words
    }

    /// Returns the comments and the texts in string literals of a Swift file.
    static func lines(in file: SourceText) -> [Line] {
        var lines: [Line] = []
        var isInComment = false
        for (number, (line, code)) in zip(1..., zip(file.lines, file.code)) {
            let text = line.drop { $0 == " " }
            let isDocumentation = text.hasPrefix("///")
            defer { isInComment = isDocumentation }
            if text.hasPrefix("//") {
                let words = text.drop { $0 == "/" }
                let isSummary = isDocumentation && !isInComment
                lines.append(Line(kind: .comment, number: number, text: words, isSummary: isSummary))
            } else if code.contains("\"") || code.allSatisfy({ $0 == " " }) {
                lines += self.literals(line, code).map { Line(kind: .string, number: number, text: $0) }
            }
        }
        return lines
    }

    /// Returns the blanked parts of a line of code that read as prose.
    private static func literals(_ line: String, _ code: String) -> [Substring] {
        let (text, blanked) = (Array(line.utf8), Array(code.utf8))
        var (literals, start): ([Substring], Int?) = ([], nil)
        for place in 0...text.count {
            let isBlank = place < text.count && blanked[place] == UInt8(ascii: " ")
            if isBlank { start = start ?? place }
            guard !isBlank, let first = start else { continue }
            start = nil
            let literal = String(decoding: text[first..<place], as: UTF8.self)
            if literal.split(separator: " ").count > 2 { literals.append(Substring(literal)) }
        }
        return literals
    }

    /// Returns the lines of a Markdown page outside of blocks of code.
    static func lines(ofPage text: String) -> [Line] {
        var isInCode = false
        return zip(1..., text.split(separator: "\n", omittingEmptySubsequences: false)).compactMap { number, line in
            if line.drop(while: { $0 == " " }).hasPrefix("```") { isInCode.toggle() }
            return isInCode ? nil : Line(kind: .documentation, number: number, text: line)
        }
    }
}

/// Wordings that make a native-speaking engineer stumble, each with the standard term.
///
/// A list of words finds no bad sentence that avoids them; it keeps out the ones that this project once used most.
enum Wording {
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
        // The words of a phrase are joined by `_`, so that no check takes the list for prose.
        let list: [(String, remedy: String)] = [
            ("goes_on|go_on|going_on|went_on|gone_on", "continue, resume, keep"),
            ("hangs_on|hang_on|hung_on", "depend on"),
            ("befell|befall|befalls", "happen to"),
            ("is_to_be|are_to_be|was_to_be|were_to_be", "must be, should be"),
            ("nobody|whoever|somebody", "name the actor: the client, no caller, the worker"),
            ("beside", "next to, with, in addition to"),
            ("for_ever", "indefinitely"),
            ("by_itself|by_themselves", "automatically, on its own"),
            ("as_it_stands|as_it_is|as_it_was|as_they_are|as_they_were|as_they_stand", "unchanged"),
            ("is_told|was_told|are_told|were_told|be_told|been_told", "reported, notified"),
            ("tells_of|tell_of|tells_what|tells_whether|tells_how|tells_when|tells_which", "reports"),
            ("what_waits|what_came|what_comes|what_was_sent|what_ran|what_runs", "a noun, such as pending pushes"),
            ("what_is_left|what_was_left|what_there_is|what_there_was", "a noun, such as the remaining bytes"),
            ("one_of_its_own|one_of_their_own|those_of_its_own", "its own, a separate"),
            ("has_it_that|have_it_that", "requires, specifies"),
            ("let_out|lets_out", "publish, release"),
            ("in_force|in_its_place", "in effect, instead"),
            ("is_over_with|is_up_with", "is finished"),
            ("thereof|thereby|wherein|hitherto|whereof", "rephrase"),
            ("more_than_it_may|more_than_they_may", "more than allowed"),
            ("patience", "timeout, grace period"),
            ("without_a_word|in_silence", "silently"),
            ("mend|mends|mended", "fix, repair"),
            ("seldom", "rarely"),
            ("dear|dearer", "expensive"),
            ("at_one_moment|at_a_moment", "at one instant"),
            ("how_far_it_is|how_many_there_are|how_long_it_is", "a noun: progress, count, duration"),
            ("those_that_are|ones_that_are|those_which_are", "a noun"),
        ]
        var phrases: [String: [Phrase]] = [:]
        func add(_ text: String, _ remedy: String, plainBefore: Set<String>? = nil) {
            let words = text.split(separator: "_").map(String.init)
            phrases[words[0], default: []].append(Phrase(words: words, remedy: remedy, plainBefore: plainBefore))
        }
        for (texts, remedy) in list { for text in texts.split(separator: "|") { add(String(text), remedy) } }
        add("is_no", "is not a", plainBefore: ["longer", "more", "need", "such", "way", "guarantee"])
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

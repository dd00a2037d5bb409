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
        return file.isSource ? violations + self.wrongParameters(in: file) : violations
    }

    /// Returns the lists of parameters that differ from the declared parameters. docc refuses them.
    private static func wrongParameters(in file: SourceText) -> [Violation] {
        var violations: [Violation] = []
        var documented: [String] = []
        for (index, line) in file.lines.enumerated() {
            let text = line.drop { $0 == " " }
            if text.hasPrefix("///") {
                let item = text.prefixMatch(of: #/\/\/\/ (?:- Parameter|  -) `?(\w+)`?:/#)
                if let item { documented.append(String(item.1)) }
                continue
            }
            defer { documented = [] }
            guard !documented.isEmpty else { continue }
            let code = file.code[index...].prefix(40).joined(separator: "\n")
            let declared = DeclaredParameters(firstIn: code)?.names.filter { $0 != "_" } ?? []
            guard documented != declared else { continue }
            let message =
                "the comment lists \(documented), the declaration \(declared): list all, or write \"- `name`:\""
            violations.append(Violation(path: file.path, line: index + 1, message: message))
        }
        return violations
    }
}

/// The parameters of a declared function, initializer, subscript or case.
struct DeclaredParameters {
    /// The name of the function or case, `init` or `subscript`.
    let name: String
    /// The names that calls use, and the names inside of the declaration.
    private(set) var labels: [String] = [], names: [String] = []

    // Each evaluation of a regex literal parses it again. A regex is not `Sendable`, but matching does not change it.
    private nonisolated(unsafe) static let head =
        #/\b(?:func\s+([^\s(<]+)|(init)[?!]?|(subscript)|case\s+(\w+))\s*(?:<[^(]*>)?\s*\(/#
    private nonisolated(unsafe) static let parameter = #/^\s*(?:@\w+\s+)*`?(\w+)`?(?:\s+`?(\w+)`?)?\s*:/#

    /// Reads the first declaration with parameters; nil if there is none.
    ///
    /// - `code`: Swift code without comments.
    init?(firstIn code: String) {
        guard let match = unsafe code.firstMatch(of: Self.head) else { return nil }
        self.name = [match.1, match.2, match.3, match.4].compactMap { $0.map(String.init) }.joined()
        var depth = 1
        var last: Character = "("
        var parts = [""]
        for character in code[match.range.upperBound...] {
            let isArrow = character == ">" && last == "-"
            if "([{<".contains(character) { depth += 1 } else if ")]}>".contains(character), !isArrow { depth -= 1 }
            if depth == 0 { break }
            if character == ",", depth == 1 { parts.append("") } else { parts[parts.count - 1].append(character) }
            last = character
        }
        for part in parts {
            guard let found = unsafe part.firstMatch(of: Self.parameter) else { continue }
            self.labels.append(String(found.1))
            self.names.append(String(found.2 ?? found.1))
        }
    }
}

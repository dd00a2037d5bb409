/// A manual page in mdoc, line by line.
struct MdocText {
    /// What mandoc's style asks of a line of input.
    private static let lineCharactersMax = 78

    private(set) var lines: [String] = []

    /// The page as a file.
    var text: String { self.lines.joined(separator: "\n") + "\n" }

    /// A macro and its arguments as they stand.
    mutating func macro(_ name: String, _ arguments: String...) {
        self.lines.append(([".\(name)"] + arguments).joined(separator: " "))
    }

    /// A line of macros as it stands.
    mutating func raw(_ line: String) {
        self.lines.append(line)
    }

    /// A macro whose one argument is the rest of the line.
    mutating func title(_ name: String, _ words: String) {
        self.lines.append(".\(name) \(Self.escaped(words))")
    }

    /// An option in a line of several macros, such as `Op Fl -topic Ar TOPIC`.
    mutating func option(_ before: String, _ option: OptionDefinition) {
        let value = option.placeholder.isEmpty ? "" : " Ar \(Self.argument(option.placeholder))"
        self.lines.append(".\(before) \\-\(Self.escaped(String(option.name.dropFirst(2))))\(value)")
    }

    /// Paragraphs of prose, filled; lines that are indented stay as they are.
    mutating func paragraphs(_ text: String) {
        var prose: [Substring] = []
        var literal: [Substring] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("  ") {
                self.fill(&prose)
                literal.append(line)
            } else {
                self.display(&literal)
                prose.append(line)
            }
        }
        self.fill(&prose)
        self.display(&literal)
    }

    /// Lines as they are, indented.
    mutating func display(_ text: String) {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        self.display(&lines)
    }

    private mutating func display(_ literal: inout [Substring]) {
        guard !literal.isEmpty else { return }
        self.lines.append(".Bd -literal -offset indent")
        let indent = literal.map { $0.prefix { $0 == " " }.count }.min() ?? 0
        self.lines += literal.map { Self.protected(Self.escaped(String($0.dropFirst(indent)))) }
        self.lines.append(".Ed")
        literal = []
    }

    /// Words in lines; each sentence begins one, as the style asks.
    private mutating func fill(_ prose: inout [Substring]) {
        var line = ""
        for word in prose.joined(separator: " ").split(separator: " ") {
            let word = Self.escaped(String(word))
            if !line.isEmpty, line.count + 1 + word.count > Self.lineCharactersMax || Self.endsSentence(line) {
                self.lines.append(Self.protected(line))
                line = ""
            }
            line += line.isEmpty ? word : " \(word)"
        }
        if !line.isEmpty { self.lines.append(Self.protected(line)) }
        prose = []
    }

    private static func endsSentence(_ line: String) -> Bool { line.hasSuffix(".") || line.hasSuffix("?") }

    /// The text without what roff would read more into.
    private static func escaped(_ text: String) -> String {
        text.reduce(into: "") { escaped, character in
            switch character {
            case "\\": escaped += "\\e"
            // A minus and quotes that can be copied, not a hyphen and typographic ones.
            case "-": escaped += "\\-"
            case "'": escaped += "\\(aq"
            case "`": escaped += "\\(ga"
            case "^": escaped += "\\(ha"
            case "~": escaped += "\\(ti"
            case "\u{2026}": escaped += "..."
            case _: escaped.append(character)
            }
        }
    }

    /// A line that roff takes for no request.
    private static func protected(_ line: String) -> String {
        line.hasPrefix(".") || line.hasPrefix("'") ? "\\&\(line)" : line
    }

    /// One argument of a macro, which may be a word that is a macro's name, or hold spaces.
    static func argument(_ word: String) -> String {
        let escaped = Self.escaped(word)
        if word.contains(" ") || word.isEmpty { return "\"\(escaped)\"" }
        return word.count <= 2 || ".,:;()[]?!|".contains(word) ? "\\&\(escaped)" : escaped
    }
}

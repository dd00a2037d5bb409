/// One Swift file, and the same file with what is not code blanked out, so that rules neither match words in
/// comments and strings nor count their braces.
struct SourceText {
    /// The path from the repository's root, with `/` between its parts.
    let path: String
    let lines: [String]
    /// As many lines as `lines`; comments and the contents of string literals are spaces.
    let code: [String]
    /// All lines, and all of the code, each as one text: a search of it settles at once what stands on no line.
    let text: String
    let codeText: String

    init(path: String, text: String) {
        self.path = path
        self.lines = Self.lines(of: text)
        var blanker = CommentBlanker(text)
        self.text = text
        self.codeText = blanker.blanked()
        self.code = Self.lines(of: self.codeText)
    }

    /// The module the file belongs to.
    var module: String { String(Layout.folder(of: self.path).split(separator: "/").last ?? "") }

    var isSource: Bool { self.path.hasPrefix("Sources/") }

    private static func lines(of text: String) -> [String] {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        if lines.last == "" { lines.removeLast() }
        return lines
    }
}

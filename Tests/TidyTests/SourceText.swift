import Foundation

/// A Swift file, and a copy in which everything except code is blank. Rules therefore do not match words or count
/// braces in comments and strings.
struct SourceText {
    /// The path from the repository's root, with `/` between its parts.
    let path: String
    let lines: [String]
    /// The same number of lines as `lines`. Comments and the contents of string literals are replaced by spaces.
    let code: [String]
    /// All lines, and all code, each as one text. One search of it is enough if a word is on no line.
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

    /// The module that the file belongs to.
    var module: String { String(Layout.folder(of: self.path).split(separator: "/").last ?? "") }

    var isSource: Bool { self.path.hasPrefix("Sources/") }

    private static func lines(of text: String) -> [String] {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        if lines.last == "" { lines.removeLast() }
        return lines
    }
}

extension String {
    /// Returns true if the text contains these bytes. The C library searches ten times as fast as `contains`, which
    /// compares characters.
    func containsBytes(of word: String) -> Bool { unsafe strstr(self, word) != nil }
}

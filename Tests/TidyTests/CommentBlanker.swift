/// Replaces comments and the contents of string literals by spaces. Newlines stay where they are.
///
/// It only parses the Swift that is needed for this: nested block comments, raw strings and multi-line strings. The
/// inside of an interpolation counts as string, and the sources have no braces there that matter.
struct CommentBlanker {
    /// The first bytes of comments and string literals.
    private static let openers = Array("/\"#".utf8)

    private let input: [UInt8]
    private var output: [UInt8] = []
    private var position = 0

    init(_ text: String) {
        self.input = Array(text.utf8)
        self.output.reserveCapacity(self.input.count)
    }

    mutating func blanked() -> String {
        while self.position < self.input.count {
            // Nearly every byte is handled here.
            guard Self.openers.contains(self.input[self.position]) else {
                self.keep()
                continue
            }
            if self.matches("//") {
                while self.position < self.input.count, self.input[self.position] != UInt8(ascii: "\n") { self.blank() }
            } else if self.matches("/*") {
                self.blankBlockComment()
            } else if self.matches("\"") || self.matches("#\"") || self.matches("##\"") {
                self.blankString()
            } else {
                self.keep()
            }
        }
        return String(decoding: self.output, as: UTF8.self)
    }

    private func matches(_ text: String) -> Bool {
        self.input[self.position] == text.utf8.first && self.input[self.position...].starts(with: text.utf8)
    }

    private mutating func keep() {
        self.output.append(self.input[self.position])
        self.position += 1
    }

    private mutating func blank(_ count: Int = 1) {
        for _ in 0..<count where self.position < self.input.count {
            let byte = self.input[self.position]
            self.output.append(byte == UInt8(ascii: "\n") ? byte : UInt8(ascii: " "))
            self.position += 1
        }
    }

    private mutating func blankBlockComment() {
        var depth = 0
        repeat {
            if self.matches("/*") {
                depth += 1
                self.blank(2)
            } else if self.matches("*/") {
                depth -= 1
                self.blank(2)
            } else {
                self.blank()
            }
        } while depth > 0 && self.position < self.input.count
    }

    private mutating func blankString() {
        var hashes = 0
        while self.input[self.position] == UInt8(ascii: "#") {
            hashes += 1
            self.keep()
        }
        let marks = String(repeating: "#", count: hashes)
        let isMultiLine = self.matches("\"\"\"")
        let quote = isMultiLine ? "\"\"\"" : "\""
        let end = quote + marks
        let escape = "\\" + marks
        let interpolation = escape + "("
        for _ in 0..<quote.utf8.count { self.keep() }
        while self.position < self.input.count, !self.matches(end) {
            // An unterminated literal would be a syntax error. Stopping at the end of the line limits the damage.
            if !isMultiLine, self.input[self.position] == UInt8(ascii: "\n") { return }
            if self.matches(interpolation) {
                self.blank(escape.utf8.count)
                self.blankInterpolation()
            } else if self.matches(escape) {
                self.blank(escape.utf8.count + 1)
            } else {
                self.blank()
            }
        }
        for _ in 0..<end.utf8.count where self.position < self.input.count { self.keep() }
    }

    /// Blanks from the opening parenthesis to the closing one, including the string literals inside.
    private mutating func blankInterpolation() {
        var depth = 0
        repeat {
            let byte = self.input[self.position]
            if byte == UInt8(ascii: "\"") {
                self.blank()
                while self.position < self.input.count, self.input[self.position] != UInt8(ascii: "\"") {
                    self.blank(self.input[self.position] == UInt8(ascii: "\\") ? 2 : 1)
                }
            }
            if byte == UInt8(ascii: "(") { depth += 1 }
            if byte == UInt8(ascii: ")") { depth -= 1 }
            self.blank()
        } while depth > 0 && self.position < self.input.count
    }
}

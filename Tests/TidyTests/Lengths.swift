/// The maximum lengths of files, lines and functions.
enum Lengths {
    static let fileLinesMax = 600
    static let lineCharactersMax = 120
    static let functionLinesMax = 70

    static func violations(in file: SourceText) -> [Violation] {
        var violations: [Violation] = []
        if file.lines.count > self.fileLinesMax {
            violations.append(
                Violation(
                    path: file.path,
                    line: file.lines.count,
                    message: "\(file.lines.count) lines; split it below \(self.fileLinesMax) by its nouns"
                )
            )
        }
        // A line never has more characters than bytes, and counting bytes is fast.
        let long = zip(1..., file.lines).filter { $1.utf8.count > self.lineCharactersMax }
        for (number, line) in long where line.count > self.lineCharactersMax {
            violations.append(
                Violation(path: file.path, line: number, message: "\(line.count) characters in a line; wrap it")
            )
        }
        for function in self.functions(in: file) where function.lineCount > self.functionLinesMax {
            violations.append(
                Violation(
                    path: file.path,
                    line: function.firstLine,
                    message: "a function of \(function.lineCount) lines; give its parts names"
                )
            )
        }
        return violations
    }

    struct Function: Hashable {
        /// Counted from 1.
        let firstLine: Int
        let lineCount: Int
    }

    /// Returns every function, initialiser and deinitialiser with a body, in the order in which they start.
    static func functions(in file: SourceText) -> [Function] {
        var functions: [Function] = []
        for (index, line) in file.code.enumerated() where self.declaresFunction(line) {
            guard let last = self.lastLineOfBody(from: index, in: file.code) else { continue }
            functions.append(Function(firstLine: index + 1, lineCount: last - index + 1))
        }
        return functions
    }

    private static func declaresFunction(_ line: String) -> Bool {
        // This fast search is enough for nearly every line. `deinit` contains `init`.
        guard line.containsBytes(of: "func") || line.containsBytes(of: "init") else { return false }
        let words = line.split(whereSeparator: { !($0.isLetter || $0.isNumber || $0 == "_" || $0 == "." || $0 == "@") })
        guard let index = words.firstIndex(where: { ["func", "init", "deinit"].contains($0) }) else { return false }
        let modifiers: Set<Substring> = [
            "public", "package", "internal", "fileprivate", "private", "static", "class", "final", "override",
            "mutating", "nonmutating", "borrowing", "consuming", "required", "convenience", "nonisolated", "isolated",
            "unsafe", "indirect",
        ]
        return words[..<index].allSatisfy { $0.hasPrefix("@") || modifiers.contains($0) }
    }

    /// Returns the line of the brace that closes the body of the declaration on line `start`; nil if it has no body.
    private static func lastLineOfBody(from start: Int, in code: [String]) -> Int? {
        var parentheses = 0
        var braces = 0
        for index in start..<code.count {
            // A requirement has no body: the next declaration or the end of the type comes first.
            if index > start, braces == 0, parentheses == 0, self.declaresFunction(code[index]) { return nil }
            for byte in code[index].utf8 {
                switch byte {
                case UInt8(ascii: "("), UInt8(ascii: "["): parentheses += 1
                case UInt8(ascii: ")"), UInt8(ascii: "]"): parentheses -= 1
                case UInt8(ascii: "{") where parentheses == 0 || braces > 0: braces += 1
                case UInt8(ascii: "}") where parentheses == 0 || braces > 0:
                    braces -= 1
                    if braces < 0 { return nil }
                    if braces == 0 { return index }
                default: break
                }
            }
        }
        return nil
    }
}

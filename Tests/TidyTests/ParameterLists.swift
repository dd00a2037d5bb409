/// Lists of parameters in comments: `docc` warns of one that leaves out some of a function's parameters.
enum ParameterLists {
    static func violations(in file: SourceText) -> [Violation] {
        guard file.isSource else { return [] }
        var violations: [Violation] = []
        var comment: [String] = []
        for (index, line) in file.lines.enumerated() {
            let text = line.drop { $0 == " " }
            if text.hasPrefix("///") {
                comment.append(String(text.dropFirst(3)))
                continue
            }
            if text.hasPrefix("@") { continue }
            defer { comment = [] }
            let listed = self.listed(in: comment)
            guard !listed.isEmpty, self.isSeenFromOutside(file.code[index]) else { continue }
            let wanted = self.parameters(ofDeclarationAt: index, in: file.code)
            guard Set(listed) != Set(wanted) else { continue }
            violations.append(
                Violation(
                    path: file.path,
                    line: index + 1,
                    message: "list all parameters (\(wanted.joined(separator: ", "))), or say of some, as "
                        + "\"- `name`: ...\", what needs saying"
                )
            )
        }
        return violations
    }

    /// The names in a comment's `- Parameter name:` and below its `- Parameters:`.
    private static func listed(in comment: [String]) -> [String] {
        var names: [String] = []
        var isInList = false
        for line in comment {
            if line.hasPrefix(" - ") { isInList = line.hasPrefix(" - Parameters:") }
            let item =
                if line.hasPrefix(" - Parameter ") {
                    line.dropFirst(" - Parameter ".count)
                } else {
                    isInList && line.hasPrefix("   - ") ? line.dropFirst("   - ".count) : ""
                }
            if let end = item.firstIndex(of: ":") { names.append(String(item[..<end])) }
        }
        return names
    }

    /// What `deploy/docs` shows.
    private static func isSeenFromOutside(_ line: String) -> Bool {
        line.split(separator: " ").prefix { !$0.contains("(") }.contains { $0 == "package" || $0 == "public" }
    }

    /// The names by which a function's body knows its parameters.
    private static func parameters(ofDeclarationAt start: Int, in code: [String]) -> [String] {
        var parts = [""]
        var depth = 0
        // That of a closure's result would close what nothing has opened.
        for character in code[start...].joined(separator: " ").replacing("->", with: "  ") {
            let isClosing = ")]}>".contains(character)
            if isClosing { depth -= 1 }
            if depth == 0, character == ")" { break }
            if depth == 1, character == "," {
                parts.append("")
            } else if depth >= 1 {
                parts[parts.count - 1].append(character)
            }
            if "([{".contains(character) || depth >= 1 && character == "<" { depth += 1 }
            if isClosing, depth < 0 { depth = 0 }
        }
        return parts.compactMap { $0.split(separator: ":").first?.split(separator: " ").last.map(String.init) }
    }
}

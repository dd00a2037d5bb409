/// Text in lines that are no longer than a terminal is wide.
package enum WrappedText {
    /// The lines of a text, each of those that are too long in several, which are broken at spaces; a word alone that
    /// is too long is broken anywhere. What goes on stands below the value of a line that has a name and a value, and
    /// else below the line's own begin.
    ///
    /// - Parameters:
    ///   - text: lines, each with its line feed but for the last.
    ///   - width: of the terminal, in characters; 0 for one that has none.
    package static func lines(_ text: String, width: Int) -> [String] {
        text.split(separator: "\n", omittingEmptySubsequences: false).flatMap { self.wrapped($0, width) }
    }

    private static func wrapped(_ line: Substring, _ width: Int) -> [String] {
        guard width > 0, line.count > width else { return [String(line)] }
        let indent = self.indent(line, width)
        var lines: [String] = []
        var rest = line
        while rest.count > width - (lines.isEmpty ? 0 : indent.count) {
            let room = width - (lines.isEmpty ? 0 : indent.count)
            let end = rest.index(rest.startIndex, offsetBy: room)
            // A line's own indent is no place to break it at, nor is its name.
            let first = rest.index(rest.startIndex, offsetBy: lines.isEmpty ? indent.count : 0)
            let space = rest[first...end].lastIndex(of: " ").flatMap { $0 > first ? $0 : nil }
            lines.append((lines.isEmpty ? "" : indent) + rest[..<(space ?? end)])
            rest = rest[(space ?? end)...].drop { $0 == " " }
        }
        if !rest.isEmpty { lines.append(indent + rest) }
        return lines
    }

    /// Spaces up to the value of a line, where that leaves room.
    private static func indent(_ line: Substring, _ width: Int) -> String {
        let own = line.prefix { $0 == " " }.count
        let name = line.dropFirst(own)
        guard own == 0, let gap = name.firstRange(of: "  ") else {
            return String(repeating: " ", count: min(own + 2, width / 4))
        }
        let value = line[gap.upperBound...].firstIndex { $0 != " " } ?? gap.upperBound
        let count = line.distance(from: line.startIndex, to: value)
        return String(repeating: " ", count: count <= width / 2 ? count : min(2, width / 4))
    }
}

import Wire

/// One line of a terminal view, in parts of different looks.
package struct StyledLine: Sendable {
    /// How a part looks.
    package enum Style: String, Sendable {
        case plain = ""
        case strong = "1"
        case faint = "2"
        case good = "32"
        case warning = "33"
        case bad = "31"
        case first = "36"
        case second = "32;1"
    }

    private var parts: [(text: String, style: Style)] = []

    package init() {}

    package init(_ text: String, _ style: Style = .plain) {
        self.append(text, style)
    }

    /// Adds text at the end; what a terminal would obey in it is shown as a question mark.
    package mutating func append(_ text: String, _ style: Style = .plain) {
        self.parts.append((TerminalText.harmless(text), style))
    }

    /// Adds another line's parts at the end.
    package mutating func append(_ line: StyledLine) { self.parts += line.parts }

    /// Adds text in a column of so many characters, at its left or right end, and a space.
    package mutating func append(column text: String, _ width: Int, _ style: Style = .plain, isNumber: Bool = false) {
        let harmless = TerminalText.harmless(text)
        let shown = harmless.count > width ? harmless.prefix(max(0, width - 1)) + "…" : Substring(harmless)
        let gap = String(repeating: " ", count: max(0, width - shown.count))
        self.parts.append((isNumber ? "\(gap)\(shown) " : "\(shown)\(gap) ", style))
    }

    /// The number of characters.
    package var count: Int { self.parts.reduce(0) { $0 + $1.text.count } }

    /// The line for a terminal, cut to `width` characters.
    package func text(width: Int, isColoured: Bool) -> String {
        var left = width
        var line = ""
        for part in self.parts where left > 0 {
            let shown = part.text.prefix(left)
            left -= shown.count
            let isStyled = isColoured && part.style != .plain
            line += isStyled ? "\u{1B}[\(part.style.rawValue)m\(shown)\u{1B}[0m" : "\(shown)"
        }
        return line
    }
}

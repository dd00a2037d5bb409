import Platform
package import Wire

/// Instants and durations for people.
package enum TimeText {
    /// Formats an instant in milliseconds since 1970, such as `2026-11-21T07:20:00Z`. Rounds down, because a past event
    /// must never appear to be in the future.
    package static func instant(_ milliseconds: Double) -> String { self.text(milliseconds, .down) }

    /// Formats the earliest time of an event. Rounds up, because the event must not happen before the displayed time.
    package static func due(_ milliseconds: Double) -> String { self.text(milliseconds, .up) }

    private static func text(_ milliseconds: Double, _ rule: FloatingPointRoundingRule) -> String {
        guard milliseconds.isFinite, abs(milliseconds) < 253_402_300_800_000 else { return "never" }
        // The last second of the year 9999.
        return WallTime.text(min(Int64((milliseconds / 1000).rounded(rule)), 253_402_300_799) * 1000)
    }

    /// Formats the time from `now` to `instant`, both in milliseconds since 1970, such as `14 min 59 s`. Rounds both
    /// up, in agreement with `due`.
    package static func wait(until instant: Double, now: Int64) -> String {
        let seconds = (instant / 1000).rounded(.up) - (Double(now) / 1000).rounded(.up)
        return DurationText.text(seconds: Int(saturating: seconds))
    }
}

/// Conversion of numbers from answers, which may have any value.
extension Int {
    /// Truncates a number toward zero and clamps it to the range of `Int`. NaN becomes 0.
    package init(saturating number: Double) {
        if let exact = Int(exactly: number.rounded(.towardZero)) {
            self = exact
        } else {
            self = number.isNaN ? 0 : number < 0 ? .min : .max
        }
    }
}

/// Quoting of words in command lines that a person pastes into a shell.
package enum ShellText {
    /// Returns the word, in single quotes if it contains characters that are special to a shell.
    package static func quoted(_ word: String) -> String {
        let isPlain = word.utf8.allSatisfy { $0.isLetterOrDigit(or: "-_./:=,@+") }
        if isPlain, !word.isEmpty { return word }
        let parts = word.split(separator: "'", omittingEmptySubsequences: false)
        return "'\(parts.joined(separator: "'\\''"))'"
    }
}

/// Formats the events of a gateway, one line for each.
package enum EventText {
    private static let nameWidth = 10

    /// Returns the detail of an event in the delivery log. Adds an explanation to `lost`.
    package static func detail(_ detail: String) -> String {
        detail == "lost" ? "lost: its worker returned it or was cut off" : detail
    }

    /// Returns a line without its line feed, such as
    /// `2026-11-21T07:20:00Z push       scheduled  com.example.app  0badcafe...  apns-id 8f3b...`.
    package static func line(_ news: LiveNews) -> String {
        switch news {
        case .missed(let count): "wakegate: \(count) or more events were not shown: they came too fast"
        case .event(let event): self.line(event)
        }
    }

    private static func line(_ event: LiveEvent) -> String {
        let name = event.kind.rawValue
        let parts = [
            "\(TimeText.instant(Double(event.at))) \(name)"
                + String(repeating: " ", count: max(0, self.nameWidth - name.count)),
            event.disposition ?? event.outcome.map(self.detail) ?? event.reason, event.detail,
            event.topic.isEmpty ? nil : event.topic, event.device, event.wake.map { "wake \($0)" },
            event.apnsID.map { "apns-id \($0)" },
        ]
        return TerminalText.sanitized(parts.compactMap { $0 }.joined(separator: "  "))
    }
}

/// Wraps text to the width of a terminal.
package enum WrappedText {
    /// Returns the lines of a text. Long lines are broken at spaces, and long words anywhere. In a line of the form
    /// `name  value`, continuation lines align with the value. In other lines they are indented by two more spaces than
    /// the first.
    ///
    /// - Parameters:
    ///   - text: the lines, separated by line feeds.
    ///   - width: the width of the terminal, in characters; 0 for unlimited.
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
            // The line must not be broken within its indentation or its name.
            let first = rest.index(rest.startIndex, offsetBy: lines.isEmpty ? indent.count : 0)
            let space = rest[first...end].lastIndex(of: " ").flatMap { $0 > first ? $0 : nil }
            lines.append((lines.isEmpty ? "" : indent) + rest[..<(space ?? end)])
            rest = rest[(space ?? end)...].drop { $0 == " " }
        }
        if !rest.isEmpty { lines.append(indent + rest) }
        return lines
    }

    /// Returns the indentation of continuation lines: up to the value of the line if enough columns remain to its
    /// right.
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

/// Formats tables.
package enum TableText {
    /// Returns the rows as lines with aligned columns. The last column is not padded.
    package static func lines(_ rows: [[String]]) -> String {
        let sanitized = rows.map { $0.map { TerminalText.sanitized($0) } }
        let columns = (sanitized.first?.count ?? 1) - 1
        let widths = (0..<columns).map { column in sanitized.map { $0[column].count }.max() ?? 0 }
        return sanitized.map { row in
            let cells = zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
            let line = (cells + [row[columns]]).joined(separator: "  ")
            return String(line.reversed().drop { $0 == " " }.reversed()) + "\n"
        }.joined()
    }

    /// Returns a page of a list. The columns have the same widths on all pages. The last column is not padded.
    static func page(
        _ rows: [JSONValue],
        widths: [Int],
        head: [String]?,
        _ cells: (JSONValue) -> [String]
    ) -> String {
        guard !rows.isEmpty else { return "" }
        return ((head.map { [$0] } ?? []) + rows.map(cells)).map { row in
            let padded = zip(row, widths).map { $0 + String(repeating: " ", count: max(0, $1 - $0.count)) }
            return TerminalText.sanitized((padded + row.suffix(1)).joined(separator: "  ")) + "\n"
        }.joined()
    }

    static func moment(_ value: JSONValue?) -> String { value?.number.map { TimeText.instant($0) } ?? "-" }

    static func due(_ value: JSONValue?) -> String { value?.number.map { TimeText.due($0) } ?? "-" }

    static func number(_ value: JSONValue?) -> String { value?.number.map { JSONNumber.text(of: $0) } ?? "-" }
}

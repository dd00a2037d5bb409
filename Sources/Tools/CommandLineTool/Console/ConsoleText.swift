import Platform
package import Wire

/// Instants and durations for people.
package enum TimeText {
    /// An instant in milliseconds since 1970, such as `2026-11-21T07:20:00Z`; rounded up, as the gateway does it.
    package static func instant(_ milliseconds: Double) -> String {
        guard milliseconds.isFinite, abs(milliseconds) < 253_402_300_800_000 else { return "never" }
        // The last second that has four digits for its year.
        return WallTime.textRoundedUp(min(Int64(milliseconds.rounded(.up)), 253_402_300_799_000))
    }

    /// How long it is from one instant to another, both in milliseconds since 1970, such as `14 min 59 s`: between the
    /// whole seconds that both are told as, so that a moment and the wait for it agree.
    package static func wait(until instant: Double, now: Int64) -> String {
        let seconds = (instant / 1000).rounded(.up) - (Double(now) / 1000).rounded(.up)
        return self.duration(seconds: Int(saturating: seconds))
    }

    /// A duration in its two largest units, such as `14 min 59 s`.
    package static func duration(seconds: Int) -> String {
        let units = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)]
        var rest = max(0, seconds)
        var parts: [String] = []
        for (name, length) in units where parts.count < 2 {
            if rest >= length || (length == 1 && parts.isEmpty) { parts.append("\(rest / length) \(name)") }
            rest %= length
        }
        return parts.joined(separator: " ")
    }
}

/// Whole numbers of what a gateway says, which may be anything.
extension Int {
    /// The number without its fraction: 0 for what is none, and the nearest there is for one that is too large.
    package init(saturating number: Double) {
        if let exact = Int(exactly: number.rounded(.towardZero)) {
            self = exact
        } else {
            self = number.isNaN ? 0 : number < 0 ? .min : .max
        }
    }
}

/// Words for a command line that somebody pastes into a shell.
package enum ShellText {
    /// The word, in single quotes when a shell would read more into it.
    package static func quoted(_ word: String) -> String {
        let isPlain = word.utf8.allSatisfy { byte in
            (byte | 0x20) &- 0x61 < 26 || byte &- 0x30 < 10 || "-_./:=,@+".utf8.contains(byte)
        }
        if isPlain, !word.isEmpty { return word }
        let parts = word.split(separator: "'", omittingEmptySubsequences: false)
        return "'\(parts.joined(separator: "'\\''"))'"
    }
}

/// What happens at a gateway, for people: a line for each thing.
package enum EventText {
    private static let nameWidth = 10

    /// One line without its line feed, such as
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
            event.disposition ?? event.outcome ?? event.reason, event.detail, event.topic.isEmpty ? nil : event.topic,
            event.device, event.wake.map { "wake \($0)" }, event.apnsID.map { "apns-id \($0)" },
        ]
        return TerminalText.harmless(parts.compactMap { $0 }.joined(separator: "  "))
    }
}

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

/// Tables for people.
package enum TableText {
    /// The rows as lines, with aligned columns; the last column is not padded.
    package static func lines(_ rows: [[String]]) -> String {
        let harmless = rows.map { $0.map { TerminalText.harmless($0) } }
        let columns = (harmless.first?.count ?? 1) - 1
        let widths = (0..<columns).map { column in harmless.map { $0[column].count }.max() ?? 0 }
        return harmless.map { row in
            let cells = zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
            let line = (cells + [row[columns]]).joined(separator: "  ")
            return String(line.reversed().drop { $0 == " " }.reversed()) + "\n"
        }.joined()
    }

    /// A page of a list, whose columns have the same widths on every page; the last column is not padded.
    static func page(
        _ rows: [JSONValue],
        widths: [Int],
        head: [String]?,
        _ cells: (JSONValue) -> [String]
    ) -> String {
        guard !rows.isEmpty else { return "" }
        return ((head.map { [$0] } ?? []) + rows.map(cells)).map { row in
            let padded = zip(row, widths).map { $0 + String(repeating: " ", count: max(0, $1 - $0.count)) }
            return TerminalText.harmless((padded + row.suffix(1)).joined(separator: "  ")) + "\n"
        }.joined()
    }

    static func moment(_ value: JSONValue?) -> String { value?.number.map { TimeText.instant($0) } ?? "-" }
}

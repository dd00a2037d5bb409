import FoundationEssentials
import Platform

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

/// JSON text that is written by hand.
package enum JSONText {
    /// `text` as a JSON string.
    package static func quoted(_ text: String) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        return (try? encoder.encode(text)).map { String(decoding: $0, as: UTF8.self) } ?? "\"\""
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

/// The text form of durations: a number of seconds, or a number with the unit `s`, `m`, `h` or `d`. Examples are `90`,
/// `0.5`, `10m` and `1h`.
package enum DurationText {
    /// The end of a message about a duration in seconds. It mentions the form with a unit.
    package static let alternative = ", or such as \"10m\""

    /// The maximum duration, 100 years, in milliseconds. The sum of a few durations does not overflow.
    private static let millisecondsMax: Int64 = 3_155_760_000_000

    /// Returns the duration in milliseconds; nil if `text` is not a duration, has more than three decimals, or is
    /// longer than 100 years.
    package static func milliseconds(_ text: String) -> Int64? {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        let unit = text.last.flatMap { units[$0] }
        let parts = (unit == nil ? text[...] : text.dropLast()).split(separator: ".", omittingEmptySubsequences: false)
        guard let whole = parts.first.flatMap({ self.number($0, digitsMax: 10) }), parts.count <= 2 else { return nil }
        var thousandths: Int64 = 0
        if parts.count == 2 {
            guard let decimals = self.number(parts[1], digitsMax: 3) else { return nil }
            thousandths = decimals * [100, 10, 1][parts[1].count - 1]
        }
        let milliseconds = (whole * 1000 + thousandths) * (unit ?? 1)
        return milliseconds <= self.millisecondsMax ? milliseconds : nil
    }

    /// Returns a duration in its two largest units, such as `14 min 59 s`.
    package static func text(seconds: Int) -> String {
        let units = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)]
        var rest = max(0, seconds)
        var parts: [String] = []
        for (name, length) in units where parts.count < 2 {
            if rest >= length || (length == 1 && parts.isEmpty) { parts.append("\(rest / length) \(name)") }
            rest %= length
        }
        return parts.joined(separator: " ")
    }

    /// Returns a duration in its two largest units; in milliseconds if it is shorter than a second.
    package static func text(milliseconds: Int64) -> String {
        milliseconds < 1000 ? "\(milliseconds) ms" : self.text(seconds: Int(clamping: milliseconds / 1000))
    }

    private static func number(_ text: Substring, digitsMax: Int) -> Int64? {
        guard 1...digitsMax ~= text.count, text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 })
        else { return nil }
        return Int64(text)
    }
}

extension JSONValue {
    /// The value as a duration in seconds, from a number or from a text such as `"10m"`; nil for any other value.
    package var seconds: Double? {
        switch self {
        case .number(let number): number.double
        case .string(let text): DurationText.milliseconds(text).map { Double($0) / 1000 }
        case .null, .bool, .array, .object: nil
        }
    }
}

extension Duration {
    /// The duration in whole milliseconds, rounded toward zero.
    package var milliseconds: Int64 {
        self.components.seconds * 1000 + self.components.attoseconds / 1_000_000_000_000_000
    }
}

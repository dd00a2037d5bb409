import Platform

/// Instants and durations for people.
package enum TimeText {
    /// An instant in milliseconds since 1970, such as `2026-11-21T07:20:00Z`.
    package static func instant(_ milliseconds: Double) -> String {
        guard milliseconds.isFinite, abs(milliseconds) < 253_402_300_800_000 else { return "never" }
        return WallTime.text(Int64((milliseconds / 1000).rounded(.down)) * 1000)
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

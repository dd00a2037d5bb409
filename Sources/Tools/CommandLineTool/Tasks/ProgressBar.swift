/// How far a continued task is, as a line of a terminal: a bar, and numbers beside it.
package enum ProgressBar {
    /// The widest that a bar is, in characters, and the narrowest; below that there are numbers alone.
    package static let widths = 8...40
    /// Eighths of a character, but for none and all of it.
    private static let eighths: [Character] = ["▏", "▎", "▍", "▌", "▋", "▊", "▉"]

    /// The bar and its numbers in `width` characters.
    ///
    /// - Parameters:
    ///   - status: of a continued task that runs.
    ///   - pace: how fast it is.
    ///   - width: how many characters there are.
    ///   - now: in milliseconds since 1970.
    package static func line(_ status: TaskStatus, _ pace: TaskPace, width: Int, now: Int64) -> StyledLine {
        let facts = self.facts(status, pace, now: now)
        let room = width - facts.count - 2
        var line = StyledLine()
        if room >= self.widths.lowerBound {
            let length = min(room, self.widths.upperBound)
            let (done, left) = self.bar(status.progress?.share, length)
            line.append(done, pace.isStalled ? .warning : .first)
            line.append(left, .faint)
            line.append("  ")
        }
        line.append(facts, pace.isStalled ? .warning : .plain)
        return line
    }

    /// What is done and what is left of a bar of so many characters; one without a share has all of it left.
    package static func bar(_ share: Double?, _ length: Int) -> (done: String, left: String) {
        let all = max(0, length) * 8
        let done = min(all, max(0, Int(saturating: (share ?? 0) * Double(all))))
        var text = String(repeating: "█", count: done / 8)
        if done % 8 > 0 { text.append(self.eighths[done % 8 - 1]) }
        return (text, String(repeating: "·", count: max(0, length) - text.count))
    }

    /// What was told of a task: such as `40 %  40 of 100`.
    package static func counts(_ status: TaskStatus) -> String {
        guard let progress = status.progress else { return "no progress told yet" }
        let completed = self.count(progress.completed)
        guard let share = progress.share else { return "\(completed) done" }
        return "\(Int(saturating: share * 100)) %  \(completed) of \(self.count(progress.total))"
    }

    /// Such as `40 %  40 of 100  8.0/s  0:07 left`.
    package static func facts(_ status: TaskStatus, _ pace: TaskPace, now: Int64) -> String {
        let untilDeadline = status.deadline.map { "\(self.clock(($0 - Double(now)) / 1000)) to its deadline" }
        var parts = [self.counts(status)]
        guard let progress = status.progress else {
            return (parts + [untilDeadline].compactMap(\.self)).joined(separator: "  ")
        }
        let speed = pace.speed
        if pace.isStalled, progress.share != 1 {
            parts.append("stalled")
            if let untilDeadline { parts.append(untilDeadline) }
        } else if speed > 0 {
            parts.append("\(speed >= 10 ? self.count(speed.rounded()) : self.tenths(speed))/s")
            let left = progress.total - progress.completed
            if left > 0, progress.total > 0 { parts.append("\(self.clock(left / speed)) left") }
        }
        return parts.joined(separator: "  ")
    }

    /// A duration such as `0:07`, `12:30` or `3:05:00`.
    package static func clock(_ seconds: Double) -> String {
        let whole = max(0, min(Int(saturating: seconds.rounded()), 359_999))
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : String(number) }
        let minutes = whole / 60 % 60
        return whole < 3600
            ? "\(minutes):\(two(whole % 60))" : "\(whole / 3600):\(two(minutes)):\(two(whole % 60))"
    }

    private static func count(_ number: Double) -> String { String(Int(saturating: number)) }

    private static func tenths(_ number: Double) -> String {
        let tenths = Int(saturating: (number * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}

/// Lets a few lines of each cause through, and counts the others, so that nobody can fill a disk by giving cause.
///
/// A cause's first line opens a window; when the window ends, one line says how many there were besides.
package struct LogThrottle {
    /// The lines of one cause in a window.
    package static let linesMax = 5
    package static let windowMilliseconds: Int64 = 10_000
    /// The causes that are told apart at a time; of more those of one event are one.
    package static let causesMax = 256

    private struct Cause: Hashable {
        let event: GatewayEvent
        let text: String
    }

    private struct Window {
        let endsAt: Int64
        var lines = 0
        var suppressed = 0
        /// The last line that was not written.
        var last: LogLine?
    }

    private var windows: [Cause: Window] = [:]

    /// When the next line about suppressed ones is due, by the clock of `admit`; nil when none is.
    package private(set) var nextDue: Int64?

    package init() {}

    /// Whether a line is written.
    ///
    /// - `now`: milliseconds of a clock that never steps.
    package mutating func admit(_ line: LogLine, now: Int64) -> Bool {
        var cause = Cause(event: line.event, text: line.event.causeField.flatMap { line.fields[$0] } ?? "")
        if self.windows[cause] == nil, self.windows.count >= Self.causesMax {
            self.windows = self.windows.filter { $0.value.endsAt > now || $0.value.suppressed > 0 }
            if self.windows.count >= Self.causesMax { cause = Cause(event: line.event, text: "") }
        }
        var window = self.windows[cause] ?? Window(endsAt: now + Self.windowMilliseconds)
        if window.endsAt <= now, window.suppressed == 0 { window = Window(endsAt: now + Self.windowMilliseconds) }
        defer { self.windows[cause] = window }
        window.lines += 1
        guard window.lines > Self.linesMax else { return true }
        window.suppressed += 1
        window.last = line
        self.nextDue = min(self.nextDue ?? .max, window.endsAt)
        return false
    }

    /// The lines that say how many there were besides, of the windows that have ended by `now`: each is the last one
    /// that was not written, with `suppressed` and `seconds` in addition.
    package mutating func takeDue(_ now: Int64) -> [LogLine] {
        guard let due = self.nextDue, due <= now else { return [] }
        var lines: [LogLine] = []
        for (cause, window) in self.windows where window.endsAt <= now {
            self.windows[cause] = nil
            guard var line = window.last else { continue }
            line.fields["suppressed"] = "\(window.suppressed)"
            line.fields["seconds"] = "\(Self.windowMilliseconds / 1000)"
            lines.append(line)
        }
        self.nextDue = self.windows.values.filter { $0.suppressed > 0 }.map(\.endsAt).min()
        return lines.sorted { $0.time < $1.time }
    }
}

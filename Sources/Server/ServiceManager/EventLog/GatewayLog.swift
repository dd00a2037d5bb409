import FoundationEssentials
import Glibc
import Platform
import Synchronization
import Wire

/// A log with one line for each event that requires an operator's attention. Any thread may pass lines to it; its own
/// thread writes them.
///
/// Callers never wait for output. If the queue already has `linesMax` lines, or a line cannot be written, lines are
/// dropped and counted. `@unchecked Sendable`: `monitor` guards every field except the level.
package final class GatewayLog: @unchecked Sendable {
    /// The maximum number of lines in the queue.
    package static let linesMax = 1024

    /// The longest time that the log's thread waits for a line, in milliseconds.
    private static let waitMax: Int64 = 3_600_000

    private let level: Atomic<Int>
    private let sink: any LogSink
    private let monitor = Monitor()
    private var format: LogFormat
    private var throttle = LogThrottle()
    private var waiting: [LogLine] = []
    private var lost = 0
    private var hasThread = false
    private var isWriting = false
    private var isClosed = false
    /// The events that `writeOnce` has written.
    private var writtenOnce: Set<GatewayEvent> = []

    /// Creates a log that writes to the systemd journal if standard error is connected to it; otherwise to standard
    /// error.
    package convenience init(level: LogLevel, format: LogFormat) {
        self.init(level: level, format: format, sink: Systemd.isErrorInJournal ? SystemJournal() : StandardError())
    }

    package init(
        level: LogLevel,
        format: LogFormat,
        sink: any LogSink
    ) {
        self.level = Atomic(level.priority)
        self.format = format
        self.sink = sink
    }

    /// Sets another level and another format.
    package func set(level: LogLevel, format: LogFormat) {
        self.level.store(level.priority, ordering: .relaxed)
        self.monitor.withLock { self.format = format }
    }

    /// Returns true if lines about `event` are written at this level.
    func writes(_ event: GatewayEvent) -> Bool {
        event.level.priority <= self.level.load(ordering: .relaxed)
    }

    package func write(_ event: GatewayEvent, _ fields: [String: String] = [:]) {
        guard self.writes(event) else { return }
        let line = LogLine(time: SystemClock.wall, event: event, fields: fields)
        self.monitor.withLock {
            guard event.isThrottled else { return self.enqueue(line) }
            let due = self.throttle.nextDue
            for line in self.throttle.admitted(line, now: SystemClock.monotonic) { self.enqueue(line) }
            if self.throttle.nextDue != due { self.monitor.signal() }
        }
    }

    /// Writes a line about `event`. Later calls for the same event have no effect.
    ///
    /// - Returns: true for the first call, even if the level omits the line.
    package func writeOnce(_ event: GatewayEvent, _ fields: [String: String] = [:]) -> Bool {
        guard self.monitor.withLock({ self.writtenOnce.insert(event).inserted }) else { return false }
        self.write(event, fields)
        return true
    }

    /// Waits up to `seconds` until all earlier lines are written.
    package func flush(withinSeconds seconds: Double = 5) {
        self.monitor.withLock { self.waitUntilWritten(seconds) }
    }

    /// Accepts no more lines, and waits up to `seconds` until the queued lines are written.
    package func close(withinSeconds seconds: Double = 1) {
        self.monitor.withLock {
            for line in self.throttle.takeDue(.max) { self.enqueue(line) }
            self.isClosed = true
            self.monitor.broadcast()
            self.waitUntilWritten(seconds)
        }
    }

    /// Waits up to `seconds` until the queue is written. The caller must have locked `monitor`.
    private func waitUntilWritten(_ seconds: Double) {
        let deadline = SystemClock.monotonic + Int64(seconds * 1000)
        while self.isWriting || !self.waiting.isEmpty {
            guard self.monitor.wait(until: deadline) else { return }
        }
    }

    private func enqueue(_ line: LogLine) {
        guard !self.isClosed, self.waiting.count < Self.linesMax else {
            self.lost += 1
            return
        }
        self.waiting.append(line)
        if self.hasThread {
            self.monitor.signal()
        } else {
            do throws(ThreadFailure) {
                try NamedThread("log") { self.run() }
                self.hasThread = true
                self.isWriting = true
            } catch {
                // The next line tries again to start the thread.
                self.waiting.removeAll()
                self.lost += 1
            }
        }
    }

    // MARK: The log's thread

    private func run() {
        var lost = 0
        while let (lines, format) = self.take(lost: &lost) {
            for line in lines {
                guard self.sink.write(line, format) else {
                    lost += 1
                    continue
                }
                if lost > 0, self.sink.write(Self.saying(lost), format) { lost = 0 }
            }
        }
    }

    private static func saying(_ lost: Int) -> LogLine {
        LogLine(time: SystemClock.wall, event: .logLinesLost, fields: ["lines": "\(lost)"])
    }

    /// Waits for lines and removes them from the queue; returns nil if the log is closed and empty.
    ///
    /// - Parameter lost: increased by the number of lines lost since the last call.
    private func take(lost: inout Int) -> ([LogLine], LogFormat)? {
        self.monitor.lock()
        defer { self.monitor.unlock() }
        self.isWriting = false
        self.monitor.broadcast()
        while self.waiting.isEmpty {
            for line in self.throttle.takeDue(SystemClock.monotonic) { self.waiting.append(line) }
            guard self.waiting.isEmpty else { break }
            guard !self.isClosed else { return nil }
            let due = self.throttle.nextDue.map { max(0, $0 - SystemClock.monotonic) } ?? Self.waitMax
            _ = self.monitor.wait(until: SystemClock.monotonic + due)
        }
        defer { self.waiting = [] }
        self.isWriting = true
        lost += self.lost
        self.lost = 0
        return (self.waiting, self.format)
    }
}

/// A log line.
package struct LogLine: Hashable, Sendable {
    /// The time of the event, in milliseconds since 1970.
    package let time: Int64
    package let event: GatewayEvent
    /// The details of the event; never a device token, a credential or a payload.
    package var fields: [String: String]

    /// The maximum number of characters written of a field's value.
    package static let valueCountMax = 1024

    package init(time: Int64, event: GatewayEvent, fields: [String: String]) {
        self.time = time
        self.event = event
        self.fields = fields.mapValues { value in
            value.count <= Self.valueCountMax ? value : "\(value.prefix(Self.valueCountMax))…"
        }
    }
}

/// The severity of a log line; also the lowest severity that a log writes.
package enum LogLevel: String, CaseIterable, Sendable {
    case debug, info, warning, error

    /// The syslog priority: a more severe level has a lower one.
    var priority: Int {
        switch self {
        case .error: 3
        case .warning: 4
        case .info: 6
        case .debug: 7
        }
    }
}

/// The format of a log line: text for people, or one JSON object.
package enum LogFormat: String, CaseIterable, Sendable {
    case text, json
}

/// An output for log lines.
package protocol LogSink: Sendable {
    /// Writes a line; may block.
    ///
    /// - Returns: false if the line is lost.
    func write(_ line: LogLine, _ format: LogFormat) -> Bool
}

extension LogLine {
    /// The line for people: time, level, event, and the fields sorted by name. Ambiguous values are quoted.
    package var text: String {
        "\(WallTime.text(self.time)) \(self.event.level.rawValue) \(self.message)"
    }

    /// The event and its fields.
    package var message: String {
        self.fields.sorted { $0.key < $1.key }.reduce(self.event.rawValue) { line, field in
            "\(line) \(field.key)=\(Self.quoted(field.value))"
        }
    }

    /// The line for programs: one JSON object.
    package var json: String {
        var members = self.fields
        members["time"] = WallTime.text(self.time)
        members["level"] = self.event.level.rawValue
        members["event"] = self.event.rawValue
        let object = JSONWriter.object { writer in
            for (name, value) in members.sorted(by: { $0.key < $1.key }) {
                writer.key(name)
                writer.string(value)
            }
        }
        return TerminalText.json(String(decoding: object, as: UTF8.self))
    }

    /// The characters that need no quotation marks, besides ASCII letters and digits.
    private static let plain = Set("-_.:/,+@%[]()".unicodeScalars)

    /// Returns the value unchanged if it is unambiguous; otherwise in quotation marks with JSON escapes. Values may
    /// come from unknown peers. A line feed in a value must not begin a new line, and a terminal must not receive
    /// control sequences.
    package static func quoted(_ value: String) -> String {
        let isPlain = value.unicodeScalars.allSatisfy { scalar in
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9": true
            default: Self.plain.contains(scalar)
            }
        }
        guard !isPlain || value.isEmpty else { return value }
        var text = "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"", "\\": text += "\\\(scalar)"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            default: text += TerminalText.isShown(scalar) ? String(scalar) : TerminalText.escaped(scalar)
            }
        }
        return text + "\""
    }
}

/// Writes lines to standard error, each with one `write`.
package struct StandardError: LogSink {
    /// The descriptor to write to.
    private let descriptor: Int32

    package init(descriptor: Int32 = STDERR_FILENO) {
        self.descriptor = descriptor
    }

    package func write(_ line: LogLine, _ format: LogFormat) -> Bool {
        let text = format == .json ? line.json : line.text
        return "\(text)\n".withByteView { (try? Descriptor.writeWhole(self.descriptor, $0)) != nil }
    }
}

/// Writes entries with separate fields to the systemd journal. `journalctl` can search the fields.
package struct SystemJournal: LogSink {
    package func write(_ line: LogLine, _ format: LogFormat) -> Bool {
        // The systemd journal may reject the entry and still accept the line from standard error.
        Systemd.sendToJournal(Self.fields(line)) || StandardError().write(line, format)
    }

    /// Returns an entry's fields, each as `NAME=VALUE`. The fields of the line get the prefix `WAKEGATE_`.
    package static func fields(_ line: LogLine) -> [String] {
        let own = line.fields.sorted { $0.key < $1.key }.map { "WAKEGATE_\(self.name($0.key))=\($0.value)" }
        return [
            "MESSAGE=\(line.message)", "PRIORITY=\(line.event.level.priority)", "SYSLOG_IDENTIFIER=wakegate",
            "WAKEGATE_EVENT=\(line.event.rawValue)",
        ] + own
    }

    /// Returns a name in the form that the systemd journal requires, such as `POLICY_VERSION` for `policyVersion`.
    private static func name(_ key: String) -> String {
        key.reduce(into: "") { name, letter in
            if letter.isUppercase { name += "_" }
            name += letter.uppercased()
        }
    }
}

/// Admits a few lines of each cause in a window and counts the others. A peer therefore cannot fill the disk with
/// lines.
///
/// A cause's first line starts a window. When the window ends, one line reports the number of suppressed lines.
package struct LogThrottle {
    /// The maximum number of lines of one cause in a window.
    package static let linesMax = 5
    package static let windowMilliseconds: Int64 = 10_000
    /// The maximum number of distinct causes in current windows. When it is reached, all new causes of an event share
    /// one window.
    package static let causesMax = 256

    private struct Cause: Hashable {
        let event: GatewayEvent
        let text: String
    }

    private struct Window {
        let endsAt: Int64
        var lines = 0
        var suppressed = 0
        /// The last suppressed line.
        var last: LogLine?
    }

    private var windows: [Cause: Window] = [:]

    /// The time of the next line about suppressed lines, by the clock of `admitted`; nil if no lines were suppressed.
    package private(set) var nextDue: Int64?

    package init() {}

    /// Returns the lines to write: the result of `takeDue`, and the new line unless it is suppressed.
    ///
    /// - `now`: milliseconds of a monotonic clock.
    package mutating func admitted(_ line: LogLine, now: Int64) -> [LogLine] {
        let due = self.takeDue(now)
        var cause = Cause(event: line.event, text: line.event.throttleField.flatMap { line.fields[$0] } ?? "")
        if self.windows[cause] == nil, self.windows.count >= Self.causesMax {
            self.windows = self.windows.filter { $0.value.endsAt > now }
            if self.windows.count >= Self.causesMax { cause = Cause(event: line.event, text: "") }
        }
        var window = self.windows[cause] ?? Window(endsAt: now + Self.windowMilliseconds)
        if window.endsAt <= now { window = Window(endsAt: now + Self.windowMilliseconds) }
        defer { self.windows[cause] = window }
        window.lines += 1
        guard window.lines > Self.linesMax else { return due + [line] }
        window.suppressed += 1
        window.last = line
        self.nextDue = min(self.nextDue ?? .max, window.endsAt)
        return due
    }

    /// Returns a line for each window that ended by `now` with suppressed lines. The line is the last suppressed one,
    /// with the additional fields `suppressed` and `seconds`.
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

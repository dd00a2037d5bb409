import FoundationEssentials
import Platform
import Synchronization

/// Takes one line for each thing an operator would act on, from any thread, and writes it on a thread of its own.
///
/// Who logs never waits for whoever reads: with `linesMax` lines waiting, or when they cannot be written, further ones
/// are lost and counted. It is `Sendable` without the compiler's proof: `monitor` guards every field but the level.
package final class GatewayLog: @unchecked Sendable {
    /// The most lines that wait to be written.
    package static let linesMax = 1024

    /// The longest wait for a line, in milliseconds.
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

    /// Writes to the journal where standard error is one, and to standard error otherwise.
    package convenience init(level: LogLevel, format: LogFormat) {
        self.init(level: level, format: format, sink: Systemd.isErrorInJournal ? SystemJournal() : StandardError())
    }

    package init(
        level: LogLevel,
        format: LogFormat,
        sink: any LogSink
    ) {
        self.level = Atomic(Self.rank(level))
        self.format = format
        self.sink = sink
    }

    /// Goes on with another level and another format.
    package func set(level: LogLevel, format: LogFormat) {
        self.level.store(Self.rank(level), ordering: .relaxed)
        self.monitor.withLock { self.format = format }
    }

    /// Whether lines about `event` are written at all.
    func writes(_ event: GatewayEvent) -> Bool {
        Self.rank(event.level) >= self.level.load(ordering: .relaxed)
    }

    package func write(_ event: GatewayEvent, _ fields: [String: String] = [:]) {
        guard self.writes(event) else { return }
        let line = LogLine(time: SystemClock.wall, event: event, fields: fields)
        self.monitor.withLock {
            let due = self.throttle.nextDue
            if !event.isThrottled || self.throttle.admit(line, now: SystemClock.monotonic) {
                self.enqueue(line)
            } else if self.throttle.nextDue != due {
                self.monitor.signal()
            }
        }
    }

    /// Waits until everything that was given to it is written, at most for so long.
    package func flush(withinSeconds seconds: Double = 5) {
        self.monitor.withLock { self.waitUntilWritten(seconds) }
    }

    /// Waits until everything is written, at most for so long, and takes no more.
    package func close(withinSeconds seconds: Double = 1) {
        self.monitor.withLock {
            for line in self.throttle.takeDue(.max) { self.enqueue(line) }
            self.isClosed = true
            self.monitor.broadcast()
            self.waitUntilWritten(seconds)
        }
    }

    /// `monitor` is locked.
    private func waitUntilWritten(_ seconds: Double) {
        let deadline = SystemClock.monotonic + Int64(seconds * 1000)
        while self.isWriting || !self.waiting.isEmpty {
            guard self.monitor.wait(until: deadline) else { return }
        }
    }

    private static func rank(_ level: LogLevel) -> Int {
        switch level {
        case .debug: 0
        case .info: 1
        case .warning: 2
        case .error: 3
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
                // The next line has another try.
                self.waiting.removeAll()
                self.lost += 1
            }
        }
    }

    // MARK: The thread

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

    /// Waits for lines; nil once the log is closed and empty.
    ///
    /// - Parameter lost: grows by those that found no room since.
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

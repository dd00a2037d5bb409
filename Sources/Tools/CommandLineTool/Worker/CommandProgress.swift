package import WakeWorker

/// The progress that the command of a continued task has reported. Its subtitle is the text for people; nil if the
/// command gave no text.
extension TaskProgress {
    /// Parses a line such as `progress 10/100 Exporting`; nil for any other line.
    ///
    /// - Parameter line: the line without its line feed.
    package init?(line: [UInt8]) {
        let words = String(decoding: line, as: UTF8.self).split(maxSplits: 2) { $0 == " " || $0 == "\t" || $0 == "\r" }
        guard words.count > 1, words[0] == "progress" else { return nil }
        let counts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard counts.count == 2, let completed = Self.count(counts[0]), let total = Self.count(counts[1]) else {
            return nil
        }
        self.init(completed: completed, total: total, subtitle: words.count > 2 ? Self.shown(words[2]) : nil)
    }

    private static func count(_ digits: Substring) -> Int64? {
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int64(digits) else { return nil }
        return count <= BackgroundTaskProgress.unitsMax ? count : nil
    }

    /// Returns the text without surrounding white space; nil if it is empty. A text that is too long is truncated.
    private static func shown(_ text: Substring) -> String? {
        let trimmed = text.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed()
        return trimmed.isEmpty ? nil : self.truncated(String(trimmed))
    }
}

/// Parses the data from a command's progress pipe into reports. A pure state machine.
///
/// Only complete lines of at most `lineBytesMax` bytes are parsed. Longer lines are skipped, which limits memory.
package struct ProgressLines: Hashable, Sendable {
    package static let lineBytesMax = 1024

    /// The result of parsing one portion of data.
    package struct Reading: Hashable, Sendable {
        /// The newest report in the data.
        package var newest: TaskProgress?
        /// The first malformed line, or the beginning of the first line that was too long; nil if there is none.
        package var fault: [UInt8]?

        package init() {}
    }

    private var line: [UInt8] = []
    /// True if the current line is too long and its remaining part must be skipped.
    private var isTooLong = false

    package init() {}

    /// Parses more data from the command.
    package mutating func received(_ bytes: ArraySlice<UInt8>) -> Reading {
        var reading = Reading()
        var rest = bytes
        while !rest.isEmpty {
            let end = rest.firstIndex(of: UInt8(ascii: "\n"))
            let part = rest[..<(end ?? rest.endIndex)]
            let room = Self.lineBytesMax - self.line.count
            self.line += part.prefix(room)
            if part.count > room { self.isTooLong = true }
            guard let end else { return reading }
            self.lineEnded(&reading)
            rest = rest[(end + 1)...]
        }
        return reading
    }

    private mutating func lineEnded(_ reading: inout Reading) {
        defer {
            self.line.removeAll(keepingCapacity: true)
            self.isTooLong = false
        }
        guard !self.line.isEmpty else { return }
        if !self.isTooLong, let progress = TaskProgress(line: self.line) {
            reading.newest = progress
        } else if reading.fault == nil {
            reading.fault = self.line
        }
    }
}

/// Determines when the newest progress is reported: at most once a second. A pure state machine.
///
/// Times are milliseconds of a monotonic clock.
package struct ProgressPacer: Hashable, Sendable {
    package static let interval: Int64 = 1000

    private var waiting: TaskProgress?
    private var sent: TaskProgress?
    private var reportedAt: Int64?

    package init() {}

    /// The time of the next report; nil if there is nothing to report.
    package var nextMoment: Int64? {
        self.waiting == nil ? nil : self.reportedAt.map { $0 + Self.interval } ?? .min
    }

    /// Records the progress that the command has reported.
    package mutating func reported(_ progress: TaskProgress) {
        self.waiting = progress == self.sent ? nil : progress
    }

    /// Returns the progress that must be reported now; nil if none is new or it is too early.
    package mutating func due(now: Int64) -> TaskProgress? {
        guard let moment = self.nextMoment, moment <= now else { return nil }
        self.reportedAt = now
        self.sent = self.waiting
        self.waiting = nil
        return self.sent
    }

    /// Returns the progress that must be reported immediately because the command has ended; nil if nothing is
    /// new.
    package mutating func ended() -> TaskProgress? {
        defer { self.waiting = nil }
        return self.waiting
    }
}

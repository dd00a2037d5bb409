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
        /// The newest report in the data that differs from the report before it.
        package var newest: TaskProgress?
        /// The first malformed line, or the beginning of the first line that was too long; nil if there is none.
        package var fault: [UInt8]?

        package init() {}
    }

    private var line: [UInt8] = []
    /// The newest report so far.
    private var newest: TaskProgress?
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
            guard progress != self.newest else { return }
            reading.newest = progress
            self.newest = progress
        } else if reading.fault == nil {
            reading.fault = self.line
        }
    }
}

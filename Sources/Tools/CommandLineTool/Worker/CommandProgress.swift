/// How far a continued task's command is, as it says so itself.
package struct CommandProgress: Hashable, Sendable {
    /// The most bytes of a text that are told.
    package static let textBytesMax = 256
    /// The largest count that is told: the last whole number that every JSON reader keeps.
    package static let countMax: Int64 = 1 << 53 - 1

    package let completed: Int64
    package let total: Int64
    /// What a person sees of it; nil when the command says nothing.
    package let text: String?

    package init(completed: Int64, total: Int64, text: String? = nil) {
        self.completed = completed
        self.total = total
        self.text = text
    }

    /// Reads a line such as `progress 10/100 Exporting`; nil for anything else.
    ///
    /// - Parameter line: without its line feed.
    package init?(line: [UInt8]) {
        let words = String(decoding: line, as: UTF8.self).split(maxSplits: 2) { $0 == " " || $0 == "\t" || $0 == "\r" }
        guard words.count > 1, words[0] == "progress" else { return nil }
        let counts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard counts.count == 2, let completed = Self.count(counts[0]), let total = Self.count(counts[1]) else {
            return nil
        }
        self.completed = completed
        self.total = total
        self.text = words.count > 2 ? Self.shown(words[2]) : nil
    }

    private static func count(_ digits: Substring) -> Int64? {
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int64(digits) else { return nil }
        return count <= self.countMax ? count : nil
    }

    /// The text without spaces around it, cut between two characters; nil for none.
    private static func shown(_ text: Substring) -> String? {
        var left = self.textBytesMax
        let trimmed = text.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed()
        let shown = trimmed.prefix { character in
            left -= character.utf8.count
            return left >= 0
        }
        return shown.isEmpty ? nil : String(shown)
    }
}

/// Turns what a command writes to its progress descriptor into reports; a pure machine.
///
/// Only whole lines count, of `lineBytesMax` bytes at most: what is longer is left out, so that memory stays bounded.
package struct ProgressLines: Hashable, Sendable {
    package static let lineBytesMax = 1024

    /// What a piece of text came to.
    package struct Reading: Hashable, Sendable {
        /// The newest report of the piece.
        package var newest: CommandProgress?
        /// The first line that was no report, or the beginning of one that was too long.
        package var fault: [UInt8]?

        package init() {}
    }

    private var line: [UInt8] = []
    /// Whether the line is too long already, and the rest of it is left out.
    private var isTooLong = false

    package init() {}

    /// Takes more of what the command writes.
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
        if !self.isTooLong, let progress = CommandProgress(line: self.line) {
            reading.newest = progress
        } else if reading.fault == nil {
            reading.fault = self.line
        }
    }
}

/// Decides when progress is told: at most once a second, and then what is newest; a pure machine.
///
/// Moments are milliseconds of a clock that never goes back.
package struct ProgressPacer: Hashable, Sendable {
    package static let interval: Int64 = 1000

    private var waiting: CommandProgress?
    private var told: CommandProgress?
    private var toldAt: Int64?

    package init() {}

    /// When something is to be told; nil for nothing.
    package var nextMoment: Int64? {
        self.waiting == nil ? nil : self.toldAt.map { $0 + Self.interval } ?? .min
    }

    /// The command has come so far.
    package mutating func reported(_ progress: CommandProgress) {
        self.waiting = progress == self.told ? nil : progress
    }

    /// What is to be told now; nil when nothing is new, or it is too early.
    package mutating func due(now: Int64) -> CommandProgress? {
        guard let moment = self.nextMoment, moment <= now else { return nil }
        self.toldAt = now
        self.told = self.waiting
        self.waiting = nil
        return self.told
    }

    /// What is to be told at once because the command has ended; nil when nothing is new.
    package mutating func ended() -> CommandProgress? {
        defer { self.waiting = nil }
        return self.waiting
    }
}

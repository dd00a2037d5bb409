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

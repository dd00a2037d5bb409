import Wire

/// Turns what a command writes into lines that begin with the id of its wake; a pure machine.
///
/// A line longer than `lineBytesMax` is broken into several, so that memory stays bounded and no reader chokes.
package struct OutputLines: Hashable, Sendable {
    package static let lineBytesMax = 4096

    private let prefix: [UInt8]
    private var line: [UInt8] = []
    private var isContinued = false

    package init(prefix: String) {
        self.prefix = Array("\(TerminalText.harmless(prefix)) ".utf8)
    }

    /// The lines that are complete now, each with its prefix and a line feed.
    package mutating func received(_ bytes: ArraySlice<UInt8>) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var rest = bytes
        while !rest.isEmpty {
            let end = rest.firstIndex(of: UInt8(ascii: "\n"))
            let room = Self.lineBytesMax - self.line.count
            let part = rest[..<(end ?? rest.endIndex)].prefix(room)
            self.line += part
            rest = rest[part.endIndex...]
            if rest.first == UInt8(ascii: "\n") {
                // The feed after a line that was just broken ends nothing but that line.
                if !self.line.isEmpty || !self.isContinued { lines.append(self.takeLine()) }
                self.isContinued = false
                rest = rest.dropFirst()
            } else if self.line.count == Self.lineBytesMax {
                lines.append(self.takeLine())
                self.isContinued = true
            }
        }
        return lines
    }

    /// The command writes no more: what it wrote after its last line feed.
    package mutating func ended() -> [UInt8]? { self.line.isEmpty ? nil : self.takeLine() }

    private mutating func takeLine() -> [UInt8] {
        defer { self.line.removeAll(keepingCapacity: true) }
        return self.prefix + self.line + [UInt8(ascii: "\n")]
    }
}

/// Lines on their way to one of our own outputs: a bounded number, and not more a second than somebody can read.
///
/// A pure machine. What does not fit is dropped, and how much that was is said in a line of its own.
package struct OutputQueue: Hashable, Sendable {
    package static let bytesMax = 1 << 20
    package static let linesPerSecond: Int64 = 1000
    /// Lines that may come at once after a time of silence.
    package static let burst: Int64 = 5000

    private var waiting: [UInt8] = []
    private var written = 0
    private var dropped = 0
    /// Thousandths of lines that may come now.
    private var allowance = burst * 1000
    private var allowanceAt: Int64 = 0

    package init() {}

    package var isEmpty: Bool { self.written == self.waiting.count }

    /// Takes a line of a command; drops it when there is no room, or were too many of late.
    package mutating func append(_ line: [UInt8], now: Int64) {
        self.allowance = min(Self.burst * 1000, self.allowance + max(0, now - self.allowanceAt) * Self.linesPerSecond)
        self.allowanceAt = now
        guard self.allowance >= 1000, self.hasRoom(for: line) else {
            self.dropped += 1
            return
        }
        self.allowance -= 1000
        self.tellDropped()
        self.waiting += line
    }

    /// Takes a line of our own, which counts against the room alone.
    package mutating func appendOwn(_ line: String) {
        let bytes = Array("\(TerminalText.harmless(line))\n".utf8)
        if self.hasRoom(for: bytes) { self.waiting += bytes }
    }

    /// Says how many lines were dropped since that was said last.
    package mutating func tellDropped() {
        guard self.dropped > 0 else { return }
        let dropped = self.dropped
        self.dropped = 0
        self.appendOwn("wakegate: \(dropped) lines of the commands' output were dropped; they came too fast")
    }

    /// What to write next, at most `count` bytes.
    package func next(_ count: Int) -> ArraySlice<UInt8> { self.waiting[self.written...].prefix(count) }

    /// So many bytes of `next` are written.
    package mutating func wrote(_ count: Int) {
        self.written += count
        guard self.written * 2 >= self.waiting.count else { return }
        self.waiting.removeFirst(self.written)
        self.written = 0
    }

    private func hasRoom(for line: [UInt8]) -> Bool {
        self.waiting.count - self.written + line.count <= Self.bytesMax
    }
}

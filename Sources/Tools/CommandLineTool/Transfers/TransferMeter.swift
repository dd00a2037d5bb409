import Wire

/// How fast transfers are, and what is left of them.
///
/// Pure: moments are milliseconds on the caller's clock.
package struct TransferMeter: Hashable, Sendable {
    /// Over how long the rate is taken, in milliseconds.
    package static let window: Int64 = 5000

    private struct Sample: Hashable {
        let at: Int64
        let bytes: Int64
    }

    /// At most one for each tenth of a second of the window, and the one before.
    private var samples: [Sample] = []

    package init() {}

    /// So many bytes are there in all.
    package mutating func noted(_ bytes: Int64, at now: Int64) {
        if let last = self.samples.last {
            if bytes < last.bytes {
                // An entity that changed begins anew.
                self.samples = []
            } else if self.samples.count > 1, now - self.samples[self.samples.count - 2].at < 100 {
                self.samples.removeLast()
            }
        }
        self.samples.append(Sample(at: now, bytes: bytes))
        let old = self.samples.firstIndex { now - $0.at <= Self.window } ?? 0
        self.samples.removeFirst(max(0, old - 1))
    }

    /// Bytes a second as of a moment; nil while that cannot be told.
    package func rate(at now: Int64) -> Double? {
        guard let first = self.samples.first, let last = self.samples.last, now - first.at >= 200 else { return nil }
        return Double(last.bytes - first.bytes) * 1000 / Double(now - first.at)
    }
}

/// How far transfers are that are waited for together, as a line shows it.
package struct TransferProgressLine: Hashable, Sendable {
    /// How many there are, and how many of them have ended.
    package var count: Int
    package var endedCount: Int
    package var bytes: Int64
    /// Nil while the size of one is not known.
    package var total: Int64?
    /// Bytes a second; nil while that cannot be told.
    package var rate: Double?
    /// Why nothing moves; nil when something does, or nobody says.
    package var why: String?

    package init(count: Int, endedCount: Int, bytes: Int64, total: Int64?, rate: Double?, why: String? = nil) {
        self.count = count
        self.endedCount = endedCount
        self.bytes = bytes
        self.total = total
        self.rate = rate
        self.why = why
    }

    /// The line with a bar, as long as there is room for one.
    ///
    /// - Parameter width: of the terminal, in characters.
    package func bar(width: Int) -> String {
        let text = self.text
        let room = min(40, width - text.count - 4)
        guard let total = self.total, room >= 8 else { return String(text.prefix(max(0, width - 1))) }
        let part = total > 0 ? min(1, max(0, Double(self.bytes) / Double(total))) : 1
        let filled = Int(part * Double(room))
        let head = filled < room ? ">" : ""
        let bar = String(repeating: "=", count: filled) + head
        return "[\(bar)\(String(repeating: " ", count: room - bar.count))] \(text)"
    }

    /// The line without a bar, such as `45 %  12.3 MB of 27.0 MB  3.2 MB/s  5 s left`.
    package var text: String {
        var parts: [String] = []
        if let total = self.total {
            let percent = total > 0 ? min(100, max(0, self.bytes * 100 / total)) : 100
            parts.append("\(percent) %")
            parts.append("\(ByteText.text(self.bytes)) of \(ByteText.text(total))")
        } else {
            parts.append(ByteText.text(self.bytes))
        }
        if let rate = self.rate { parts.append("\(ByteText.text(Int64(rate)))/s") }
        if let total = self.total, let rate = self.rate, rate >= 1, total > self.bytes {
            let seconds = Int(saturating: (Double(total - self.bytes) / rate).rounded(.up))
            parts.append("\(TimeText.duration(seconds: seconds)) left")
        }
        if self.count > 1 { parts.append("\(self.endedCount) of \(self.count) ended") }
        if let why = self.why { parts.append(TerminalText.harmless(why)) }
        return parts.joined(separator: "  ")
    }
}

/// Numbers of bytes for people.
package enum ByteText {
    /// The number in the largest unit that leaves at least one, such as `12.3 MB`; units are powers of 1000.
    package static func text(_ bytes: Int64) -> String {
        let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"]
        var (unit, tenths) = (0, max(0, bytes) * (bytes > .max / 10 ? 1 : 10))
        if bytes > .max / 10 { (unit, tenths) = (1, bytes / 100) }
        while tenths >= 10_000, unit < units.count - 1 {
            tenths = (tenths + 500) / 1000
            unit += 1
        }
        return unit == 0 ? "\(tenths / 10) B" : "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }
}

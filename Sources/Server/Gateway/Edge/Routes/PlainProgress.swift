import Engine
import Wire

/// Reads progress as workers write it, without taking the JSON apart: four reports a second of each task would have it
/// taken apart for nothing.
///
/// It knows whole counts without leading zeros and texts of printable ASCII without escapes, each field once, with
/// spaces between them or none. What it takes means what `RequestBody` would make of it; all else is left to that.
struct PlainProgress {
    /// The most digits that are looked at: more stand for a number past the largest count.
    private static let digitsMax = 16

    private let body: ByteView
    private var place = 0

    /// - Returns: nil for a body that it does not know.
    static func read(_ body: ByteView) -> TaskProgress? {
        var reader = PlainProgress(body: body)
        return reader.progress()
    }

    private init(body: ByteView) { self.body = body }

    private mutating func progress() -> TaskProgress? {
        var counts: (completed: UInt64?, total: UInt64?)
        var texts: (title: String?, subtitle: String?)
        guard self.take(UInt8(ascii: "{")) else { return nil }
        repeat {
            guard let name = self.text(), self.take(UInt8(ascii: ":")) else { return nil }
            if name == "completed", counts.completed == nil {
                counts.completed = self.count()
                guard counts.completed != nil else { return nil }
            } else if name == "total", counts.total == nil {
                counts.total = self.count()
                guard counts.total != nil else { return nil }
            } else if name == "title", texts.title == nil {
                guard let title = self.text(), title.count <= RequestBody.textBytesMax else { return nil }
                texts.title = title.string
            } else if name == "subtitle", texts.subtitle == nil {
                guard let subtitle = self.text(), subtitle.count <= RequestBody.textBytesMax else { return nil }
                texts.subtitle = subtitle.string
            } else {
                return nil
            }
        } while self.take(UInt8(ascii: ","))
        guard self.take(UInt8(ascii: "}")), self.place == self.body.count, let completed = counts.completed,
            let total = counts.total
        else { return nil }
        return TaskProgress(completed: completed, total: total, title: texts.title, subtitle: texts.subtitle)
    }

    private mutating func skipSpaces() {
        while self.place < self.body.count, self.body[self.place] == UInt8(ascii: " ") { self.place += 1 }
    }

    /// Takes a byte that is next, whatever spaces stand before it.
    private mutating func take(_ byte: UInt8) -> Bool {
        self.skipSpaces()
        guard self.place < self.body.count, self.body[self.place] == byte else { return false }
        self.place += 1
        return true
    }

    /// What stands between two quotation marks.
    private mutating func text() -> ByteView? {
        guard self.take(UInt8(ascii: "\"")) else { return nil }
        let start = self.place
        while self.place < self.body.count {
            let byte = self.body[self.place]
            self.place += 1
            if byte == UInt8(ascii: "\"") { return self.body.slice(start, count: self.place - 1 - start) }
            guard (0x20...0x7E).contains(byte), byte != UInt8(ascii: "\\") else { return nil }
        }
        return nil
    }

    private mutating func count() -> UInt64? {
        self.skipSpaces()
        let start = self.place
        var count: UInt64 = 0
        while self.place < self.body.count, self.place - start < Self.digitsMax {
            let digit = self.body[self.place] &- UInt8(ascii: "0")
            guard digit <= 9 else { break }
            count = count * 10 + UInt64(digit)
            self.place += 1
        }
        let digits = self.place - start
        guard digits > 0, digits == 1 || self.body[start] != UInt8(ascii: "0"), count <= RequestBody.unitsMax else {
            return nil
        }
        return count
    }
}

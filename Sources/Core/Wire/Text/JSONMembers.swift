/// The members of a JSON object as they are written, so that a payload reaches its worker byte for byte.
///
/// It finds where values begin and end and does not judge them: that a value is well-formed is the gateway's promise.
package struct JSONMembers: Sendable {
    private let text: [UInt8]
    private var ranges: [String: Range<Int>] = [:]

    /// Finds the members of the object in `text`; nil when it is no object, or ends early.
    package init?(_ text: [UInt8]) {
        self.text = text
        var index = self.skipSpace(0)
        guard index < text.count, text[index] == UInt8(ascii: "{") else { return nil }
        index = self.skipSpace(index + 1)
        if index < text.count, text[index] == UInt8(ascii: "}") { return }
        while true {
            guard let nameEnd = self.stringEnd(index) else { return nil }
            let name = String(decoding: text[(index + 1)..<(nameEnd - 1)], as: UTF8.self)
            index = self.skipSpace(nameEnd)
            guard index < text.count, text[index] == UInt8(ascii: ":") else { return nil }
            let start = self.skipSpace(index + 1)
            guard let end = self.valueEnd(start) else { return nil }
            self.ranges[name] = start..<end
            index = self.skipSpace(end)
            guard index < text.count else { return nil }
            if text[index] == UInt8(ascii: "}") { return }
            guard text[index] == UInt8(ascii: ",") else { return nil }
            index = self.skipSpace(index + 1)
        }
    }

    /// The value's text as it is written; nil when there is no such member.
    package func raw(_ name: String) -> [UInt8]? {
        self.ranges[name].map { Array(self.text[$0]) }
    }

    private func skipSpace(_ start: Int) -> Int {
        var index = start
        while index < self.text.count, [0x20, 0x09, 0x0A, 0x0D].contains(self.text[index]) { index += 1 }
        return index
    }

    /// The index after the string that begins at `start`.
    private func stringEnd(_ start: Int) -> Int? {
        guard start < self.text.count, self.text[start] == UInt8(ascii: "\"") else { return nil }
        var index = start + 1
        while index < self.text.count {
            switch self.text[index] {
            case UInt8(ascii: "\\"): index += 2
            case UInt8(ascii: "\""): return index + 1
            default: index += 1
            }
        }
        return nil
    }

    /// The index after the value that begins at `start`.
    private func valueEnd(_ start: Int) -> Int? {
        var index = start
        var depth = 0
        while index < self.text.count {
            switch self.text[index] {
            case UInt8(ascii: "\""):
                guard let end = self.stringEnd(index) else { return nil }
                index = end
                if depth == 0 { return index }
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                // A number or a word ends where its object does.
                if depth == 0 { return index > start ? index : nil }
                depth -= 1
                if depth == 0 { return index + 1 }
            case UInt8(ascii: ","), 0x20, 0x09, 0x0A, 0x0D:
                if depth == 0 { return index > start ? index : nil }
            default: break
            }
            index += 1
        }
        return nil
    }
}

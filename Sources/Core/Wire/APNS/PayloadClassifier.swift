/// Checks whether a document is JSON and asks to wake the device. Builds no values.
///
/// The grammar is RFC 8259. Numbers of any size, escapes of unpaired surrogates and repeated names are valid. Strings
/// must be well-formed UTF-8, and a byte order mark is not allowed. Containers may be nested up to 512 deep. The gate
/// does not recurse, so its stack space is constant.
///
/// A document wakes the device if `content-available` in `aps` is the integer 1, written `1`. The values `0`, `false`
/// and `null` ask for no wake. Any other value, such as `1.0`, `true` or `"1"`, is the sender's error, which the
/// verdict reports. If a name is repeated, the first member counts. Names are compared after resolving escapes.
package struct PayloadClassifier {
    /// The maximum nesting depth of objects and arrays, including the outermost.
    package static let depthMax = 512

    /// The next expected part of the grammar.
    private enum Step {
        case value
        case key
        case endOfValue
        case endOfDocument
        case nothing
    }

    /// The member whose value comes next.
    private enum Member {
        case other
        case aps
        case contentAvailable
    }

    private var scanner: JSONScanner
    private var depth = 0
    /// Bit i is set if the container at depth i is an object.
    private var isObject: InlineArray<9, UInt64> = InlineArray(repeating: 0)
    private var member = Member.other
    private var hasSeenAPS = false
    private var isInsideAPS = false
    private var hasSeenContentAvailable = false
    private var wakes = false
    /// True if the value of `content-available` asks for no wake.
    private var requestsNoWake = false

    private init(_ document: ByteView) {
        self.scanner = JSONScanner(document)
    }

    /// Checks the whole document.
    package static func classify(_ document: ByteView) -> JSONVerdict {
        var classifier = PayloadClassifier(document)
        classifier.scanner.skipSpace()
        let startsAsObject = classifier.scanner.current == UInt8(ascii: "{")
        guard classifier.isJSON() else { return .notJSON }
        guard startsAsObject else { return .notAnObject }
        if classifier.wakes { return .wakes }
        return classifier.hasSeenContentAvailable && !classifier.requestsNoWake ? .wrongContentAvailable : .doesNotWake
    }

    private mutating func isJSON() -> Bool {
        var step = Step.value
        while true {
            switch step {
            case .value: step = self.value()
            case .key: step = self.key()
            case .endOfValue: step = self.endOfValue()
            case .endOfDocument: return self.scanner.isAtEnd
            case .nothing: return false
            }
        }
    }

    private mutating func value() -> Step {
        self.scanner.skipSpace()
        let member = self.member
        self.member = .other
        switch self.scanner.current {
        case UInt8(ascii: "\""):
            return self.scanner.string() == nil ? .nothing : .endOfValue
        case UInt8(ascii: "{"):
            guard self.open(isObject: true) else { return .nothing }
            if member == .aps { self.isInsideAPS = true }
            return self.closesAtOnce(UInt8(ascii: "}")) ? .endOfValue : .key
        case UInt8(ascii: "["):
            guard self.open(isObject: false) else { return .nothing }
            return self.closesAtOnce(UInt8(ascii: "]")) ? .endOfValue : .value
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            guard let number = self.scanner.number() else { return .nothing }
            if member == .contentAvailable {
                self.wakes = number == "1"
                self.requestsNoWake = number == "0"
            }
            return .endOfValue
        case UInt8(ascii: "t"): return self.scanner.skip("true") ? .endOfValue : .nothing
        case UInt8(ascii: "f"):
            if member == .contentAvailable { self.requestsNoWake = true }
            return self.scanner.skip("false") ? .endOfValue : .nothing
        case UInt8(ascii: "n"):
            if member == .contentAvailable { self.requestsNoWake = true }
            return self.scanner.skip("null") ? .endOfValue : .nothing
        default: return .nothing
        }
    }

    private mutating func key() -> Step {
        self.scanner.skipSpace()
        guard self.scanner.current == UInt8(ascii: "\""), let name = self.scanner.string() else { return .nothing }
        if self.depth == 1, !self.hasSeenAPS, name.reads("aps") {
            self.hasSeenAPS = true
            self.member = .aps
        } else if self.isInsideAPS, self.depth == 2, !self.hasSeenContentAvailable, name.reads("content-available") {
            self.hasSeenContentAvailable = true
            self.member = .contentAvailable
        }
        self.scanner.skipSpace()
        guard self.scanner.current == UInt8(ascii: ":") else { return .nothing }
        self.scanner.advance()
        return .value
    }

    private mutating func endOfValue() -> Step {
        self.scanner.skipSpace()
        guard self.depth > 0 else { return .endOfDocument }
        let isObject = self.isObject[self.depth >> 6] >> UInt64(self.depth & 63) & 1 == 1
        switch self.scanner.current {
        case UInt8(ascii: ","):
            self.scanner.advance()
            return isObject ? .key : .value
        case UInt8(ascii: "}") where isObject, UInt8(ascii: "]") where !isObject:
            self.close()
            return .endOfValue
        default: return .nothing
        }
    }

    /// Enters a container. Returns false if it is nested too deep.
    private mutating func open(isObject: Bool) -> Bool {
        guard self.depth < PayloadClassifier.depthMax else { return false }
        self.scanner.advance()
        self.depth += 1
        let bit = UInt64(1) << UInt64(self.depth & 63)
        if isObject {
            self.isObject[self.depth >> 6] |= bit
        } else {
            self.isObject[self.depth >> 6] &= ~bit
        }
        return true
    }

    /// Leaves the container and returns true if its closing bracket comes next.
    private mutating func closesAtOnce(_ bracket: UInt8) -> Bool {
        self.scanner.skipSpace()
        guard self.scanner.current == bracket else { return false }
        self.close()
        return true
    }

    private mutating func close() {
        self.scanner.advance()
        self.depth -= 1
        if self.depth == 1 { self.isInsideAPS = false }
    }
}

/// The verdict of `PayloadClassifier` on a document.
package enum JSONVerdict: Hashable, Sendable {
    /// The document is not JSON, or nested deeper than allowed.
    case notJSON
    /// The document is JSON, but not an object.
    case notAnObject
    /// The document is an object that asks to wake the device.
    case wakes
    /// The document is an object whose `content-available` is an error of the sender. It does not wake the device.
    case wrongContentAvailable
    /// The document is any other object.
    case doesNotWake
}

/// A position in a JSON text, with methods that read the next token.
struct JSONScanner {
    private let text: ByteView
    private(set) var position = 0

    init(_ text: ByteView) {
        self.text = text
    }

    /// The current byte; 0 at the end, which is not the start of a token.
    var current: UInt8 {
        self.position < self.text.count ? self.text[self.position] : 0
    }

    var isAtEnd: Bool { self.position == self.text.count }

    mutating func advance() {
        self.position += 1
    }

    mutating func skipSpace() {
        while self.position < self.text.count {
            switch self.text[self.position] {
            case 0x20, 0x0A, 0x0D, 0x09: self.position += 1
            default: return
            }
        }
    }

    /// Skips `literal` and returns true if it comes next.
    mutating func skip(_ literal: StaticString) -> Bool {
        let count = literal.utf8CodeUnitCount
        guard self.position + count <= self.text.count,
            self.text[self.position..<self.position + count] == literal
        else { return false }
        self.position += count
        return true
    }

    /// Reads a number; nil if it is malformed.
    mutating func number() -> ByteView? {
        let start = self.position
        if self.current == UInt8(ascii: "-") { self.position += 1 }
        if self.current == UInt8(ascii: "0") {
            self.position += 1
        } else {
            guard self.skipDigits() else { return nil }
        }
        if self.current == UInt8(ascii: ".") {
            self.position += 1
            guard self.skipDigits() else { return nil }
        }
        if self.current | 0x20 == UInt8(ascii: "e") {
            self.position += 1
            if self.current == UInt8(ascii: "+") || self.current == UInt8(ascii: "-") { self.position += 1 }
            guard self.skipDigits() else { return nil }
        }
        return self.text[start..<self.position]
    }

    /// Skips digits. Returns false if there are none.
    private mutating func skipDigits() -> Bool {
        let start = self.position
        while self.current &- 0x30 <= 9 { self.position += 1 }
        return self.position > start
    }

    /// Reads a string that starts with the current quote; nil if it is malformed or not UTF-8.
    mutating func string() -> JSONName? {
        self.position += 1
        let start = self.position
        var hasEscapes = false
        while true {
            self.skipPlainASCII()
            guard self.position < self.text.count else { return nil }
            let byte = self.text[self.position]
            if byte == UInt8(ascii: "\"") {
                let name = JSONName(text: self.text[start..<self.position], hasEscapes: hasEscapes)
                self.position += 1
                return name
            } else if byte == UInt8(ascii: "\\") {
                guard self.skipEscape() else { return nil }
                hasEscapes = true
            } else {
                // Also rejects control characters.
                guard self.skipSequences() else { return nil }
            }
        }
    }

    /// Skips bytes up to the first quote, backslash, control character or byte outside of ASCII.
    private mutating func skipPlainASCII() {
        // Tests one word first, because names are short, then 32 bytes at a time, because other strings are usually
        // long.
        guard self.skipPlainWord() else { return }
        while self.position + 48 <= self.text.count, self.areNextPlainASCII() { self.position += 32 }
        while self.position + 8 <= self.text.count { guard self.skipPlainWord() else { return } }
        while self.position < self.text.count {
            let byte = self.text[self.position]
            guard byte >= 0x20, byte < 0x80, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") else { return }
            self.position += 1
        }
    }

    /// Skips up to eight bytes, and stops before one at which `skipPlainASCII` stops. Returns false if it stopped
    /// before such a byte. Does nothing and returns true if fewer than eight bytes remain.
    @inline(__always)
    private mutating func skipPlainWord() -> Bool {
        guard self.position + 8 <= self.text.count else { return true }
        let ones: UInt64 = 0x0101_0101_0101_0101
        let word = self.text.word(at: self.position)
        let quote = word ^ ones &* 0x22
        let backslash = word ^ ones &* 0x5C
        // The high bit marks each byte that is special or outside of ASCII. A borrow may also mark a later byte, so
        // only the first mark is exact.
        let small = (quote &- ones) | (backslash &- ones) | (word &- ones &* 0x20)
        let special = (small | word) & (ones &* 0x80)
        self.position += special == 0 ? 8 : special.trailingZeroBitCount >> 3
        return special == 0
    }

    /// Returns true if `skipPlainASCII` would skip all of the next 32 bytes.
    @inline(__always)
    private func areNextPlainASCII() -> Bool {
        let special = self.special(at: self.position) | self.special(at: self.position + 16)
        let halves = special.halves
        return (halves[0] | halves[1]) & 0x8080_8080_8080_8080 == 0
    }

    /// Returns sixteen bytes, with the high bit set in each byte at which `skipPlainASCII` stops.
    @inline(__always)
    private func special(at position: Int) -> SIMD16<UInt8> {
        let bytes = self.text.load(SIMD16<UInt8>.self, at: position)
        let ones = SIMD16<UInt8>(repeating: 1)
        let quote = bytes ^ SIMD16(repeating: UInt8(ascii: "\""))
        let backslash = bytes ^ SIMD16(repeating: UInt8(ascii: "\\"))
        // Bytes outside of ASCII have the high bit set themselves.
        return bytes | (bytes &- SIMD16(repeating: 0x20)) | (quote &- ones) | (backslash &- ones)
    }

    /// Skips the escape that starts with the current backslash. Returns false if it is malformed.
    private mutating func skipEscape() -> Bool {
        self.position += 1
        switch self.current {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            self.position += 1
            return true
        case UInt8(ascii: "u"):
            guard self.position + 5 <= self.text.count else { return false }
            for digit in 1...4 where self.text[self.position + digit].hexDigitValue == nil { return false }
            self.position += 5
            return true
        default: return false
        }
    }

    /// Skips one or more UTF-8 sequences of at least two bytes. Returns false if a sequence is ill-formed.
    private mutating func skipSequences() -> Bool {
        repeat {
            // A control character has a sequence of one byte. It must be escaped.
            let (count, isCharacter) = self.text.sequence(at: self.position)
            guard isCharacter, count > 1 else { return false }
            self.position += count
        } while self.position < self.text.count && self.text[self.position] >= 0x80
        return true
    }
}

/// The characters between the quotes of a well-formed JSON string.
struct JSONName {
    let text: ByteView
    let hasEscapes: Bool

    /// Returns true if the string is `name` after resolving escapes. `name` consists of letters and hyphens, for which
    /// `\u` is the only escape.
    func reads(_ name: StaticString) -> Bool {
        guard self.hasEscapes else { return self.text == name }
        let name = ByteView(name)
        var index = 0
        for position in 0..<name.count {
            guard index < self.text.count else { return false }
            guard self.text[index] == UInt8(ascii: "\\") else {
                guard self.text[index] == name[position] else { return false }
                index += 1
                continue
            }
            guard self.text[index + 1] == UInt8(ascii: "u"),
                self.codeUnit(at: index + 2) == UInt16(name[position])
            else { return false }
            index += 6
        }
        return index == self.text.count
    }

    /// Returns the value of four hexadecimal digits.
    private func codeUnit(at index: Int) -> UInt16 {
        var value: UInt16 = 0
        for digit in 0..<4 { value = value << 4 | UInt16(self.text[index + digit].hexDigitValue ?? 0) }
        return value
    }
}

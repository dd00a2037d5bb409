/// Tells whether a document is JSON, and whether it asks for the device to be woken; it builds nothing.
///
/// The grammar is that of RFC 8259, all of it: numbers may be however large, an escape may name half a surrogate pair
/// and a name may come twice. Strings must be well-formed UTF-8. A byte order mark is not JSON. Containers may be
/// nested up to 512 deep; the gate does not recurse, so it needs the same stack for every document.
///
/// A document wakes when the member `content-available` of the member `aps` is the integer 1, written `1`: neither
/// `1.0` nor `1e0`, nor `true`, nor `"1"`. `0`, `false` and `null` ask for no wake; any other value is a mistake of its
/// sender, which the verdict tells. Of several members of one name the first counts, whatever it is. Names are compared
/// as they read without escapes.
package struct JSONGate {
    /// How deep objects and arrays may be nested, the outermost counted.
    package static let depthMax = 512

    /// What the scanner expects next.
    private enum Step {
        case value
        case key
        case endOfValue
        case endOfDocument
        case nothing
    }

    /// Which member's value comes next.
    private enum Member {
        case other
        case aps
        case contentAvailable
    }

    private var scanner: JSONScanner
    private var depth = 0
    /// Bit i of the whole says that the container at depth i is an object.
    private var isObject: InlineArray<9, UInt64> = InlineArray(repeating: 0)
    private var member = Member.other
    private var hasSeenAPS = false
    private var isInsideAPS = false
    private var hasSeenContentAvailable = false
    private var wakes = false
    /// True if `content-available` is one of the values that ask for no wake.
    private var asksForNoWake = false

    private init(_ document: ByteView) {
        self.scanner = JSONScanner(document)
    }

    /// Reads the whole document.
    package static func judge(_ document: ByteView) -> JSONVerdict {
        var gate = JSONGate(document)
        gate.scanner.skipSpace()
        let startsAsObject = gate.scanner.current == UInt8(ascii: "{")
        guard gate.isJSON() else { return .notJSON }
        guard startsAsObject else { return .notAnObject }
        if gate.wakes { return .wakes }
        return gate.hasSeenContentAvailable && !gate.asksForNoWake ? .wrongContentAvailable : .doesNotWake
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
                self.asksForNoWake = number == "0"
            }
            return .endOfValue
        case UInt8(ascii: "t"): return self.scanner.skip("true") ? .endOfValue : .nothing
        case UInt8(ascii: "f"):
            if member == .contentAvailable { self.asksForNoWake = true }
            return self.scanner.skip("false") ? .endOfValue : .nothing
        case UInt8(ascii: "n"):
            if member == .contentAvailable { self.asksForNoWake = true }
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

    /// Enters a container; false when it is nested too deep.
    private mutating func open(isObject: Bool) -> Bool {
        guard self.depth < JSONGate.depthMax else { return false }
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

    /// Leaves the container if it ends right after its beginning.
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

/// What `JSONGate` finds a document to be.
package enum JSONVerdict: Hashable, Sendable {
    /// Not a JSON text, or one nested deeper than the gate allows.
    case notJSON
    /// A JSON text, but not an object.
    case notAnObject
    /// An object that asks for the device to be woken.
    case wakes
    /// An object whose `content-available` is neither 1 nor a value that asks for no wake; it does not wake.
    case wrongContentAvailable
    /// Any other object.
    case doesNotWake
}

/// A place in a JSON text, and the tokens from there on.
struct JSONScanner {
    private let text: ByteView
    private var position = 0

    init(_ text: ByteView) {
        self.text = text
    }

    /// The byte at hand; 0 past the end, which begins no token.
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

    /// Passes `literal` if it comes next.
    mutating func skip(_ literal: StaticString) -> Bool {
        let count = literal.utf8CodeUnitCount
        guard self.position + count <= self.text.count,
            self.text[self.position..<self.position + count] == literal
        else { return false }
        self.position += count
        return true
    }

    /// Passes a number and returns it; nil when it breaks the grammar.
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

    /// Passes digits; false when there is none.
    private mutating func skipDigits() -> Bool {
        let start = self.position
        while self.current &- 0x30 <= 9 { self.position += 1 }
        return self.position > start
    }

    /// Passes a string, which the quote at hand begins; nil when it breaks the grammar or is not UTF-8.
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
                // A control character is no beginning of a sequence either.
                guard self.skipSequences() else { return nil }
            }
        }
    }

    /// Passes bytes up to the first quote, backslash, control character or byte outside ASCII.
    private mutating func skipPlainASCII() {
        // Names are short, and most strings that are not are long.
        guard self.skipPlainWord() else { return }
        while self.position + 48 <= self.text.count, self.areNextPlainASCII() { self.position += 32 }
        while self.position + 8 <= self.text.count { guard self.skipPlainWord() else { return } }
        while self.position < self.text.count {
            let byte = self.text[self.position]
            guard byte >= 0x20, byte < 0x80, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") else { return }
            self.position += 1
        }
    }

    /// Passes the plain bytes among the next eight, if there are so many; false when there was another among them.
    @inline(__always)
    private mutating func skipPlainWord() -> Bool {
        guard self.position + 8 <= self.text.count else { return true }
        let ones: UInt64 = 0x0101_0101_0101_0101
        let word = self.text.word(at: self.position)
        let quote = word ^ ones &* 0x22
        let backslash = word ^ ones &* 0x5C
        // Each difference has the high bit set where a byte was too small, or outside ASCII, which is special, too.
        // Borrows may set it in later bytes, so the first one is exact.
        let small = (quote &- ones) | (backslash &- ones) | (word &- ones &* 0x20)
        let special = (small | word) & (ones &* 0x80)
        self.position += special == 0 ? 8 : special.trailingZeroBitCount >> 3
        return special == 0
    }

    /// Whether the next 32 bytes are none of those at which `skipPlainASCII` ends.
    @inline(__always)
    private func areNextPlainASCII() -> Bool {
        let special = self.special(at: self.position) | self.special(at: self.position + 16)
        let halves = special.halves
        return (halves[0] | halves[1]) & 0x8080_8080_8080_8080 == 0
    }

    /// Sets the high bit of each of sixteen bytes that is one at which `skipPlainASCII` ends.
    @inline(__always)
    private func special(at position: Int) -> SIMD16<UInt8> {
        let bytes = self.text.load(SIMD16<UInt8>.self, at: position)
        let ones = SIMD16<UInt8>(repeating: 1)
        let quote = bytes ^ SIMD16(repeating: UInt8(ascii: "\""))
        let backslash = bytes ^ SIMD16(repeating: UInt8(ascii: "\\"))
        // Where a difference has the high bit set without a reason, the byte has it itself.
        return bytes | (bytes &- SIMD16(repeating: 0x20)) | (quote &- ones) | (backslash &- ones)
    }

    /// Passes an escape, which the backslash at hand begins.
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

    /// Passes UTF-8 sequences of two bytes and more, at least one; false when one is ill-formed.
    private mutating func skipSequences() -> Bool {
        repeat {
            // Of one byte there are only control characters here, which a string writes as escapes.
            let (count, isCharacter) = self.text.sequence(at: self.position)
            guard isCharacter, count > 1 else { return false }
            self.position += count
        } while self.position < self.text.count && self.text[self.position] >= 0x80
        return true
    }
}

/// The characters between the quotes of a JSON string that has been found well-formed.
struct JSONName {
    let text: ByteView
    let hasEscapes: Bool

    /// Whether the string is `name`, once escapes are resolved. `name` is made of letters and hyphens, which have no
    /// escape other than `\u`.
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

    /// The number that four hexadecimal digits stand for.
    private func codeUnit(at index: Int) -> UInt16 {
        var value: UInt16 = 0
        for digit in 0..<4 { value = value << 4 | UInt16(self.text[index + digit].hexDigitValue ?? 0) }
        return value
    }
}

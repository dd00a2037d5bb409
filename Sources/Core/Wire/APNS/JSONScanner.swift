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

/// A position in a trace: the `traceparent` of W3C Trace Context.
package struct TraceParent: Hashable, BitwiseCopyable, Sendable {
    /// The first half of the trace id; its first byte is in the lowest bits.
    package let first: UInt64
    /// The second half of the trace id.
    package let second: UInt64
    /// The parent id; its first byte is in the lowest bits.
    package let parent: UInt64
    /// The flags. Bit 0 is set if the trace is recorded.
    package let flags: UInt8

    /// The number of characters that `write` appends.
    package static let textCount = 55

    /// Creates a value from its stored parts.
    package init(first: UInt64, second: UInt64, parent: UInt64, flags: UInt8) {
        self.first = first
        self.second = second
        self.parent = parent
        self.flags = flags
    }

    /// Parses a header's value; nil if the W3C recommendation requires that the value be ignored.
    ///
    /// For versions newer than 00, only the fields of version 00 and the first flag are read.
    package init?(_ text: ByteView) {
        let hyphen = UInt8(ascii: "-")
        guard text.count >= Self.textCount, text[2] == hyphen, text[35] == hyphen, text[52] == hyphen,
            let version = Self.byte(text, at: 0), version != 0xFF,
            text.count == Self.textCount || (version != 0 && text[Self.textCount] == hyphen),
            let first = Self.word(text, at: 3), let second = Self.word(text, at: 19), first | second != 0,
            let parent = Self.word(text, at: 36), parent != 0, let flags = Self.byte(text, at: 53)
        else { return nil }
        self.init(first: first, second: second, parent: parent, flags: version == 0 ? flags : flags & 1)
    }

    /// Appends the 55 characters of version 00.
    package func write(to buffer: inout ByteBuffer) {
        buffer.append("00-")
        Self.write(self.first, to: &buffer)
        Self.write(self.second, to: &buffer)
        buffer.append("-")
        Self.write(self.parent, to: &buffer)
        buffer.append("-")
        let digits = HexadecimalWord.encode(UInt32(self.flags))
        buffer.append(UInt8(truncatingIfNeeded: digits))
        buffer.append(UInt8(truncatingIfNeeded: digits >> 8))
    }

    private static func write(_ word: UInt64, to buffer: inout ByteBuffer) {
        buffer.append(word: HexadecimalWord.encode(UInt32(truncatingIfNeeded: word)))
        buffer.append(word: HexadecimalWord.encode(UInt32(truncatingIfNeeded: word >> 32)))
    }

    /// Returns the eight bytes of sixteen lower-case digits; nil if one of them is not such a digit.
    private static func word(_ text: ByteView, at start: Int) -> UInt64? {
        let (digits0, digits1) = (text.word(at: start), text.word(at: start + 8))
        guard HexadecimalWord.upperCaseMask(digits0) | HexadecimalWord.upperCaseMask(digits1) == 0 else { return nil }
        return HexadecimalWord.decode(digits0, digits1)
    }

    private static func byte(_ text: ByteView, at index: Int) -> UInt8? {
        guard let high = Self.digit(text[index]), let low = Self.digit(text[index + 1]) else { return nil }
        return high << 4 | low
    }

    /// Returns the value of a lower-case digit; nil for any other byte.
    private static func digit(_ byte: UInt8) -> UInt8? { byte == byte.lowercasedASCII ? byte.hexDigitValue : nil }
}

/// The canonical UUID that names a push, with the case of each letter, so that it is written back byte for byte.
///
/// Two identifiers that differ in the case of a letter alone are not equal.
@frozen
@usableFromInline
package struct APNsID: Hashable, BitwiseCopyable, Sendable {
    /// Bytes 0 to 7, the first lowest.
    @usableFromInline
    package let first: UInt64

    /// Bytes 8 to 15, the first lowest.
    @usableFromInline
    package let second: UInt64

    /// Bit i says that hexadecimal digit i, of 0 to 31, is an upper-case letter.
    @usableFromInline
    package let upperCase: UInt32

    /// The number of characters `write` appends.
    @inlinable
    package static var textCount: Int { 36 }

    /// An identifier from its stored parts.
    @inlinable
    package init(first: UInt64, second: UInt64, upperCase: UInt32) {
        self.first = first
        self.second = second
        self.upperCase = upperCase
    }

    /// An identifier made of 128 random bits, written in lower case; like those of APNs it has no version field.
    @inlinable
    package init(random: (UInt64, UInt64)) {
        self.init(first: random.0, second: random.1, upperCase: 0)
    }

    /// Reads 8-4-4-4-12 hexadecimal digits of either case; nil for anything else.
    @inlinable
    package init?(_ text: ByteView) {
        let hyphen = UInt8(ascii: "-")
        guard text.count == APNsID.textCount, text[8] == hyphen, text[13] == hyphen, text[18] == hyphen,
            text[23] == hyphen
        else { return nil }
        let digits0 = text.word(at: 0)
        let digits1 = UInt64(text.halfWord(at: 9)) | UInt64(text.halfWord(at: 14)) << 32
        let digits2 = UInt64(text.halfWord(at: 19)) | UInt64(text.halfWord(at: 24)) << 32
        let digits3 = text.word(at: 28)
        guard let bytes0 = HexadecimalWord.decode(digits0), let bytes1 = HexadecimalWord.decode(digits1),
            let bytes2 = HexadecimalWord.decode(digits2), let bytes3 = HexadecimalWord.decode(digits3)
        else { return nil }
        let upper01 = HexadecimalWord.upperCaseMask(digits0) | HexadecimalWord.upperCaseMask(digits1) << 8
        let upper23 = HexadecimalWord.upperCaseMask(digits2) | HexadecimalWord.upperCaseMask(digits3) << 8
        self.init(
            first: UInt64(bytes0) | UInt64(bytes1) << 32,
            second: UInt64(bytes2) | UInt64(bytes3) << 32,
            upperCase: upper01 | upper23 << 16
        )
    }

    /// The digits `group`, of 0 to 3, stands for: eight at a time.
    @inlinable
    func digits(_ group: Int) -> UInt64 {
        let half = group < 2 ? self.first : self.second
        let digits = HexadecimalWord.encode(UInt32(truncatingIfNeeded: half >> UInt64((group & 1) * 32)))
        guard self.upperCase != 0 else { return digits }
        return HexadecimalWord.applyUpperCase(digits, mask: self.upperCase >> UInt32(group * 8))
    }

    /// Appends the 36 characters of the identifier.
    @inlinable
    package func write(to buffer: inout ByteBuffer) {
        let hyphen = UInt8(ascii: "-")
        let digits1 = self.digits(1)
        let digits2 = self.digits(2)
        buffer.append(word: self.digits(0))
        buffer.append(hyphen)
        buffer.append(halfWord: UInt32(truncatingIfNeeded: digits1))
        buffer.append(hyphen)
        buffer.append(halfWord: UInt32(truncatingIfNeeded: digits1 >> 32))
        buffer.append(hyphen)
        buffer.append(halfWord: UInt32(truncatingIfNeeded: digits2))
        buffer.append(hyphen)
        buffer.append(halfWord: UInt32(truncatingIfNeeded: digits2 >> 32))
        buffer.append(word: self.digits(3))
    }
}

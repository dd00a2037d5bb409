/// The UUID that names a push, with the case of each letter, so that it is written back byte for byte.
///
/// Identifiers that differ in letter case alone are equal: the canonical form of a UUID is lower case.
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

    /// Compares the 128 bits, without the case of the letters.
    @inlinable
    package static func == (left: APNsID, right: APNsID) -> Bool {
        left.first == right.first && left.second == right.second
    }

    /// Hashes what `==` compares.
    @inlinable
    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.first)
        hasher.combine(self.second)
    }

    /// Returns true if both are written with the same characters.
    @inlinable
    package func isSpelled(as other: APNsID) -> Bool { self == other && self.upperCase == other.upperCase }

    /// The 32 digits of the identifier, eight a word.
    @inlinable
    var digits: (UInt64, UInt64, UInt64, UInt64) {
        let digits0 = HexadecimalWord.encode(UInt32(truncatingIfNeeded: self.first))
        let digits1 = HexadecimalWord.encode(UInt32(truncatingIfNeeded: self.first >> 32))
        let digits2 = HexadecimalWord.encode(UInt32(truncatingIfNeeded: self.second))
        let digits3 = HexadecimalWord.encode(UInt32(truncatingIfNeeded: self.second >> 32))
        guard self.upperCase != 0 else { return (digits0, digits1, digits2, digits3) }
        return (
            HexadecimalWord.applyUpperCase(digits0, mask: self.upperCase),
            HexadecimalWord.applyUpperCase(digits1, mask: self.upperCase >> 8),
            HexadecimalWord.applyUpperCase(digits2, mask: self.upperCase >> 16),
            HexadecimalWord.applyUpperCase(digits3, mask: self.upperCase >> 24)
        )
    }

    /// Appends the 36 characters of the identifier.
    @inlinable
    package func write(to buffer: inout ByteBuffer) {
        let hyphen = UInt64(UInt8(ascii: "-"))
        let digits = self.digits
        // The words that the text is made of, with the hyphens between the digits.
        let second = hyphen | digits.1 << 8 & 0xFF_FFFF_FF00 | hyphen << 40 | (digits.1 >> 32) << 48
        let third = digits.1 >> 48 | hyphen << 16 | (digits.2 << 32) >> 8 | hyphen << 56
        buffer.append(digits.0, second)
        buffer.append(third, digits.2 >> 32 | digits.3 << 32)
        buffer.append(halfWord: UInt32(truncatingIfNeeded: digits.3 >> 32))
    }
}

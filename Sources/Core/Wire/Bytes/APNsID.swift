/// The UUID of a push, with the case of each letter. It can therefore be written exactly as received.
///
/// Identifiers that differ only in letter case are equal.
@frozen
@usableFromInline
package struct APNsID: Hashable, BitwiseCopyable, Sendable {
    /// Bytes 0 to 7; byte 0 is in the lowest bits.
    @usableFromInline
    package let first: UInt64

    /// Bytes 8 to 15; byte 8 is in the lowest bits.
    @usableFromInline
    package let second: UInt64

    /// A mask of the upper-case letters: bit i for hexadecimal digit i, from 0 to 31.
    @usableFromInline
    package let upperCase: UInt32

    /// The number of characters that `write` appends.
    @inlinable
    package static var textCount: Int { 36 }

    /// Creates an identifier from its stored parts.
    @inlinable
    package init(first: UInt64, second: UInt64, upperCase: UInt32) {
        self.first = first
        self.second = second
        self.upperCase = upperCase
    }

    /// Creates a lower-case identifier from 128 random bits. It has no version field, like the identifiers of APNs.
    @inlinable
    package init(random: (UInt64, UInt64)) {
        self.init(first: random.0, second: random.1, upperCase: 0)
    }

    /// Parses 8-4-4-4-12 hexadecimal digits of either case; nil for any other text.
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
        guard let first = HexadecimalWord.decode(digits0, digits1),
            let second = HexadecimalWord.decode(digits2, digits3)
        else { return nil }
        let upper01 = HexadecimalWord.upperCaseMask(digits0) | HexadecimalWord.upperCaseMask(digits1) << 8
        let upper23 = HexadecimalWord.upperCaseMask(digits2) | HexadecimalWord.upperCaseMask(digits3) << 8
        self.init(first: first, second: second, upperCase: upper01 | upper23 << 16)
    }

    /// Compares the 128 bits, ignoring the case of the letters.
    @inlinable
    package static func == (left: APNsID, right: APNsID) -> Bool {
        left.first == right.first && left.second == right.second
    }

    @inlinable
    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.first)
        hasher.combine(self.second)
    }

    /// Returns true if both are written with the same characters.
    @inlinable
    package func isSpelled(as other: APNsID) -> Bool { self == other && self.upperCase == other.upperCase }

    /// The 32 digits of the identifier, eight per word.
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
        // The words of the text, with hyphens between the digits.
        let second = hyphen | digits.1 << 8 & 0xFF_FFFF_FF00 | hyphen << 40 | (digits.1 >> 32) << 48
        let third = digits.1 >> 48 | hyphen << 16 | (digits.2 << 32) >> 8 | hyphen << 56
        buffer.append(digits.0, second)
        buffer.append(third, digits.2 >> 32 | digits.3 << 32)
        buffer.append(halfWord: UInt32(truncatingIfNeeded: digits.3 >> 32))
    }
}

/// The id of one launch: 128 random bits, written as 32 lower-case hexadecimal digits.
@frozen
@usableFromInline
package struct WakeID: Hashable, BitwiseCopyable, Sendable {
    @usableFromInline
    package let first: UInt64
    @usableFromInline
    package let second: UInt64

    @inlinable
    package init(random: (UInt64, UInt64)) {
        self.first = random.0
        self.second = random.1
    }

    /// Parses 32 hexadecimal digits; nil for any other text.
    package init?(_ text: ByteView) {
        guard text.count == 32, let first = Self.word(of: text, at: 0), let second = Self.word(of: text, at: 16) else {
            return nil
        }
        self.init(random: (first, second))
    }

    /// Returns the value of sixteen digits, of which the first is the most significant; nil if one is not a digit.
    private static func word(of text: ByteView, at index: Int) -> UInt64? {
        HexadecimalWord.decode(text.word(at: index), text.word(at: index + 8))?.byteSwapped
    }

    @inlinable
    package static func == (left: WakeID, right: WakeID) -> Bool {
        left.first == right.first && left.second == right.second
    }

    /// Hashes half of the bits. They suffice, because ids are random and never chosen by clients.
    @inlinable
    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.first)
    }

    /// Appends the 32 digits of the id.
    package func write(to buffer: inout ByteBuffer) {
        Self.write(self.first, to: &buffer)
        Self.write(self.second, to: &buffer)
    }

    private static func write(_ word: UInt64, to buffer: inout ByteBuffer) {
        buffer.append(
            HexadecimalWord.encode(UInt32(truncatingIfNeeded: word >> 32).byteSwapped),
            HexadecimalWord.encode(UInt32(truncatingIfNeeded: word).byteSwapped)
        )
    }
}

/// Conversion between hexadecimal digits, eight in a word of ASCII characters, and bytes.
///
/// In all words, the lowest eight bits are the first character or byte in memory.
@usableFromInline
package enum HexadecimalWord {
    /// The lowest bit of each of the eight bytes.
    @usableFromInline
    static let ones: UInt64 = 0x0101_0101_0101_0101

    /// Returns the eight bytes that sixteen digits of either case represent.
    ///
    /// - Parameters:
    ///   - first: the first eight digits.
    ///   - second: the last eight digits.
    /// - Returns: nil if one of the sixteen characters is not a digit.
    @inlinable
    @inline(__always)
    package static func decode(_ first: UInt64, _ second: UInt64) -> UInt64? {
        let digits = SIMD2(first, second)
        let folded = digits | 0x2020_2020_2020_2020
        // Adding 0x80 - c sets the high bit of each byte that is at least c. Only a byte outside of ASCII can carry
        // into the next byte, and such a byte is rejected below.
        let decimal = (digits &+ 0x5050_5050_5050_5050) & ~(digits &+ 0x4646_4646_4646_4646)
        let letter = (folded &+ 0x1F1F_1F1F_1F1F_1F1F) & ~(folded &+ 0x1919_1919_1919_1919)
        let areDigits = (decimal | letter) & ~digits
        let highBits: UInt64 = 0x8080_8080_8080_8080
        guard areDigits[0] & areDigits[1] & highBits == highBits else { return nil }
        let letters = (digits &>> 6) & 0x0101_0101_0101_0101
        let values = (digits & 0x0F0F_0F0F_0F0F_0F0F) &+ (letters &<< 3 | letters)
        let pairs = unsafe unsafeBitCast(values, to: SIMD8<UInt16>.self)
        return unsafe unsafeBitCast(SIMD8<UInt8>(truncatingIfNeeded: pairs &<< 4 | pairs &>> 8), to: UInt64.self)
    }

    /// Returns the eight lower-case digits that represent four bytes.
    @inlinable
    package static func encode(_ bytes: UInt32) -> UInt64 {
        var spread = UInt64(bytes)
        spread = (spread | (spread << 16)) & 0x0000_FFFF_0000_FFFF
        spread = (spread | (spread << 8)) & 0x00FF_00FF_00FF_00FF
        let nibbles = ((spread >> 4) & 0x000F_000F_000F_000F) | ((spread & 0x000F_000F_000F_000F) << 8)
        let letters = ((nibbles &+ 0x0606_0606_0606_0606) >> 4) & self.ones
        return nibbles &+ 0x3030_3030_3030_3030 &+ letters &* 0x27
    }

    /// Returns a mask of the upper-case letters among eight digits: bit i for the i-th digit.
    @inlinable
    package static func upperCaseMask(_ digits: UInt64) -> UInt32 {
        let upper = (digits >> 6) & ~(digits >> 5) & self.ones
        return UInt32(truncatingIfNeeded: (upper &* 0x0102_0408_1020_4080) >> 56)
    }

    /// Converts the letters that `mask` selects among eight lower-case digits to upper case. Ignores bits 8 and up of
    /// the mask.
    @inlinable
    package static func applyUpperCase(_ digits: UInt64, mask: UInt32) -> UInt64 {
        var result = digits
        for index in 0..<8 where mask >> UInt32(index) & 1 == 1 {
            let letter = (digits >> UInt64(index * 8 + 6)) & 1
            result &-= letter << UInt64(index * 8 + 5)
        }
        return result
    }
}

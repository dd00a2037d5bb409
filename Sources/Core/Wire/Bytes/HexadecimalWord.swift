/// Hexadecimal digits eight at a time: eight ASCII characters in one word are four bytes in half a word.
///
/// In both words the first character or byte in memory is the lowest eight bits.
@usableFromInline
package enum HexadecimalWord {
    /// The lowest bit of each of the eight bytes.
    @usableFromInline
    static let ones: UInt64 = 0x0101_0101_0101_0101

    /// The four bytes that eight digits, of either case, stand for.
    ///
    /// - Returns: nil when one of the eight is not a digit.
    @inlinable
    package static func decode(_ digits: UInt64) -> UInt32? {
        let highBits: UInt64 = 0x8080_8080_8080_8080
        let folded = digits | 0x2020_2020_2020_2020
        // Adding 0x80 - c sets the high bit of each byte that is at least c. A byte that has it already may carry into
        // its neighbour, but it is refused itself.
        let decimal = (digits &+ 0x5050_5050_5050_5050) & ~(digits &+ 0x4646_4646_4646_4646)
        let letter = (folded &+ 0x1F1F_1F1F_1F1F_1F1F) & ~(folded &+ 0x1919_1919_1919_1919)
        guard (decimal | letter) & ~digits & highBits == highBits else { return nil }
        let nibbles = (digits & 0x0F0F_0F0F_0F0F_0F0F) &+ ((digits >> 6) & self.ones) &* 9
        var bytes = ((nibbles << 4) | (nibbles >> 8)) & 0x00FF_00FF_00FF_00FF
        bytes = (bytes | (bytes >> 8)) & 0x0000_FFFF_0000_FFFF
        return UInt32(truncatingIfNeeded: bytes | (bytes >> 16))
    }

    /// The eight digits of four bytes, lower-case.
    @inlinable
    package static func encode(_ bytes: UInt32) -> UInt64 {
        var spread = UInt64(bytes)
        spread = (spread | (spread << 16)) & 0x0000_FFFF_0000_FFFF
        spread = (spread | (spread << 8)) & 0x00FF_00FF_00FF_00FF
        let nibbles = ((spread >> 4) & 0x000F_000F_000F_000F) | ((spread & 0x000F_000F_000F_000F) << 8)
        let letters = ((nibbles &+ 0x0606_0606_0606_0606) >> 4) & self.ones
        return nibbles &+ 0x3030_3030_3030_3030 &+ letters &* 0x27
    }

    /// Which of eight digits are upper-case letters: bit i for the i-th.
    @inlinable
    package static func upperCaseMask(_ digits: UInt64) -> UInt32 {
        let upper = (digits >> 6) & ~(digits >> 5) & self.ones
        return UInt32(truncatingIfNeeded: (upper &* 0x0102_0408_1020_4080) >> 56)
    }

    /// Eight lower-case digits with those letters in upper case whose bit of `mask` is set; bits 8 and up are ignored.
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

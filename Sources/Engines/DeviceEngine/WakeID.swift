package import Bytes

/// Names one launch: 128 random bits, a new one for every launch, written as 32 lower-case hexadecimal digits.
package struct WakeID: Hashable, BitwiseCopyable, Sendable {
    package let first: UInt64
    package let second: UInt64

    package init(random: (UInt64, UInt64)) {
        self.first = random.0
        self.second = random.1
    }

    /// The id that `text` spells; nil for anything but 32 hexadecimal digits.
    package init?(_ text: ByteView) {
        guard text.count == 32 else { return nil }
        var words: (UInt64, UInt64) = (0, 0)
        for index in 0..<32 {
            guard let digit = text[index].hexDigitValue else { return nil }
            if index < 16 { words.0 = words.0 << 4 | UInt64(digit) } else { words.1 = words.1 << 4 | UInt64(digit) }
        }
        self.init(random: words)
    }

    /// Appends the 32 digits.
    package func write(to buffer: inout ByteBuffer) {
        for word in [self.first, self.second] {
            for shift in stride(from: 60, through: 0, by: -4) {
                let digit = UInt8(truncatingIfNeeded: word >> UInt64(shift)) & 15
                buffer.append(digit < 10 ? digit + 0x30 : digit + 0x57)
            }
        }
    }
}

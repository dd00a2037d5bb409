/// Names one launch: 128 random bits, a new one for every launch, written as 32 lower-case hexadecimal digits.
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

    @inlinable
    package static func == (left: WakeID, right: WakeID) -> Bool {
        left.first == right.first && left.second == right.second
    }

    @inlinable
    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.first)
        hasher.combine(self.second)
    }

    /// Appends the 32 digits.
    package func write(to buffer: inout ByteBuffer) {
        Self.write(self.first, to: &buffer)
        Self.write(self.second, to: &buffer)
    }

    private static func write(_ word: UInt64, to buffer: inout ByteBuffer) {
        buffer.append(word: HexadecimalWord.encode(UInt32(truncatingIfNeeded: word >> 32).byteSwapped))
        buffer.append(word: HexadecimalWord.encode(UInt32(truncatingIfNeeded: word).byteSwapped))
    }
}

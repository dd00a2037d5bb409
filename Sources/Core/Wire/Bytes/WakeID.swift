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
        guard text.count == 32, let first = Self.word(of: text, at: 0), let second = Self.word(of: text, at: 16) else {
            return nil
        }
        self.init(random: (first, second))
    }

    /// What sixteen digits stand for, the first the highest.
    private static func word(of text: ByteView, at index: Int) -> UInt64? {
        guard let high = HexadecimalWord.decode(text.word(at: index)),
            let low = HexadecimalWord.decode(text.word(at: index + 8))
        else { return nil }
        return UInt64(high.byteSwapped) << 32 | UInt64(low.byteSwapped)
    }

    @inlinable
    package static func == (left: WakeID, right: WakeID) -> Bool {
        left.first == right.first && left.second == right.second
    }

    /// Half of the bits tell ids apart as well as all of them: they are drawn here, and nobody chooses one.
    @inlinable
    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.first)
    }

    /// Appends the 32 digits.
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

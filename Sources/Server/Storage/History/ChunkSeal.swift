package import Wire

/// The checksum in a chunk's first eight bytes, over all that follows: what disks and crashes mangle is noticed.
package enum ChunkSeal {
    /// The bytes of a seal.
    package static let byteCount = 8

    /// Writes the checksum over the first eight bytes of `chunk`, which are there already.
    package static func close(_ chunk: inout ByteBuffer) {
        let sum = self.checksum(chunk.view.dropFirst(self.byteCount))
        chunk.overwrite(memoryOf: sum.littleEndian, at: 0)
    }

    /// What follows the checksum; nil when the checksum is wrong.
    static func open(_ chunk: ByteView) -> ByteView? {
        guard chunk.count >= self.byteCount else { return nil }
        let content = chunk.dropFirst(self.byteCount)
        return chunk.word(at: 0) == self.checksum(content) ? content : nil
    }

    private static func checksum(_ bytes: ByteView) -> UInt64 {
        var state = UInt64(bytes.count) ^ 0x9E37_79B9_7F4A_7C15
        var index = 0
        while index + 16 <= bytes.count {
            state = FoldedProduct.of(bytes.word(at: index) ^ 0xA076_1D64_78BD_642F, bytes.word(at: index + 8) ^ state)
            index += 16
        }
        var rest: (UInt64, UInt64) = (0, 0)
        while index < bytes.count {
            rest = (rest.0 << 8 | rest.1 >> 56, rest.1 << 8 | UInt64(bytes[index]))
            index += 1
        }
        state = FoldedProduct.of(rest.0 ^ 0xE703_7ED1_A0B4_28DB, rest.1 ^ state)
        return FoldedProduct.of(state ^ 0x8EBC_6AF0_9C88_C6E3, 0x5895_89B2_2C0F_7D1D)
    }
}

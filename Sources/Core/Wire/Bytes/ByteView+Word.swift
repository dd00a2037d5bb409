extension ByteView {
    /// The eight bytes from `index` on; the first is the lowest eight bits.
    @inlinable
    package func word(at index: Int) -> UInt64 {
        precondition(index >= 0 && index <= self.count - 8, "word out of bounds")
        return UInt64(
            littleEndian: unsafe self.base.unsafelyUnwrapped.loadUnaligned(fromByteOffset: index, as: UInt64.self)
        )
    }

    /// The four bytes from `index` on; the first is the lowest eight bits.
    @inlinable
    package func halfWord(at index: Int) -> UInt32 {
        precondition(index >= 0 && index <= self.count - 4, "half word out of bounds")
        return UInt32(
            littleEndian: unsafe self.base.unsafelyUnwrapped.loadUnaligned(fromByteOffset: index, as: UInt32.self)
        )
    }
}

extension ByteBuffer {
    /// Appends eight bytes, the lowest eight bits first.
    @inlinable
    package mutating func append(word: UInt64) {
        unsafe self.extend(8).storeBytes(of: word.littleEndian, as: UInt64.self)
    }

    /// Appends two words, one right after the other.
    @inlinable
    package mutating func append(_ first: UInt64, _ second: UInt64) {
        let room = unsafe self.extend(16)
        unsafe room.storeBytes(of: first.littleEndian, as: UInt64.self)
        unsafe room.storeBytes(of: second.littleEndian, toByteOffset: 8, as: UInt64.self)
    }

    /// Appends four bytes, the lowest eight bits first.
    @inlinable
    package mutating func append(halfWord: UInt32) {
        unsafe self.extend(4).storeBytes(of: halfWord.littleEndian, as: UInt32.self)
    }
}

extension SIMD16<UInt8> {
    /// The first eight bytes and the last eight as words; the first of them is the lowest eight bits.
    @inlinable
    @inline(__always)
    package var halves: SIMD2<UInt64> {
        unsafe unsafeBitCast(self, to: SIMD2<UInt64>.self)
    }
}

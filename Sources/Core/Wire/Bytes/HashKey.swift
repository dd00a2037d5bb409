/// A secret of 128 bits for hashing bytes with SipHash-1-3. A client without the key can find neither colliding bytes
/// nor bytes with a given hash.
@frozen
@usableFromInline
package struct HashKey: Hashable, BitwiseCopyable, Sendable {
    @usableFromInline
    package let first: UInt64
    @usableFromInline
    package let second: UInt64

    /// Creates a key from 128 unpredictable bits.
    @inlinable
    package init(_ bits: (UInt64, UInt64)) {
        self.first = bits.0
        self.second = bits.1
    }

    /// Returns the hash of all bytes of a token. Any bits of the hash can be used.
    @inlinable
    package func hash(_ token: borrowing DeviceToken) -> UInt64 {
        let count = token.count
        // A span avoids a copy of the array, which a subscript would make.
        let words = token.words.span
        var state = SipState(self)
        for index in 0..<count >> 3 { state.add(words[index]) }
        // The bits after the token's last byte are zeros or the number of bytes, so they are masked.
        let last = words[count >> 3] & (1 << UInt64((count & 7) * 8) - 1)
        return state.finish(last, count: count)
    }

    /// Returns the hash of bytes. Any bits of the hash can be used.
    @inlinable
    package func hash(_ bytes: ByteView) -> UInt64 {
        var state = SipState(self)
        let end = bytes.count & ~7
        var index = 0
        while index < end {
            state.add(bytes.word(at: index))
            index += 8
        }
        var last: UInt64 = 0
        while index < bytes.count {
            last |= UInt64(bytes[index]) << UInt64((index & 7) * 8)
            index += 1
        }
        return state.finish(last, count: bytes.count)
    }

    /// Returns the hash of 16 bytes: the bytes of `low`, then the bytes of `high`, both in little-endian order.
    @inlinable
    package func hash(_ low: UInt64, _ high: UInt64) -> UInt64 {
        var state = SipState(self)
        state.add(low)
        state.add(high)
        return state.finish(0, count: 16)
    }
}

/// The state of SipHash-1-3: one round for each word of input, and three rounds at the end.
@frozen
@usableFromInline
struct SipState {
    @usableFromInline var v0: UInt64
    @usableFromInline var v1: UInt64
    @usableFromInline var v2: UInt64
    @usableFromInline var v3: UInt64

    @inlinable
    init(_ key: HashKey) {
        self.v0 = key.first ^ 0x736F_6D65_7073_6575
        self.v1 = key.second ^ 0x646F_7261_6E64_6F6D
        self.v2 = key.first ^ 0x6C79_6765_6E65_7261
        self.v3 = key.second ^ 0x7465_6462_7974_6573
    }

    @inlinable
    mutating func add(_ word: UInt64) {
        self.v3 ^= word
        self.mix()
        self.v0 ^= word
    }

    /// - Parameters:
    ///   - last: the bytes after the last whole word, padded with zeros.
    ///   - count: the total number of bytes.
    @inlinable
    mutating func finish(_ last: UInt64, count: Int) -> UInt64 {
        self.add(last | UInt64(truncatingIfNeeded: count) << 56)
        self.v2 ^= 0xFF
        self.mix()
        self.mix()
        self.mix()
        return self.v0 ^ self.v1 ^ self.v2 ^ self.v3
    }

    @inlinable
    mutating func mix() {
        self.v0 &+= self.v1
        self.v2 &+= self.v3
        self.v1 = SipState.rotated(self.v1, 13) ^ self.v0
        self.v3 = SipState.rotated(self.v3, 16) ^ self.v2
        self.v0 = SipState.rotated(self.v0, 32)
        self.v2 &+= self.v1
        self.v0 &+= self.v3
        self.v1 = SipState.rotated(self.v1, 17) ^ self.v2
        self.v3 = SipState.rotated(self.v3, 21) ^ self.v0
        self.v2 = SipState.rotated(self.v2, 32)
    }

    @inlinable
    static func rotated(_ word: UInt64, _ bits: UInt64) -> UInt64 { word &<< bits | word &>> (64 - bits) }
}

/// A fast mix of two words without a key, for checksums and other values that need not be secret. Use `HashKey` instead
/// if clients choose the bytes.
@usableFromInline
package enum FoldedProduct {
    /// Returns the exclusive or of the two halves of the product.
    @inlinable
    package static func of(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}

/// A generator of reproducible random numbers (SplitMix64 of Steele, Lea and Flood).
///
/// The numbers are predictable: each one reveals all later ones.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    /// The increment between two states: 2⁶⁴ divided by the golden ratio, made odd.
    package static let step: UInt64 = 0x9E37_79B9_7F4A_7C15

    private var state: UInt64

    package init(seed: UInt64) {
        self.state = seed
    }

    package mutating func next() -> UInt64 {
        self.state &+= Self.step
        return Self.scattered(self.state)
    }

    /// Mixes the bits of a word. Different words have different results.
    package static func scattered(_ word: UInt64) -> UInt64 {
        var bits = word
        bits = (bits ^ bits >> 30) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
        return bits ^ bits >> 31
    }
}

/// A generator of 128-bit values that never repeat, for ids that need not be secret. It uses two SplitMix64 sequences.
package struct UniqueBits {
    private var first: UInt64
    private var second: UInt64

    package init(seed: (UInt64, UInt64)) {
        self.first = seed.0
        self.second = seed.1
    }

    package mutating func next() -> (UInt64, UInt64) {
        self.first &+= SplitMix64.step
        self.second &+= 0xD1B5_4A32_D192_ED03
        return (SplitMix64.scattered(self.first), SplitMix64.scattered(self.second))
    }
}

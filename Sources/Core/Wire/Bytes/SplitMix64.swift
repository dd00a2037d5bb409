/// Random numbers that a seed determines (SplitMix64 of Steele, Lea and Flood): for what must come out the same again.
///
/// Whoever sees one of them knows all that follow.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    /// What is added from one number to the next: 2⁶⁴ over the golden ratio, made odd.
    package static let step: UInt64 = 0x9E37_79B9_7F4A_7C15

    private var state: UInt64

    package init(seed: UInt64) {
        self.state = seed
    }

    package mutating func next() -> UInt64 {
        self.state &+= Self.step
        return Self.scattered(self.state)
    }

    /// The bits of a word spread over a word, one to one.
    package static func scattered(_ word: UInt64) -> UInt64 {
        var bits = word
        bits = (bits ^ bits >> 30) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
        return bits ^ bits >> 31
    }
}

/// Bits that never come again, for names that need not be secret: two SplitMix64 sequences from an unpredictable seed.
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

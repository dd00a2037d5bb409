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

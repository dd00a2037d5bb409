/// Bits that never come again, for names that need not be secret: two SplitMix64 sequences from an unpredictable seed.
package struct UniqueBits {
    private var first: UInt64
    private var second: UInt64

    package init(seed: (UInt64, UInt64)) {
        self.first = seed.0
        self.second = seed.1
    }

    package mutating func next() -> (UInt64, UInt64) {
        self.first &+= 0x9E37_79B9_7F4A_7C15
        self.second &+= 0xD1B5_4A32_D192_ED03
        return (Self.mixed(self.first), Self.mixed(self.second))
    }

    private static func mixed(_ state: UInt64) -> UInt64 {
        var bits = state
        bits = (bits ^ bits >> 30) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
        return bits ^ bits >> 31
    }
}

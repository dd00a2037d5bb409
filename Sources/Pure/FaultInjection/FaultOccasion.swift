/// Which of the pushes that a rule is about it is for, by their ordinals, from 1.
package struct FaultOccasion: Hashable, Sendable {
    /// The first ordinal and, unless nil, the last.
    package var from: UInt64 = 1
    package var to: UInt64?
    /// Of those, the ordinals that are its multiples.
    package var every: UInt64 = 1
    /// How likely each of those is, from 0 to 1.
    package var probability = 1.0
    /// What chance is drawn from: with the same seed the same ordinals are chosen.
    package var seed: UInt64 = 0

    package init() {}

    /// - Parameters:
    ///   - ordinal: from 1.
    ///   - lane: names the count that the ordinal is of, where there are several.
    package func includes(_ ordinal: UInt64, lane: UInt64) -> Bool {
        guard ordinal >= self.from, ordinal <= self.to ?? .max, ordinal % self.every == 0 else { return false }
        return self.probability >= 1 || self.chance(ordinal, lane) < self.probability
    }

    /// A number from 0 to less than 1, the same for the same seed, lane and ordinal: what other devices do, or other
    /// threads, has no part in it.
    private func chance(_ ordinal: UInt64, _ lane: UInt64) -> Double {
        let mixed = Self.mixed(Self.mixed(self.seed ^ Self.mixed(lane)) &+ ordinal &* 0x9E37_79B9_7F4A_7C15)
        return Double(mixed >> 11) / Double(1 << 53 as UInt64)
    }

    /// The finalizer of SplitMix64.
    private static func mixed(_ value: UInt64) -> UInt64 {
        var mixed = value &+ 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}

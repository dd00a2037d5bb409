/// Which of the pushes that a rule is about it is for, by their ordinals, from 1.
package struct FaultOccasion: Hashable, Sendable {
    /// The first ordinal and, unless nil, the last.
    package var from: UInt64 = 1
    package var to: UInt64?
    /// The number of whose multiples the ordinals are.
    package var every: UInt64 = 1
    /// How likely each of these ordinals is, from 0 to 1.
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
        let mixed = Self.mixed(Self.mixed(self.seed ^ Self.mixed(lane)) &+ ordinal &* SplitMix64.step)
        return Double(mixed >> 11) / Double(1 << 53 as UInt64)
    }

    /// The first number that `value` seeds.
    private static func mixed(_ value: UInt64) -> UInt64 { SplitMix64.scattered(value &+ SplitMix64.step) }
}

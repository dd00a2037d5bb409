/// One line of a fault script: which pushes, which of them, and what happens to those.
package struct FaultRule: Hashable, Sendable {
    /// What it is known by; nil when the script is to choose.
    package var id: String?
    package var condition = FaultCondition()
    package var occasion = FaultOccasion()
    /// Whether ordinals are counted for each device by itself.
    package var isPerDevice = false
    /// How often it fires in all; nil for any number of times.
    package var times: UInt64?
    package var effect = FaultEffect()
    /// The rule as it was written, as JSON.
    package var text = ""

    package init() {}
}

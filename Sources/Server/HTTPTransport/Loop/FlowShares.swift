/// What each flow has sent to a loop of late, as a part of all that came.
///
/// A flow is what is to have a fair share of the loop, on however many connections: the pushes of a topic, or one
/// connection whose handler has named no flow. There is a number of places for flows; two that have the same count as
/// one.
package struct FlowShares {
    /// Where a flow is counted.
    package struct Place: Hashable, Sendable {
        fileprivate let index: UInt16

        /// - Parameter flow: what the flow is known by; all bits of a hash, or small numbers.
        package init(flow: UInt64) {
            self.index = UInt16(truncatingIfNeeded: flow % UInt64(FlowShares.placeCount))
        }
    }

    /// The places; 1,024, so that a quiet flow hardly ever has that of a noisy one.
    package static let placeCount = 1_024
    /// The bytes that all flows together must have sent for any to have a large part: 256 KiB. A loop that receives
    /// less in a second keeps nobody waiting.
    package static let bytesMin = 262_144
    /// A part of all is large that is more than a 32nd of it, and stays so until it is less than a 64th: there are a
    /// few dozen such flows at most.
    package static let largePart = 32

    /// By place; what came lately counts more than what came before.
    private var bytes = [Int](repeating: 0, count: FlowShares.placeCount)
    private var total = 0
    /// How many places have bytes.
    private var flowCount = 0

    package init() {}

    package mutating func received(_ count: Int, at place: Place) {
        if self.bytes[Int(place.index)] == 0, count > 0 { self.flowCount += 1 }
        self.bytes[Int(place.index)] += count
        self.total += count
    }

    /// Whether a flow has sent a large part of all, where there is another that would wait for it.
    ///
    /// - `wasLarge`: whether it had before.
    package func isLarge(_ place: Place, wasLarge: Bool) -> Bool {
        guard self.flowCount > 1, self.total >= Self.bytesMin else { return false }
        let part = wasLarge ? 2 * Self.largePart : Self.largePart
        return self.bytes[Int(place.index)] * part > self.total
    }

    /// What came until now counts for half as much as what comes.
    package mutating func secondPassed() {
        self.total = 0
        self.flowCount = 0
        for index in self.bytes.indices where self.bytes[index] > 0 {
            self.bytes[index] /= 2
            self.total += self.bytes[index]
            if self.bytes[index] > 0 { self.flowCount += 1 }
        }
    }
}

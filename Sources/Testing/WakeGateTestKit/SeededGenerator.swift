/// Random numbers that a seed determines (SplitMix64).
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) {
        self.state = seed
    }

    package mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var value = self.state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    /// True once in `count` times, on average.
    package mutating func once(in count: Int) -> Bool {
        self.number(below: count) == 0
    }

    /// A number of 0..<`limit`; `limit` is at least 1.
    package mutating func number(below limit: Int) -> Int {
        Int(self.next() % UInt64(limit))
    }

    /// A number of `range`.
    package mutating func number(in range: ClosedRange<Int>) -> Int {
        range.lowerBound + self.number(below: range.count)
    }

    /// One of `elements`, of which there is at least one.
    package mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[self.number(below: elements.count)]
    }
}

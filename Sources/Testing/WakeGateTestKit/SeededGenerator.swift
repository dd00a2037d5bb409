import Wire

/// Random numbers that a seed determines, and choices made with them.
package struct SeededGenerator: RandomNumberGenerator {
    private var numbers: SplitMix64

    package init(seed: UInt64) {
        self.numbers = SplitMix64(seed: seed)
    }

    package mutating func next() -> UInt64 { self.numbers.next() }

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

extension SeededGenerator {
    /// True `percent` times in a hundred, on average.
    package mutating func chance(_ percent: Int) -> Bool {
        self.number(below: 100) < percent
    }
}

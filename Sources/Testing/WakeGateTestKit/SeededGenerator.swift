import Wire

/// A generator of random numbers and choices that a seed determines.
package struct SeededGenerator: RandomNumberGenerator {
    private var numbers: SplitMix64

    package init(seed: UInt64) {
        self.numbers = SplitMix64(seed: seed)
    }

    package mutating func next() -> UInt64 { self.numbers.next() }

    /// Returns true once in `count` times, on average.
    package mutating func once(in count: Int) -> Bool {
        self.number(below: count) == 0
    }

    /// Returns a number in 0..<`limit`. `limit` must be at least 1.
    package mutating func number(below limit: Int) -> Int {
        Int(self.next() % UInt64(limit))
    }

    /// Returns a number in `range`.
    package mutating func number(in range: ClosedRange<Int>) -> Int {
        range.lowerBound + self.number(below: range.count)
    }

    /// Returns one of `elements`, which must not be empty.
    package mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[self.number(below: elements.count)]
    }
}

extension SeededGenerator {
    /// Returns true `percent` times in a hundred, on average.
    package mutating func chance(_ percent: Int) -> Bool {
        self.number(below: 100) < percent
    }
}

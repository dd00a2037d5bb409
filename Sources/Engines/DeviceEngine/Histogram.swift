/// How often a measured value fell below each of some bounds, and the sum of all values; plain counting, one owner.
package struct Histogram: Sendable {
    /// The greatest value of each bucket, rising; one more bucket takes what is greater than all of them.
    package let bounds: [Int64]
    /// How many values each bucket got, that of the greatest values last.
    package private(set) var counts: [Int64]
    package private(set) var sum: Int64 = 0

    package init(bounds: [Int64]) {
        self.bounds = bounds
        self.counts = Array(repeating: 0, count: bounds.count + 1)
    }

    /// How many values there were.
    package var count: Int64 { self.counts.reduce(0, +) }

    /// Counts a value that was measured, perhaps several times. Most values are small, so the search begins there.
    package mutating func record(_ value: Int64, times: Int64 = 1) {
        var bucket = 0
        while bucket < self.bounds.count, value > self.bounds[bucket] { bucket += 1 }
        self.counts[bucket] += times
        self.sum += value * times
    }
}

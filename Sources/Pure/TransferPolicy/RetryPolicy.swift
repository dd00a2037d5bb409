/// How long a transfer waits for its next attempt: twice as long after each that brought nothing, spread at random.
package struct RetryPolicy: Hashable, Sendable {
    /// Milliseconds; before the spread.
    package var first: Int64 = 1000
    package var last: Int64 = 300_000

    package init() {}

    /// The wait after so many attempts in a row that brought nothing: between half of the bound and the bound.
    package func wait(failures: Int, using generator: inout some RandomNumberGenerator) -> Int64 {
        let shift = Int64(max(0, min(failures - 1, 20)))
        let bound = max(1, min(self.last, self.first << shift))
        return bound / 2 + Int64(generator.next(upperBound: UInt64(bound - bound / 2 + 1)))
    }
}

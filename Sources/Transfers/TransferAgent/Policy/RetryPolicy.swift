/// How long a transfer waits for its next attempt: twice as long after each that brought nothing, spread at random.
package struct RetryPolicy: Hashable, Sendable {
    /// After this many identical failures in a row the fault is the server's, or the file's, and no accident.
    package static let repeatsMax = 3

    /// Milliseconds; before the spread.
    package var first: Int64 = 1000
    package var last: Int64 = 300_000

    package init() {}

    /// The longest wait for a server that never ends its answer, in milliseconds: 72 times `last`, 6 hours by default.
    package var longest: Int64 {
        let (longest, isTooLong) = self.last.multipliedReportingOverflow(by: 72)
        return isTooLong ? self.last : longest
    }

    /// The wait after so many attempts in a row that brought nothing: between half of the bound and the bound. Once an
    /// answer has ended `repeatsMax` times after the same byte, the bound grows from `last` to `longest`.
    ///
    /// - `repeats`: how many times in a row an answer has ended after the same byte.
    package func wait(
        failures: Int,
        repeats: Int = 1,
        using generator: inout some RandomNumberGenerator
    ) -> Int64 {
        var bound = self.last
        if repeats < Self.repeatsMax {
            bound = min(bound, self.first << Int64(max(0, min(failures - 1, 20))))
        } else {
            for _ in Self.repeatsMax..<min(repeats, 10) { bound = min(self.longest, bound * 4) }
        }
        bound = max(1, bound)
        return bound / 2 + Int64(generator.next(upperBound: UInt64(bound - bound / 2 + 1)))
    }
}

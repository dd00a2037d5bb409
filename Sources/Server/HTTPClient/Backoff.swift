/// Waits that grow with each failure, spread at random so that many workers do not come back at once.
package struct Backoff: Sendable {
    private let firstMilliseconds: Int
    private let lastMilliseconds: Int
    private var failures = 0

    package init(firstMilliseconds: Int = 250, lastMilliseconds: Int = 15_000) {
        self.firstMilliseconds = firstMilliseconds
        self.lastMilliseconds = lastMilliseconds
    }

    /// The wait after one more failure: between half of the current bound and the bound, in milliseconds.
    package mutating func failed(using generator: inout some RandomNumberGenerator) -> Int {
        let bound = min(self.lastMilliseconds, self.firstMilliseconds << min(self.failures, 16))
        self.failures += 1
        return Int.random(in: (bound / 2)...bound, using: &generator)
    }

    /// Something worked: the next failure waits the shortest time again.
    package mutating func succeeded() {
        self.failures = 0
    }
}

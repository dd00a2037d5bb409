import HTTPClient
import Testing
import WakeGateTestKit

@Suite("Waits between tries")
struct BackoffTests {
    @Test(
        "A seed determines the schedule, and each wait lies between half of its bound and its bound",
        arguments: 0..<20
    )
    func schedule(seed: UInt64) {
        var backoff = Backoff(firstMilliseconds: 1000, lastMilliseconds: 15_000)
        var generator = SeededGenerator(seed: seed)
        let bounds = [1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]
        let waits = bounds.map { _ in backoff.failed(using: &generator) }
        for (wait, bound) in zip(waits, bounds) {
            #expect((bound / 2...bound).contains(wait), "seed \(seed): \(waits)")
        }

        var again = Backoff(firstMilliseconds: 1000, lastMilliseconds: 15_000)
        var same = SeededGenerator(seed: seed)
        #expect(bounds.map { _ in again.failed(using: &same) } == waits)
        again.succeeded()
        #expect((500...1000).contains(again.failed(using: &same)))
    }
}

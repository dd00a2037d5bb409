internal import Synchronization

/// The bounds that one part of the program meets, by their names in the configuration.
package protocol CountedLimit: RawRepresentable<String>, CaseIterable, Hashable, Sendable where AllCases == [Self] {}

/// How often each of some bounds was met since the process began.
///
/// Each loop has its own, so that loops do not wait for each other; any thread may count and look. To count takes a
/// look-up and an atomic addition, where a bound is met, and nothing elsewhere.
package final class LimitTally<Limit: CountedLimit>: Sendable {
    private final class Count: Sendable {
        let value = Atomic<Int>(0)
    }

    private let counts: [Limit: Count]

    package init() {
        self.counts = Dictionary(uniqueKeysWithValues: Limit.allCases.map { ($0, Count()) })
    }

    /// The bound kept somebody from something.
    package func met(_ limit: Limit, times: Int = 1) {
        self.counts[limit]?.value.add(times, ordering: .relaxed)
    }

    package func times(_ limit: Limit) -> Int {
        self.counts[limit]?.value.load(ordering: .relaxed) ?? 0
    }
}

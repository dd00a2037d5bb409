package import LaunchPolicy

/// How long launches were waited for and wakes took since the process began, in milliseconds of policy time.
///
/// Counted where a wake is launched and where it ends; a push that only waits costs nothing.
package struct WakeTimes: Sendable {
    /// From the moment when a push waited for nothing but a worker to its launch; 0 when it launched as it came.
    package internal(set) var lateness = Histogram(
        bounds: [
            1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000,
        ]
    )
    /// From the launch to the end, by the place of the outcome.
    private var durations = Array(
        repeating: Histogram(
            bounds: [
                5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000,
                600_000,
            ]
        ),
        count: WakeOutcome.allCases.count
    )

    package subscript(outcome: WakeOutcome) -> Histogram { self.durations[outcome.place] }

    mutating func ended(_ outcome: WakeOutcome, after milliseconds: Int64) {
        self.durations[outcome.place].record(milliseconds)
    }
}

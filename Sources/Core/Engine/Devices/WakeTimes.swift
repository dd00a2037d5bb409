package import Policy

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

    /// From the launch of a task or a session to the end, by the place of its kind.
    private var taskDurations = Array(
        repeating: Histogram(
            bounds: [
                10, 100, 1_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_200_000, 3_600_000,
            ]
        ),
        count: TaskKind.allCases.count
    )

    package subscript(outcome: WakeOutcome) -> Histogram { self.durations[outcome.place] }

    package subscript(kind: TaskKind) -> Histogram { self.taskDurations[kind.place] }

    /// What was counted between two moments did not happen.
    package mutating func takeBack(from earlier: WakeTimes, to later: WakeTimes) {
        self.lateness.takeBack(from: earlier.lateness, to: later.lateness)
        for place in self.durations.indices {
            self.durations[place].takeBack(from: earlier.durations[place], to: later.durations[place])
        }
        for place in self.taskDurations.indices {
            self.taskDurations[place].takeBack(from: earlier.taskDurations[place], to: later.taskDurations[place])
        }
    }

    mutating func ended(_ kind: TaskKind, after milliseconds: Int64) {
        self.taskDurations[kind.place].record(milliseconds)
    }

    mutating func ended(_ outcome: WakeOutcome, after milliseconds: Int64) {
        self.durations[outcome.place].record(milliseconds)
    }
}

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

    /// What was counted between two moments of a histogram of these bounds is counted no more.
    mutating func takeBack(from earlier: Histogram, to later: Histogram) {
        guard earlier.counts != later.counts else { return }
        for bucket in self.counts.indices { self.counts[bucket] -= later.counts[bucket] - earlier.counts[bucket] }
        self.sum -= later.sum - earlier.sum
    }
}

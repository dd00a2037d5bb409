/// The batching of commits while many pushes arrive.
///
/// A commit contains the pushes that arrived during the previous one. If syncs are short, that is a handful, and most
/// of the cost of a push is its share of a commit: system calls and thread wakeups. So while pushes arrive fast, the
/// store rests after a commit. The rest ends two milliseconds after the commit's start. It ends earlier when as many
/// pushes are waiting as were in the commit or waiting at its end, or when a push of a quiet topic is waiting among
/// those of busy topics. The next commit takes them together.
///
/// A single client that waits for each answer before its next push is not delayed, because each of its pushes has a
/// commit to itself. From time to time it is measured whether more pushes arrive without rests. If so, the store does
/// not rest for a while, longer each time.
///
/// Times are microseconds of any monotonic clock.
package struct CommitBatching {
    /// The maximum time between the starts of two commits for which the store rests.
    package static let intervalMax: Int64 = 2_000
    /// The minimum rate of pushes at which the store rests, per second: eight in the longest interval.
    package static let pushesPerSecondMin: Int64 = 4_000
    /// The time over which pushes are counted to determine their rate.
    package static let window: Int64 = 20_000
    /// The number of consecutive slow windows, with fewer pushes than without rests, after which the rate without rests
    /// is measured.
    package static let slowWindowsMax = 5
    /// The number of windows with rests after which the rate without rests is measured again: five seconds.
    package static let restingWindowsMax = 250
    /// The time without rests after a measurement has shown that more pushes arrive without them: one second, doubled
    /// each time up to about a minute.
    package static let pauses: ClosedRange<Int64> = 1_000_000...64_000_000

    /// True if the store rests after commits.
    package private(set) var isResting = false
    /// The time at which the rest after the last commit ends at the latest.
    package private(set) var batchEnd = Int64.min
    /// The number of waiting pushes that ends the rest.
    private var batchPushes: Int64 = 0
    /// The number of pushes waiting for the next commit.
    private var waiting: Int64 = 0
    /// True if a push of a quiet topic is among them.
    private var endsRest = false
    /// The start of the current window.
    private var windowStart: Int64 = 0
    private var pushes: Int64 = 0
    private var commits: Int64 = 0
    /// The rate of pushes without rests, per second.
    private var rateWithout: Int64 = 0
    /// The highest rate of pushes at the last measurement, per second.
    private var rateKnown: Int64 = 0
    /// The number of windows with rests since the last measurement.
    private var restingWindows = 0
    /// The number of consecutive windows with a lower rate than without rests.
    private var slowWindows = 0
    /// The rate of pushes with rests, per second, during a measurement of the rate without.
    private var rateWith: Int64?
    /// The time from which the store may rest again.
    private var mayRestFrom = Int64.min
    private var pause = CommitBatching.pauses.lowerBound

    package init() {}

    /// The time at which the next commit may begin; `.min` if it may begin immediately.
    package var nextMayBegin: Int64 { self.endsRest || self.waiting >= self.batchPushes ? .min : self.batchEnd }

    /// Records the number of pushes waiting for the next commit.
    ///
    /// - Parameter endsRest: true if a push of a quiet topic is among them.
    package mutating func collected(_ pushes: Int64, endsRest: Bool = false) {
        self.waiting = pushes
        self.endsRest = endsRest
    }

    /// Records that a commit of everything waiting begins.
    package mutating func begun() { self.collected(0) }

    /// Ends the rest, whatever is waiting.
    package mutating func endBatch() { self.batchEnd = .min }

    /// Records a durable commit.
    ///
    /// - Parameters:
    ///   - pushes: the number of pushes in it.
    ///   - start: the time at which it began.
    ///   - end: the time at which it was durable.
    package mutating func committed(_ pushes: Int64, from start: Int64, to end: Int64) {
        self.pushes += pushes
        if pushes > 0 { self.commits += 1 }
        if end - self.windowStart >= Self.window { self.judge(at: end) }
        self.batchEnd = self.isResting ? start + Self.intervalMax : .min
        self.batchPushes = pushes + self.waiting
    }

    private mutating func judge(at now: Int64) {
        let time = now - self.windowStart
        let rate = self.pushes * 1_000_000 / time
        // Clients whose pushes each have a commit to themselves wait for every answer before the next push.
        let areTogether = 10 * self.pushes >= 11 * self.commits
        if time >= 2 * Self.window {
            // A pause without pushes says nothing about rests.
            self.isResting = false
            self.rateWith = nil
        } else if self.isResting {
            self.judgeRests(rate)
        } else {
            let rateWith = self.rateWith.take()
            if let rateWith { self.judgeRests(rateWith, without: rate, at: now) }
            if rate >= Self.pushesPerSecondMin, areTogether || rateWith != nil, now >= self.mayRestFrom {
                self.isResting = true
                self.rateWithout = rate
                self.rateKnown = max(rate, rateWith ?? 0)
                self.slowWindows = 0
                self.restingWindows = 0
            }
        }
        self.windowStart = now
        self.pushes = 0
        self.commits = 0
    }

    /// Suspends rests for one window, to measure the rate without them: after several slow windows, after a large
    /// increase of the rate, and at regular intervals.
    private mutating func judgeRests(_ rate: Int64) {
        self.restingWindows += 1
        // A rate a fifth lower may be chance in a single window.
        self.slowWindows = 5 * rate < 4 * self.rateWithout ? self.slowWindows + 1 : 0
        let hasGrown = 4 * rate > 5 * self.rateKnown
        guard self.slowWindows == Self.slowWindowsMax || hasGrown || self.restingWindows == Self.restingWindowsMax
        else { return }
        self.isResting = false
        self.rateWith = rate
    }

    /// Compares both rates, and suspends rests for a while if more pushes arrive without them.
    private mutating func judgeRests(_ rateWith: Int64, without rate: Int64, at now: Int64) {
        if 4 * rate > 5 * rateWith {
            self.mayRestFrom = now + self.pause
            self.pause = min(2 * self.pause, Self.pauses.upperBound)
        } else {
            self.pause = Self.pauses.lowerBound
        }
    }
}

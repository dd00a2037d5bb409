/// Decides when to begin commits, so that commits are larger while many pushes arrive.
///
/// A commit contains the pushes that arrived during the previous commit. If syncs are short, these are few. Most of the
/// cost of a push is then its share of a commit: system calls and thread wakeups. While pushes arrive fast, a batching
/// window therefore follows each commit and collects pushes for the next. The window ends two milliseconds after the
/// start of that commit. It ends earlier if a push of a quiet topic is pending among pushes of busy topics. It also
/// ends earlier when as many pushes are pending as were in the commit and pending at its end.
///
/// A single client that waits for each answer is not delayed, because each of its pushes has its own commit. At
/// intervals, batching stops for one measurement. If more pushes arrive without batching, it is suspended, each time
/// for longer.
///
/// Times are microseconds of any monotonic clock.
package struct CommitBatching {
    /// The maximum time from the start of a commit to the end of its batching window.
    package static let intervalMax: Int64 = 2_000
    /// The minimum rate of pushes for batching, per second: thirty per `intervalMax`. At a lower rate, a commit begins
    /// as soon as a push is pending.
    package static let pushesPerSecondMin: Int64 = 15_000
    /// The duration of a measurement window, in which pushes are counted to determine their rate.
    package static let window: Int64 = 20_000
    /// The number of consecutive slow measurement windows after which the rate without batching is measured again. A
    /// window is slow if it has fewer pushes than the last window without batching.
    package static let slowWindowsMax = 5
    /// The number of measurement windows with batching after which the rate without batching is measured again: five
    /// seconds.
    package static let batchingWindowsMax = 250
    /// The duration of a suspension, after more pushes arrived without batching: one second, doubled each time up to
    /// about a minute.
    package static let pauses: ClosedRange<Int64> = 1_000_000...64_000_000

    /// True if a batching window follows each commit.
    package private(set) var isBatching = false
    /// The latest end of the batching window after the last commit.
    package private(set) var batchEnd = Int64.min
    /// The number of pending pushes that ends the batching window.
    private var batchPushes: Int64 = 0
    /// The number of pushes pending for the next commit.
    private var waiting: Int64 = 0
    /// True if a push of a quiet topic is pending.
    private var endsBatch = false
    /// The start of the current measurement window.
    private var windowStart: Int64 = 0
    private var pushes: Int64 = 0
    private var commits: Int64 = 0
    /// The rate of pushes without batching, per second.
    private var rateWithout: Int64 = 0
    /// The highest rate of pushes known at the last measurement, per second.
    private var rateKnown: Int64 = 0
    /// The number of measurement windows with batching since the last measurement without it.
    private var batchingWindows = 0
    /// The number of consecutive measurement windows with a lower rate than without batching.
    private var slowWindows = 0
    /// The rate of pushes with batching, per second; nil unless the rate without batching is being measured.
    private var rateWith: Int64?
    /// The time from which batching is allowed again.
    private var mayBatchFrom = Int64.min
    private var pause = CommitBatching.pauses.lowerBound

    package init() {}

    /// The time at which the next commit may begin; `.min` if it may begin immediately.
    package var nextMayBegin: Int64 { self.endsBatch || self.waiting >= self.batchPushes ? .min : self.batchEnd }

    /// Records the number of pushes pending for the next commit.
    ///
    /// - `endsBatch`: true if a push of a quiet topic is among them.
    package mutating func collected(_ pushes: Int64, endsBatch: Bool = false) {
        self.waiting = pushes
        self.endsBatch = endsBatch
    }

    /// Records the start of a commit with all pending pushes.
    package mutating func begun() { self.collected(0) }

    /// Ends the batching window.
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
        self.batchEnd = self.isBatching ? start + Self.intervalMax : .min
        self.batchPushes = pushes + self.waiting
    }

    private mutating func judge(at now: Int64) {
        let time = now - self.windowStart
        let rate = self.pushes * 1_000_000 / time
        // About one push per commit means that clients wait for each answer. Batching would only delay them.
        let areTogether = 10 * self.pushes >= 11 * self.commits
        if time >= 2 * Self.window {
            // A period without pushes gives no information about batching.
            self.isBatching = false
            self.rateWith = nil
        } else if self.isBatching {
            self.judgeBatching(rate)
        } else {
            let rateWith = self.rateWith.take()
            if let rateWith { self.judgeBatching(rateWith, without: rate, at: now) }
            if rate >= Self.pushesPerSecondMin, areTogether || rateWith != nil, now >= self.mayBatchFrom {
                self.isBatching = true
                self.rateWithout = rate
                self.rateKnown = max(rate, rateWith ?? 0)
                self.slowWindows = 0
                self.batchingWindows = 0
            }
        }
        self.windowStart = now
        self.pushes = 0
        self.commits = 0
    }

    /// Suspends batching for one measurement window, to measure the rate without it. Does so after several slow
    /// windows, after a large increase of the rate, and at regular intervals.
    private mutating func judgeBatching(_ rate: Int64) {
        self.batchingWindows += 1
        // In a single window, a rate that is a fifth lower may be a coincidence.
        self.slowWindows = 5 * rate < 4 * self.rateWithout ? self.slowWindows + 1 : 0
        let hasGrown = 4 * rate > 5 * self.rateKnown
        guard self.slowWindows == Self.slowWindowsMax || hasGrown || self.batchingWindows == Self.batchingWindowsMax
        else { return }
        self.isBatching = false
        self.rateWith = rate
    }

    /// Compares both rates, and suspends batching if more pushes arrive without batching.
    private mutating func judgeBatching(_ rateWith: Int64, without rate: Int64, at now: Int64) {
        if 4 * rate > 5 * rateWith {
            self.mayBatchFrom = now + self.pause
            self.pause = min(2 * self.pause, Self.pauses.upperBound)
        } else {
            self.pause = Self.pauses.lowerBound
        }
    }
}

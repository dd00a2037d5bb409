/// How far apart commits begin while many pushes come.
///
/// A commit takes what came during the last one. Where syncs are short that is a handful, and most of what a push
/// costs is its part of a commit: calls of the system, and threads that wake for it. So while pushes come fast the
/// store rests after a commit, until two milliseconds have passed since that began or as many pushes are there as were
/// at its end, in it or behind it, and the next one takes them together.
///
/// Whoever waits for each answer before the next push is not kept waiting alone: such a push has its commit to itself.
/// Where more come without rests, which is looked into now and then, there are none for a while, longer each time.
///
/// Times are in microseconds of any clock that never goes back.
package struct CommitPace {
    /// The longest time between the beginnings of two commits that the store rests for.
    package static let intervalMax: Int64 = 2_000
    /// The pushes that must come in a second for the store to rest: eight in the longest interval.
    package static let pushesPerSecondMin: Int64 = 4_000
    /// For how long pushes are counted before it is judged how fast they come.
    package static let window: Int64 = 20_000
    /// The windows in a row in which fewer come than did without rests, until that is looked into.
    package static let slowWindowsMax = 5
    /// The windows with rests until it is looked into again how many come without: five seconds.
    package static let restingWindowsMax = 250
    /// For how long the store does not rest after it was seen that more pushes come when it does not: a second, and
    /// twice as long each time until it is a minute.
    package static let pauses: ClosedRange<Int64> = 1_000_000...64_000_000

    /// Whether the store rests after a commit.
    package private(set) var isResting = false
    /// When the rest after the last commit is over, if it is not before.
    package private(set) var restEnd = Int64.min
    /// The pushes with which it is over.
    private var restPushes: Int64 = 0
    /// The pushes that wait for the next commit.
    private var waiting: Int64 = 0
    /// When counting began.
    private var windowStart: Int64 = 0
    private var pushes: Int64 = 0
    private var commits: Int64 = 0
    /// The pushes that came in a second without rests.
    private var rateWithout: Int64 = 0
    /// The most pushes that came in a second when that was looked into.
    private var rateKnown: Int64 = 0
    /// How many windows there were with rests.
    private var restingWindows = 0
    /// In how many of them, the last in a row, fewer came.
    private var slowWindows = 0
    /// The pushes that came in a second with rests, until it is known how many come without.
    private var rateWith: Int64?
    /// When the store may rest again.
    private var mayRestFrom = Int64.min
    private var pause = CommitPace.pauses.lowerBound

    package init() {}

    /// When the next commit may begin; long ago when it may at once.
    package var nextMayBegin: Int64 { self.waiting >= self.restPushes ? .min : self.restEnd }

    /// So many pushes wait for the next commit.
    package mutating func collected(_ pushes: Int64) { self.waiting = pushes }

    /// A commit of everything that waits begins.
    package mutating func begun() { self.waiting = 0 }

    /// The rest is over, whatever waits.
    package mutating func endRest() { self.restEnd = .min }

    /// A commit was durable.
    ///
    /// - Parameters:
    ///   - pushes: those that it has made durable.
    ///   - start: when it began.
    ///   - end: when it was durable.
    package mutating func committed(_ pushes: Int64, from start: Int64, to end: Int64) {
        self.pushes += pushes
        if pushes > 0 { self.commits += 1 }
        if end - self.windowStart >= Self.window { self.judge(at: end) }
        self.restEnd = self.isResting ? start + Self.intervalMax : .min
        self.restPushes = pushes + self.waiting
    }

    private mutating func judge(at now: Int64) {
        let time = now - self.windowStart
        let rate = self.pushes * 1_000_000 / time
        // What has its commit to itself waits for its answer before the next comes.
        let areTogether = 10 * self.pushes >= 11 * self.commits
        if time >= 2 * Self.window {
            // Nothing came for a while: that says nothing of rests.
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

    /// Rests end for a window, so that it is seen how many come without: when fewer came for some windows, when so many
    /// more came that it is not known any more, and after a while.
    private mutating func judgeRests(_ rate: Int64) {
        self.restingWindows += 1
        // A fifth less may be chance in any window.
        self.slowWindows = 5 * rate < 4 * self.rateWithout ? self.slowWindows + 1 : 0
        let hasGrown = 4 * rate > 5 * self.rateKnown
        guard self.slowWindows == Self.slowWindowsMax || hasGrown || self.restingWindows == Self.restingWindowsMax
        else { return }
        self.isResting = false
        self.rateWith = rate
    }

    /// There are no rests for a while if more came without.
    private mutating func judgeRests(_ rateWith: Int64, without rate: Int64, at now: Int64) {
        if 4 * rate > 5 * rateWith {
            self.mayRestFrom = now + self.pause
            self.pause = min(2 * self.pause, Self.pauses.upperBound)
        } else {
            self.pause = Self.pauses.lowerBound
        }
    }
}

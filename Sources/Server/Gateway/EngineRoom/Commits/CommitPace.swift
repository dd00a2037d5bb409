/// The rest of the store between two commits, so that each has many pushes.
///
/// Without a rest a commit has the pushes that came during the last one. Where syncs are short that is a handful, and
/// most of what a push costs is its part of a commit: calls of the system, and threads that wake for it. So after a
/// commit of several pushes the store rests until as many wait, at most until a millisecond has passed since that
/// commit began. A push that comes alone has its commit to itself, and senders that wait for their answers end the
/// rest as they come again.
///
/// Times are in microseconds of any clock that never goes back.
package struct CommitPace {
    /// The longest time between the beginnings of two commits that the store rests for.
    package static let intervalMax: Int64 = 1_000

    /// When the rest after the last commit is over, if it is not before.
    package private(set) var restEnd = Int64.min
    /// The pushes with which it is over.
    private var restPushes: Int64 = 0
    /// The pushes that wait for the next commit.
    private var waiting: Int64 = 0

    package init() {}

    /// When the next commit may begin; long ago when it may at once.
    package var nextMayBegin: Int64 { self.waiting >= self.restPushes ? .min : self.restEnd }

    /// So many pushes wait for the next commit.
    package mutating func collected(_ pushes: Int64) { self.waiting = pushes }

    /// A commit of everything that waits begins.
    package mutating func begun() { self.waiting = 0 }

    /// The rest is over, whatever waits.
    package mutating func endRest() { self.restEnd = .min }

    /// A commit that began at `start` has made so many pushes durable.
    package mutating func committed(_ pushes: Int64, from start: Int64) {
        // What has no push in it does not wait behind one that came alone.
        self.restEnd = pushes > 1 ? start + Self.intervalMax : .min
        self.restPushes = pushes
    }
}

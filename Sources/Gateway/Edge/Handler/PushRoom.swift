/// How many pushes of a loop may be at the engine at a time.
///
/// As many as `requestsAtEngineMax`, but for a second after the push of a quiet topic that comes beside busy ones: such
/// a push waits for all that are at the engine, in one commit or two, so there may be fewer, 128 at first. Where a
/// commit takes its time whatever is in it, fewer would leave the disk idle and nobody served sooner. So there is twice
/// the room once 8 more pauses of the loop's reading were longer than 4 milliseconds than were not, and half of it once
/// 64 more were not. A pause begins when as many are at the engine as may be, and ends when answers have made room.
package struct PushRoom {
    /// The least room beside a quiet topic's pushes; 128.
    package static let sharedMin = 128
    /// How long the push of a quiet topic has an effect, in milliseconds; a second.
    package static let sharedMilliseconds: Int64 = 1000
    /// The nanoseconds of a pause that is not long, at most; 4 milliseconds.
    package static let pauseNanosecondsMax: Int64 = 4_000_000
    /// By how many more pauses are long than are not when there is to be more room.
    package static let longPausesMax = 8
    /// By how many more pauses are not long than are when less room is tried.
    package static let shortPausesMax = 64

    /// As `requestsAtEngineMax`.
    package var most: Int
    private var shared = PushRoom.sharedMin
    private var sharedUntil = Int64.min
    private var pausedAt: Int64?
    /// The long pauses since there was another room, less those that were not.
    private var longPauses = 0

    /// - Parameter most: as `requestsAtEngineMax`.
    package init(most: Int) {
        self.most = most
    }

    /// A push has come on a connection that is not busy, while others are.
    ///
    /// - Parameter now: on the monotonic clock, in milliseconds.
    package mutating func quietPushCame(now: Int64) {
        self.sharedUntil = now + Self.sharedMilliseconds
    }

    /// How many pushes there may be.
    ///
    /// - Parameter now: on the monotonic clock, in milliseconds.
    package func count(now: Int64) -> Int {
        now < self.sharedUntil ? min(self.shared, self.most) : self.most
    }

    /// A pause has begun.
    ///
    /// - Parameter now: on the monotonic clock, in nanoseconds.
    package mutating func paused(now: Int64) {
        self.pausedAt = now
    }

    /// A pause has ended.
    ///
    /// - Parameter now: on the monotonic clock, in nanoseconds.
    package mutating func resumed(now: Int64) {
        guard let pausedAt = self.pausedAt else { return }
        self.pausedAt = nil
        self.longPauses += now - pausedAt > Self.pauseNanosecondsMax ? 1 : -1
        if self.longPauses == Self.longPausesMax {
            self.set(min(2 * self.shared, max(self.most, Self.sharedMin)))
        } else if self.longPauses == -Self.shortPausesMax {
            self.set(max(self.shared / 2, Self.sharedMin))
        }
    }

    private mutating func set(_ count: Int) {
        self.shared = count
        self.longPauses = 0
    }
}

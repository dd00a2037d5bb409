/// How many pushes of a loop may be at the engine at a time.
///
/// As many as `requestsAtEngineMax`, but for a second after the push of a quiet topic that comes beside busy ones: such
/// a push waits for all that are at the engine, in one commit or two, so there may be fewer, 128 at first. Where a
/// commit takes its time whatever is in it, fewer would leave the disk idle and nobody served sooner. So there is twice
/// the room once 8 more pauses were longer than 1.5 milliseconds than were not; after 256 pauses the least is tried
/// again. A pause of the loop's reading begins when as many are at the engine as may be, and ends when answers have
/// made room.
package struct PushRoom {
    /// The room beside a quiet topic's pushes at first; 128.
    package static let besideQuietMin = 128
    /// How long the push of a quiet topic has an effect, in milliseconds; a second.
    package static let quietMilliseconds: Int64 = 1000
    /// The nanoseconds of a pause that is not long, at most; 1.5 milliseconds.
    package static let shortPauseNanosecondsMax: Int64 = 1_500_000
    /// By how many more pauses are long than are not when there is to be more room.
    package static let longPausesToGrow = 8
    /// After how many pauses with more room than the least that is tried again.
    package static let pausesToTryLeast = 256

    /// As `requestsAtEngineMax`.
    package var most: Int
    private let least: Int
    private var besideQuiet: Int
    private var quietUntil = Int64.min
    /// When a pause began that is to be judged.
    private var pausedAt: Int64?
    /// The pauses since there was another room, and by how many more were long than were not.
    private var pauses = 0, balance = 0

    /// - Parameters:
    ///   - most: as `requestsAtEngineMax`.
    ///   - least: the room beside a quiet topic's pushes at first; `Int.max` for all there is.
    package init(most: Int, least: Int = PushRoom.besideQuietMin) {
        self.most = most
        self.least = least
        self.besideQuiet = least
    }

    /// A push has come of a topic that is not busy, while others are.
    ///
    /// - Parameter now: on the monotonic clock, in milliseconds.
    package mutating func quietPushCame(now: Int64) {
        self.quietUntil = now + Self.quietMilliseconds
    }

    /// How many pushes there may be.
    ///
    /// - Parameter now: on the monotonic clock, in milliseconds.
    package func count(now: Int64) -> Int {
        now < self.quietUntil ? min(self.besideQuiet, self.most) : self.most
    }

    /// A pause has begun.
    ///
    /// - Parameters:
    ///   - count: the room that is full.
    ///   - now: on the monotonic clock, in nanoseconds.
    package mutating func paused(withRoomFor count: Int, now: Int64) {
        // A pause with more room says nothing about less.
        self.pausedAt = count == min(self.besideQuiet, self.most) ? now : nil
    }

    /// A pause has ended.
    ///
    /// - Parameter now: on the monotonic clock, in nanoseconds.
    package mutating func resumed(now: Int64) {
        guard let pausedAt = self.pausedAt else { return }
        self.pausedAt = nil
        self.pauses += 1
        self.balance += now - pausedAt > Self.shortPauseNanosecondsMax ? 1 : -1
        if self.balance >= Self.longPausesToGrow, self.besideQuiet < self.most {
            self.setBesideQuiet(min(2 * self.besideQuiet, self.most))
        } else if self.pauses >= Self.pausesToTryLeast {
            self.setBesideQuiet(self.least)
        }
    }

    private mutating func setBesideQuiet(_ count: Int) {
        self.besideQuiet = count
        (self.pauses, self.balance) = (0, 0)
    }
}

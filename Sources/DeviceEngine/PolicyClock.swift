package import LaunchPolicy

/// Policy time: a clock that goes on with the machine's uptime and never steps, however the wall clock is set.
///
/// A pure value: the readings of both clocks come in as arguments, in milliseconds.
package struct PolicyClock: Sendable {
    private let origin: Instant
    private let bootAtOrigin: Int64

    /// The first start: policy time begins at the wall clock.
    ///
    /// - Parameters:
    ///   - wall: milliseconds since 1970.
    ///   - boot: CLOCK_BOOTTIME, in milliseconds.
    package init(wall: Int64, boot: Int64) {
        self.origin = Instant(milliseconds: wall)
        self.bootAtOrigin = boot
    }

    /// A restart: policy time goes on where it stood, plus what the wall clock says has passed, if that is not less
    /// than nothing.
    package init(stored: Instant, storedWall: Int64, wall: Int64, boot: Int64) {
        let (passed, isPastAll) = wall.subtractingReportingOverflow(storedWall)
        self.origin = isPastAll ? stored : stored + max(0, passed)
        self.bootAtOrigin = boot
    }

    /// The moment at which the uptime is `boot`.
    package func now(boot: Int64) -> Instant {
        self.origin + (boot - self.bootAtOrigin)
    }
}

/// How policy time stands to the wall clock: what the edges translate with.
///
/// It is kept while readings of both clocks differ from it by no more than they are taken apart, so that one moment is
/// always the same number; it follows a wall clock that is set.
package struct WallOffset: Hashable, Sendable {
    /// The least change that is a wall clock that was set, in milliseconds. No clock is read a tenth of that later than
    /// the other, and who sets a wall clock by less is not seen.
    package static let stepMin: Int64 = 50

    /// Wall clock minus policy time, in milliseconds.
    package let milliseconds: Int64

    package init(wall: Int64, now: Instant) {
        let (milliseconds, isPastAll) = wall.subtractingReportingOverflow(now.milliseconds)
        self.milliseconds = isPastAll ? (wall < 0 ? .min : .max) : milliseconds
    }

    /// The offset to go on with after another reading of both clocks.
    ///
    /// - `tolerance`: how long after one clock the other may have been read, in milliseconds; a reading of too much
    ///   says nothing.
    package func following(wall: Int64, now: Instant, tolerance: Int64) -> WallOffset {
        let read = WallOffset(wall: wall, now: now)
        guard tolerance < Self.stepMin / 10, abs(read.milliseconds - self.milliseconds) >= Self.stepMin else {
            return self
        }
        return read
    }

    /// The wall clock at `instant`, in milliseconds since 1970.
    package func wall(_ instant: Instant) -> Int64 {
        (instant + self.milliseconds).milliseconds
    }

    /// The wall clock at `instant` in whole seconds, rounded up.
    package func wallSecondsRoundedUp(_ instant: Instant) -> Int64 {
        let milliseconds = self.wall(instant)
        return milliseconds / 1000 + (milliseconds % 1000 > 0 ? 1 : 0)
    }

    /// The moment of `seconds` since 1970 on the wall clock.
    package func instant(wallSeconds seconds: UInt64) -> Instant {
        let wall = Instant(milliseconds: Int64(min(seconds, UInt64(Int64.max / 2000))) * 1000)
        return wall - self.milliseconds
    }
}

package import Policy

/// Policy time: a clock that goes on with the machine's uptime and never steps, however the wall clock is set.
///
/// A pure value: the readings of both clocks come in as arguments, in milliseconds.
package struct PolicyClock: Sendable {
    private let origin: Instant
    private let bootAtOrigin: Int64
    /// nil where it is not known which boot this is.
    private let bootID: BootID?
    /// How far the wall clock was ahead of policy time at most.
    private var wallAheadMax: Int64

    /// The first start: policy time begins at the wall clock.
    ///
    /// - Parameters:
    ///   - wall: milliseconds since 1970.
    ///   - boot: CLOCK_BOOTTIME, in milliseconds.
    ///   - bootID: nil where it is not known which boot this is.
    package init(wall: Int64, boot: Int64, bootID: BootID? = nil) {
        self.origin = Instant(milliseconds: wall)
        self.bootAtOrigin = boot
        self.bootID = bootID
        self.wallAheadMax = 0
    }

    /// A restart: policy time goes on where it stood, plus what has passed since.
    ///
    /// Within one boot that is what the uptime says. Across boots it is what the wall clock says, if that is not less
    /// than nothing; a wall clock that had gone back makes up for that first. A jump of more than `jumpMax` is not
    /// believed: nothing has passed then.
    ///
    /// - Returns: besides the clock, the wall clock's jump where that is more than `jumpMax`, forward or back, and
    ///   policy time does not go by the uptime.
    package static func resumed(
        _ stored: ClockRecord,
        wall: Int64,
        boot: Int64,
        bootID: BootID?,
        jumpMax: Int64
    ) -> (clock: PolicyClock, jump: WallClockJump?) {
        let uptime = stored.boot.flatMap { $0.id == bootID ? boot - $0.milliseconds : nil }
        var passed: Int64
        var jump: WallClockJump?
        if let uptime, uptime >= 0 {
            passed = uptime
        } else {
            let wallPassed = Self.difference(wall, stored.wall)
            let before = WallOffset(wall: stored.wall, now: stored.now).milliseconds
            let behind = max(0, Self.difference(stored.wallAheadMax, before))
            passed = max(0, wallPassed >= behind ? wallPassed - behind : wallPassed)
            let isHeldBack = passed > jumpMax
            if isHeldBack { passed = 0 }
            if wallPassed > jumpMax || wallPassed < -jumpMax {
                jump = WallClockJump(from: stored.wall, to: wall, isHeldBack: isHeldBack)
            }
        }
        let clock = PolicyClock(
            origin: stored.now + passed,
            bootAtOrigin: boot,
            bootID: bootID,
            wallAheadMax: stored.wallAheadMax
        )
        return (clock, jump)
    }

    private init(origin: Instant, bootAtOrigin: Int64, bootID: BootID?, wallAheadMax: Int64) {
        self.origin = origin
        self.bootAtOrigin = bootAtOrigin
        self.bootID = bootID
        self.wallAheadMax = wallAheadMax
    }

    /// The moment at which the uptime is `boot`.
    package func now(boot: Int64) -> Instant {
        self.origin + (boot - self.bootAtOrigin)
    }

    /// What is kept of the clocks at `now`.
    ///
    /// - `offset`: how the wall clock stands to policy time then.
    package mutating func record(_ now: Instant, _ offset: WallOffset) -> ClockRecord {
        self.wallAheadMax = max(self.wallAheadMax, offset.milliseconds)
        let passed = max(0, Self.difference(now.milliseconds, self.origin.milliseconds))
        return ClockRecord(
            now: now,
            wall: offset.wall(now),
            wallAheadMax: self.wallAheadMax,
            boot: self.bootID.map { BootMoment(id: $0, milliseconds: self.bootAtOrigin + passed) }
        )
    }

    /// The difference, or the number next to it when it does not fit.
    private static func difference(_ left: Int64, _ right: Int64) -> Int64 {
        let (difference, isPastAll) = left.subtractingReportingOverflow(right)
        return isPastAll ? (left < 0 ? .min : .max) : difference
    }
}

/// A wall clock that stands elsewhere at a start than the time since the last commit can explain.
package struct WallClockJump: Hashable, Sendable {
    /// The wall clock at the last commit, in milliseconds since 1970.
    package let from: Int64
    /// The wall clock at the start, in milliseconds since 1970.
    package let to: Int64
    /// Policy time stands where it stood at the last commit: no time counts as passed.
    package let isHeldBack: Bool

    package init(from: Int64, to: Int64, isHeldBack: Bool) {
        self.from = from
        self.to = to
        self.isHeldBack = isHeldBack
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

    /// The moment of `milliseconds` since 1970 on the wall clock.
    package func instant(wallMilliseconds milliseconds: Int64) -> Instant {
        Instant(milliseconds: milliseconds) - self.milliseconds
    }

    /// The moment of `seconds` since 1970 on the wall clock.
    package func instant(wallSeconds seconds: UInt64) -> Instant {
        let wall = Instant(milliseconds: Int64(min(seconds, UInt64(Int64.max / 2000))) * 1000)
        return wall - self.milliseconds
    }
}

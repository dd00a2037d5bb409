package import Policy
package import Wire

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

/// The clocks at a commit: what policy time goes on from at the next start.
package struct ClockRecord: Hashable, Sendable {
    package let now: Instant
    /// Milliseconds since 1970.
    package let wall: Int64
    /// How far the wall clock was ahead of policy time at most, in milliseconds: less than it is now only where a
    /// record says nothing of it.
    package let wallAheadMax: Int64
    /// The machine's uptime; nil where it is not known which boot it was.
    package let boot: BootMoment?

    /// - `wallAheadMax`: nil when the wall clock was never ahead by more than it is now.
    package init(now: Instant, wall: Int64, wallAheadMax: Int64? = nil, boot: BootMoment? = nil) {
        self.now = now
        self.wall = wall
        self.wallAheadMax = wallAheadMax ?? WallOffset(wall: wall, now: now).milliseconds
        self.boot = boot
    }

    /// The record that `store` wrote, or an older build, which knew of no boot; nil when it is none.
    package init?(stored bytes: ByteView) {
        var reader = RecordReader(bytes)
        let now = reader.moment()
        let wall = reader.moment().milliseconds
        var wallAheadMax: Int64?
        var boot: BootMoment?
        if bytes.count > Self.olderBytes {
            wallAheadMax = reader.integer()
            let id = BootID(first: reader.integer(), second: reader.integer())
            let milliseconds: Int64 = reader.integer()
            guard milliseconds >= 0 else { return nil }
            if id != .unknown { boot = BootMoment(id: id, milliseconds: milliseconds) }
        }
        self.init(now: now, wall: wall, wallAheadMax: wallAheadMax, boot: boot)
        guard reader.isWhole else { return nil }
    }

    /// Policy time and wall clock alone.
    private static let olderBytes = 16

    /// Appends policy time, wall clock and its greatest lead (8 bytes each), the boot's id (16) and the uptime (8).
    package func store(to buffer: inout ByteBuffer) {
        let id = self.boot?.id ?? .unknown
        buffer.appendLittleEndian(self.now.milliseconds)
        buffer.appendLittleEndian(self.wall)
        buffer.appendLittleEndian(self.wallAheadMax)
        buffer.appendLittleEndian(id.first)
        buffer.appendLittleEndian(id.second)
        buffer.appendLittleEndian(self.boot?.milliseconds ?? 0)
    }
}

/// What tells one boot of a machine from every other.
package struct BootID: Hashable, Sendable {
    package let first: UInt64
    package let second: UInt64

    /// No boot has it.
    package static let unknown = BootID(first: 0, second: 0)

    package init(first: UInt64, second: UInt64) {
        self.first = first
        self.second = second
    }

    /// The id as Linux writes it: 32 hexadecimal digits, with hyphens; nil when it is none.
    package init?(text: some StringProtocol) {
        let digits = String(text).filter { $0 != "-" }
        guard digits.utf8.count == 32, let first = UInt64(digits.prefix(16), radix: 16),
            let second = UInt64(digits.suffix(16), radix: 16)
        else { return nil }
        self.init(first: first, second: second)
        guard self != .unknown else { return nil }
    }
}

/// A moment on the uptime of one boot.
package struct BootMoment: Hashable, Sendable {
    package let id: BootID
    /// CLOCK_BOOTTIME, in milliseconds.
    package let milliseconds: Int64

    package init(id: BootID, milliseconds: Int64) {
        self.id = id
        self.milliseconds = milliseconds
    }
}

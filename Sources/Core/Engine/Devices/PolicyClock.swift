package import Policy
package import Wire

/// Policy time: a clock that follows the machine's uptime and never jumps, even if the wall clock is set.
///
/// This is a pure value: the readings of both clocks are arguments, in milliseconds.
package struct PolicyClock: Sendable {
    private var origin: Instant
    private let bootAtOrigin: Int64
    /// The id of this boot; nil if it is unknown.
    private let bootID: BootID?
    /// The maximum lead of the wall clock over policy time, in milliseconds.
    private var wallAheadMax: Int64

    /// Creates the clock of a first start: policy time starts at the wall clock.
    ///
    /// - Parameters:
    ///   - wall: milliseconds since 1970.
    ///   - boot: CLOCK_BOOTTIME, in milliseconds.
    ///   - bootID: the id of this boot; nil if it is unknown.
    package init(wall: Int64, boot: Int64, bootID: BootID? = nil) {
        self.origin = Instant(milliseconds: wall)
        self.bootAtOrigin = boot
        self.bootID = bootID
        self.wallAheadMax = 0
    }

    /// Creates the clock of a restart: policy time continues at the stored time plus the elapsed time.
    ///
    /// Within one boot, the uptime measures the elapsed time. Across boots, the wall clock measures it. If the wall
    /// clock was set back before, part of its advance may be the correction of that step; this part is subtracted. A
    /// negative result, or a result above `jumpMax`, counts as zero.
    ///
    /// - Returns: the clock, and the jump of the wall clock if it exceeds `jumpMax` in either direction. The jump is
    ///   nil if the uptime measures the elapsed time.
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
        var clock = PolicyClock(wall: wall, boot: boot, bootID: bootID)
        clock.origin = stored.now + passed
        clock.wallAheadMax = stored.wallAheadMax
        return (clock, jump)
    }

    /// Returns the policy time at an uptime of `boot`.
    package func now(boot: Int64) -> Instant {
        self.origin + (boot - self.bootAtOrigin)
    }

    /// Returns the record of both clocks at `now`.
    ///
    /// - `offset`: the offset of the wall clock to policy time at `now`.
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

    /// Returns `left` minus `right`, clamped to the range of `Int64`.
    fileprivate static func difference(_ left: Int64, _ right: Int64) -> Int64 {
        let (difference, isPastAll) = left.subtractingReportingOverflow(right)
        return isPastAll ? (left < 0 ? .min : .max) : difference
    }
}

/// A change of the wall clock between the last commit and a start that is larger than accepted.
package struct WallClockJump: Hashable, Sendable {
    /// The wall clock at the last commit, in milliseconds since 1970.
    package let from: Int64
    /// The wall clock at the start, in milliseconds since 1970.
    package let to: Int64
    /// True if policy time continues at the last commit, as if no time had elapsed.
    package let isHeldBack: Bool

    package init(from: Int64, to: Int64, isHeldBack: Bool) {
        self.from = from
        self.to = to
        self.isHeldBack = isHeldBack
    }
}

/// The offset of the wall clock to policy time, used to convert the times in requests and answers.
///
/// The offset changes only if the wall clock is set by at least `stepMin`. Otherwise, one instant always converts to
/// the same number.
package struct WallOffset: Hashable, Sendable {
    /// The minimum change that counts as setting the wall clock, in milliseconds. A reading of both clocks must
    /// take less than a tenth of it.
    package static let stepMin: Int64 = 50

    /// Wall clock minus policy time, in milliseconds.
    package let milliseconds: Int64

    package init(wall: Int64, now: Instant) {
        self.milliseconds = PolicyClock.difference(wall, now.milliseconds)
    }

    /// Returns the offset to use after another reading of both clocks.
    ///
    /// - `tolerance`: the maximum time between the readings of the two clocks, in milliseconds. If it is too large, the
    ///   reading is ignored.
    package func following(wall: Int64, now: Instant, tolerance: Int64) -> WallOffset {
        let read = WallOffset(wall: wall, now: now)
        guard tolerance < Self.stepMin / 10, abs(read.milliseconds - self.milliseconds) >= Self.stepMin else {
            return self
        }
        return read
    }

    /// Returns the wall clock at `instant`, in milliseconds since 1970.
    package func wall(_ instant: Instant) -> Int64 {
        (instant + self.milliseconds).milliseconds
    }

    /// Returns the wall clock at `instant` in whole seconds, rounded up.
    package func wallSecondsRoundedUp(_ instant: Instant) -> Int64 {
        let milliseconds = self.wall(instant)
        return milliseconds / 1000 + (milliseconds % 1000 > 0 ? 1 : 0)
    }

    /// Returns the policy time at `milliseconds` since 1970 on the wall clock.
    package func instant(wallMilliseconds milliseconds: Int64) -> Instant {
        Instant(milliseconds: milliseconds) - self.milliseconds
    }

    /// Returns the policy time at `seconds` since 1970 on the wall clock.
    package func instant(wallSeconds seconds: UInt64) -> Instant {
        let wall = Instant(milliseconds: Int64(min(seconds, UInt64(Int64.max / 2000))) * 1000)
        return wall - self.milliseconds
    }
}

/// The state of both clocks at a commit, from which policy time continues at the next start.
package struct ClockRecord: Hashable, Sendable {
    package let now: Instant
    /// Milliseconds since 1970.
    package let wall: Int64
    /// The maximum lead of the wall clock over policy time, in milliseconds.
    package let wallAheadMax: Int64
    /// The machine's uptime; nil if the boot is unknown.
    package let boot: BootMoment?

    /// - `wallAheadMax`: nil if the current lead is the maximum.
    package init(now: Instant, wall: Int64, wallAheadMax: Int64? = nil, boot: BootMoment? = nil) {
        self.now = now
        self.wall = wall
        self.wallAheadMax = wallAheadMax ?? WallOffset(wall: wall, now: now).milliseconds
        self.boot = boot
    }

    /// Decodes the output of `store`; nil if it is malformed.
    package init?(stored bytes: ByteView) {
        var reader = RecordReader(bytes)
        let now = reader.moment()
        let wall = reader.moment().milliseconds
        let wallAheadMax: Int64 = reader.integer()
        let id = BootID(first: reader.integer(), second: reader.integer())
        let milliseconds: Int64 = reader.integer()
        guard reader.isWhole, milliseconds >= 0 else { return nil }
        let boot = id == .unknown ? nil : BootMoment(id: id, milliseconds: milliseconds)
        self.init(now: now, wall: wall, wallAheadMax: wallAheadMax, boot: boot)
    }

    /// Appends policy time, wall clock and its maximum lead (8 bytes each), the boot's id (16) and the uptime (8).
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

/// The unique id of one boot of a machine.
package struct BootID: Hashable, Sendable {
    package let first: UInt64
    package let second: UInt64

    /// The placeholder for an unknown boot.
    package static let unknown = BootID(first: 0, second: 0)

    package init(first: UInt64, second: UInt64) {
        self.first = first
        self.second = second
    }

    /// Parses the id in the form of Linux: 32 hexadecimal digits, with hyphens; nil if it is malformed.
    package init?(text: some StringProtocol) {
        let digits = String(text).filter { $0 != "-" }
        guard digits.utf8.count == 32, let first = UInt64(digits.prefix(16), radix: 16),
            let second = UInt64(digits.suffix(16), radix: 16)
        else { return nil }
        self.init(first: first, second: second)
        guard self != .unknown else { return nil }
    }
}

/// An uptime within one boot.
package struct BootMoment: Hashable, Sendable {
    package let id: BootID
    /// CLOCK_BOOTTIME, in milliseconds.
    package let milliseconds: Int64

    package init(id: BootID, milliseconds: Int64) {
        self.id = id
        self.milliseconds = milliseconds
    }
}

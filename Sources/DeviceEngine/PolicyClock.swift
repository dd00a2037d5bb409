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
        self.origin = stored + max(0, wall - storedWall)
        self.bootAtOrigin = boot
    }

    /// The moment at which the uptime is `boot`.
    package func now(boot: Int64) -> Instant {
        self.origin + (boot - self.bootAtOrigin)
    }
}

/// How policy time stands to the wall clock right now: what the edges translate with.
package struct WallOffset: Hashable, Sendable {
    /// Wall clock minus policy time, in milliseconds.
    package let milliseconds: Int64

    package init(wall: Int64, now: Instant) {
        self.milliseconds = wall - now.milliseconds
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

package import Engine
package import Policy

/// The clocks of an engine: policy time, and how the wall clock stands to it.
package struct EngineClock {
    /// The moment of the current step, in policy time.
    package private(set) var now: Instant
    /// Wall clock minus policy time at the current step.
    package private(set) var offset: WallOffset
    private let world: EngineWorld
    private var clock: PolicyClock

    /// Both clocks as they were read together, in milliseconds.
    package struct Reading {
        /// Since 1970.
        let wall: Int64
        /// Since the machine started.
        let boot: Int64

        package init(_ world: EngineWorld) {
            self.wall = world.wall()
            self.boot = world.boot()
        }
    }

    /// Goes on from the clocks of the last commit; begins where there was none.
    ///
    /// - `reading`: how the clocks stood when the start began.
    package init(resuming stored: ClockRecord?, at reading: Reading, _ world: EngineWorld, _ jumpWatch: ClockJumpWatch)
    {
        self.world = world
        if let stored {
            let resumed = PolicyClock.resumed(
                stored,
                wall: reading.wall,
                boot: reading.boot,
                bootID: world.bootID,
                jumpMax: jumpWatch.millisecondsMax
            )
            if let jump = resumed.jump { jumpWatch.onJump(jump) }
            self.clock = resumed.clock
        } else {
            self.clock = PolicyClock(wall: reading.wall, boot: reading.boot, bootID: world.bootID)
        }
        self.now = self.clock.now(boot: reading.boot)
        self.offset = WallOffset(wall: reading.wall, now: self.now)
    }

    /// A step begins: reads both clocks.
    package mutating func step() {
        let boot = self.world.boot()
        self.now = self.clock.now(boot: boot)
        let wall = self.world.wall()
        self.offset = self.offset.following(wall: wall, now: self.now, tolerance: self.world.boot() - boot)
    }

    /// How many milliseconds there are from the present, not the step's, to a moment in policy time.
    package func milliseconds(until moment: Int64) -> Int64 {
        moment - self.clock.now(boot: self.world.boot()).milliseconds
    }

    /// What is kept of the clocks at `now`, a moment of this step.
    package mutating func record(at now: Instant) -> ClockRecord {
        self.clock.record(now, self.offset)
    }

    /// Milliseconds on a clock that stands still while the machine is suspended.
    package var monotonic: Int64 { self.world.monotonic() }
}

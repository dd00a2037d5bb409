package import Engine
import Glibc
import Platform
package import Policy
package import ServiceManager

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

/// What the engine's thread knows of the world: its clocks, and chance.
package struct EngineWorld: Sendable {
    /// Milliseconds since 1970, as the wall clock has it.
    package let wall: @Sendable () -> Int64
    /// Milliseconds since the machine started, suspended time included.
    package let boot: @Sendable () -> Int64
    /// Milliseconds on a clock that stands still while the machine is suspended.
    package let monotonic: @Sendable () -> Int64
    /// What tells this boot from others; nil where nothing does.
    package let bootID: BootID?
    /// Begins a sequence of 128 unpredictable bits a call; one thread uses it.
    package let makeRandom: @Sendable () -> () -> (UInt64, UInt64)

    package init(
        wall: @escaping @Sendable () -> Int64,
        boot: @escaping @Sendable () -> Int64,
        monotonic: @escaping @Sendable () -> Int64,
        bootID: BootID?,
        makeRandom: @escaping @Sendable () -> () -> (UInt64, UInt64)
    ) {
        self.wall = wall
        self.boot = boot
        self.monotonic = monotonic
        self.bootID = bootID
        self.makeRandom = makeRandom
    }

    /// The machine's own.
    package static let system = EngineWorld(
        wall: { SystemClock.wall },
        boot: { SystemClock.boot },
        monotonic: { SystemClock.monotonic },
        bootID: SystemClock.bootID,
        makeRandom: {
            var random = RandomBits()
            return { random.pair() }
        }
    )
}

extension SystemClock {
    /// What tells this boot from others; nil where the system does not say.
    package static let bootID: BootID? = {
        let file = try? OpenFile("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard let bytes = try? file?.contents(bytesMax: 64) else { return nil }
        return BootID(text: String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }()
}

/// What becomes of a wall clock that stands far from where it stood at the last commit.
package struct ClockJumpWatch: Sendable {
    /// The longest time that the wall clock is believed to have passed between two boots, in milliseconds.
    let millisecondsMax: Int64
    /// Hears, before anything is stored, of a clock that went farther, forward or back.
    let onJump: @Sendable (WallClockJump) -> Void

    package init(
        millisecondsMax: Int64 = GatewayConfiguration().clockJumpMaxMilliseconds,
        onJump: @escaping @Sendable (WallClockJump) -> Void = { _ in }
    ) {
        self.millisecondsMax = millisecondsMax
        self.onJump = onJump
    }

    /// Logs both times, what that means for the pushes that wait, and what to do.
    package init(_ configuration: GatewayConfiguration, _ log: GatewayLog) {
        self.init(millisecondsMax: configuration.clockJumpMaxMilliseconds) { jump in
            let seconds = (jump.to - jump.from).magnitude / 1000
            let meaning: String
            let remedy: String
            if jump.isHeldBack {
                meaning = "held back: waiting pushes keep the time they had left at the last commit"
                remedy =
                    "see to the clock; if the machine was off for so long and the pushes are to expire, set "
                    + "clockJumpMax to more than \(seconds) before its start"
            } else if jump.to > jump.from {
                meaning = "what the clock had gone back by before is made up for; the rest counts as passed"
                remedy = "see that the clock stays right"
            } else {
                meaning = "no time counts as passed since the last commit"
                remedy = "see to the clock: expiry times of pushes that come now are reckoned by it"
            }
            log.write(
                .clockJumped,
                [
                    "lastCommit": WallTime.text(jump.from), "now": WallTime.text(jump.to), "seconds": "\(seconds)",
                    "meaning": meaning, "remedy": remedy,
                ]
            )
        }
    }
}

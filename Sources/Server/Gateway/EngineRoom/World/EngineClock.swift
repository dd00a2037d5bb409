package import Engine
import Glibc
import Platform
package import Policy
package import ServiceManager

/// The clocks of an engine: policy time, and the offset of the wall clock to policy time.
package struct EngineClock {
    /// The time of the current step, in policy time.
    package private(set) var now: Instant
    /// The offset of the wall clock to policy time at the current step.
    package private(set) var offset: WallOffset
    private let world: EngineWorld
    private var clock: PolicyClock

    /// Both clocks, read at the same time, in milliseconds.
    package struct Reading {
        /// The time since 1970.
        let wall: Int64
        /// The time since the start of the machine.
        let boot: Int64

        package init(_ world: EngineWorld) {
            self.wall = world.wall()
            self.boot = world.boot()
        }
    }

    /// Continues from the clocks of the last commit, or starts new ones if there was none.
    ///
    /// - `reading`: both clocks, read when the start of the engine began.
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

    /// Begins a step: reads both clocks.
    package mutating func step() {
        let boot = self.world.boot()
        self.now = self.clock.now(boot: boot)
        let wall = self.world.wall()
        self.offset = self.offset.following(wall: wall, now: self.now, tolerance: self.world.boot() - boot)
    }

    /// Returns the milliseconds until a policy time, counted from the present rather than from the start of the step.
    package func milliseconds(until moment: Int64) -> Int64 {
        moment - self.clock.now(boot: self.world.boot()).milliseconds
    }

    /// Returns the record of both clocks to store.
    ///
    /// - Parameter now: a policy time of this step.
    package mutating func record(at now: Instant) -> ClockRecord {
        self.clock.record(now, self.offset)
    }

    /// The time on a clock that does not advance while the machine is suspended, in milliseconds.
    package var monotonic: Int64 { self.world.monotonic() }
}

/// The environment of the engine's thread: its clocks and its source of random numbers.
package struct EngineWorld: Sendable {
    /// The wall clock, in milliseconds since 1970.
    package let wall: @Sendable () -> Int64
    /// The time since the start of the machine, in milliseconds, including suspended time.
    package let boot: @Sendable () -> Int64
    /// The time on a clock that does not advance while the machine is suspended, in milliseconds.
    package let monotonic: @Sendable () -> Int64
    /// The id of the current boot; nil if it is unknown.
    package let bootID: BootID?
    /// Creates a generator for one thread, which returns 128 unpredictable bits per call.
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

    /// The environment of this machine.
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
    /// The id of the current boot; nil if the system does not provide one.
    package static let bootID: BootID? = {
        let file = try? OpenFile("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard let bytes = try? file?.contents(bytesMax: 64) else { return nil }
        return BootID(text: String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }()
}

/// The handling of a wall clock that has jumped between the last commit and a start.
package struct ClockJumpWatch: Sendable {
    /// The maximum plausible change of the wall clock since the last commit, in milliseconds, forward or back.
    let millisecondsMax: Int64
    /// Called if the wall clock has changed by more than `millisecondsMax` and the uptime does not determine the
    /// elapsed time. The engine stores nothing before this call.
    let onJump: @Sendable (WallClockJump) -> Void

    package init(
        millisecondsMax: Int64 = GatewayConfiguration().clockJumpMaxMilliseconds,
        onJump: @escaping @Sendable (WallClockJump) -> Void = { _ in }
    ) {
        self.millisecondsMax = millisecondsMax
        self.onJump = onJump
    }

    /// Creates a watch that logs both times, the consequences for pending pushes, and the remedy.
    package init(_ configuration: GatewayConfiguration, _ log: GatewayLog) {
        self.init(millisecondsMax: configuration.clockJumpMaxMilliseconds) { jump in
            let seconds = (jump.to - jump.from).magnitude / 1000
            let meaning: String
            let remedy: String
            if jump.isHeldBack {
                meaning = "no time counts as elapsed since the last commit: waiting pushes keep their remaining time"
                remedy =
                    "check the clock; if the machine was off for that long and its pushes should expire, set "
                    + "clockJumpMax to more than \(seconds) before the start"
            } else if jump.to > jump.from {
                meaning = "the clock has made up for an earlier step back; the rest of the difference counts as elapsed"
                remedy = "check that the clock stays correct"
            } else {
                meaning = "no time counts as elapsed since the last commit"
                remedy = "correct the clock: the expiration of new pushes depends on it"
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

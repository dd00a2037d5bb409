package import Engine
import Policy

/// The agent's time, in milliseconds: it goes on with the machine's uptime however the wall clock is set, so that no
/// deadline passes because of that.
///
/// It began at the wall clock of the first start. Moments that people read or write are the wall clock's; they are
/// translated where they leave and come.
package struct AgentClock {
    /// The moment of the current turn.
    package private(set) var now: Int64
    /// The wall clock's jump between the last commit and the start, where it is more than is believed.
    package let jump: WallClockJump?
    private var clock: PolicyClock
    private var offset: WallOffset
    private let world: any AgentWorld

    /// The longest time between two starts that is believed: a year, more than the longest time-out of a transfer.
    package static let jumpMax: Int64 = 366 * 86_400_000

    /// Goes on from the clocks of the last commit; begins where there was none.
    ///
    /// - Parameters:
    ///   - stored: the clocks of the last commit.
    ///   - boot: tells this boot of the machine from others.
    ///   - world: where the clocks are read.
    package init(resuming stored: ClockRecord?, boot: String, _ world: any AgentWorld) {
        let bootID = BootID(text: boot)
        let uptime = world.boot
        let wall = world.wall
        if let stored {
            let resumed = PolicyClock.resumed(
                stored,
                wall: wall,
                boot: uptime,
                bootID: bootID,
                jumpMax: Self.jumpMax
            )
            self.clock = resumed.clock
            self.jump = resumed.jump
        } else {
            self.clock = PolicyClock(wall: wall, boot: uptime, bootID: bootID)
            self.jump = nil
        }
        let now = self.clock.now(boot: uptime)
        self.now = now.milliseconds
        let before = stored.map { WallOffset(wall: $0.wall, now: $0.now) } ?? WallOffset(wall: wall, now: now)
        // What two clocks differ by as they are read makes nobody's moment another.
        self.offset = before.following(wall: wall, now: now, tolerance: world.boot - uptime)
        self.world = world
    }

    /// A turn begins: reads both clocks.
    ///
    /// - Returns: by how much the wall clock was set since the last turn.
    package mutating func step() -> Int64 {
        let uptime = self.world.boot
        let now = self.clock.now(boot: uptime)
        let before = self.offset
        let wall = self.world.wall
        self.offset = before.following(wall: wall, now: now, tolerance: self.world.boot - uptime)
        self.now = now.milliseconds
        return self.offset.milliseconds - before.milliseconds
    }

    /// How many milliseconds there are from the present, not the turn's, to a moment.
    package func milliseconds(until moment: Int64) -> Int64 {
        moment - self.clock.now(boot: self.world.boot).milliseconds
    }

    /// A moment as the wall clock has it, in milliseconds since 1970.
    package func wall(_ moment: Int64) -> Int64 {
        self.offset.wall(Instant(milliseconds: moment))
    }

    /// The moment at which the wall clock has so many milliseconds since 1970; never before all others.
    package func moment(wall milliseconds: Int64) -> Int64 {
        max(0, self.offset.instant(wallMilliseconds: milliseconds).milliseconds)
    }

    /// How much further ahead the wall clock is than it was at `stored`.
    package func stepped(since stored: ClockRecord) -> Int64 {
        self.offset.milliseconds - WallOffset(wall: stored.wall, now: stored.now).milliseconds
    }

    /// What is kept of the clocks with a commit of this turn.
    package mutating func record() -> ClockRecord {
        self.clock.record(Instant(milliseconds: self.now), self.offset)
    }
}

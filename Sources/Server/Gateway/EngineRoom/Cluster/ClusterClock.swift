import Engine
import Policy

/// Policy time as the store said it last, and as it goes on from there by this machine's uptime: what a transaction
/// takes for the present its store says again.
struct ClusterClock {
    private let world: EngineWorld
    /// Milliseconds since the machine started, in this step.
    private(set) var boot: Int64
    /// Wall clock minus policy time.
    private(set) var offset: WallOffset
    private var said: Instant
    private var bootThen: Int64

    init(_ world: EngineWorld) {
        self.world = world
        self.boot = world.boot()
        let wall = world.wall()
        self.said = Instant(milliseconds: wall)
        self.bootThen = self.boot
        self.offset = WallOffset(wall: wall, now: self.said)
    }

    /// About what the store would say now.
    var now: Instant { self.said + (self.boot - self.bootThen) }

    /// A step begins.
    mutating func step() { self.boot = self.world.boot() }

    /// The store says policy time, and what the primary's clock shows.
    mutating func heard(_ now: Instant, wall: Int64) {
        self.said = now
        self.bootThen = self.boot
        self.offset = self.offset.following(wall: wall, now: now, tolerance: 0)
    }
}

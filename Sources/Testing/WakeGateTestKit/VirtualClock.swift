/// Both clocks of a machine, in milliseconds; a test moves them, together or one alone.
package struct VirtualClock: Hashable, Sendable {
    /// The uptime: it only ever goes on.
    package private(set) var boot: Int64
    /// Milliseconds since 1970, as somebody set it.
    package private(set) var wall: Int64

    package init(boot: Int64, wall: Int64) {
        self.boot = boot
        self.wall = wall
    }

    /// Time passes; both clocks go on.
    package mutating func pass(_ milliseconds: Int64) {
        precondition(milliseconds >= 0, "time does not run backwards")
        self.boot += milliseconds
        self.wall += milliseconds
    }

    /// Somebody sets the wall clock.
    package mutating func stepWall(by milliseconds: Int64) {
        self.wall += milliseconds
    }

    /// The machine starts again: the uptime begins anew.
    package mutating func reboot() {
        self.boot = 0
    }
}

/// The uptime and the wall clock of a simulated machine. A test advances both, or steps the wall clock alone.
package struct VirtualClock: Hashable, Sendable {
    /// The uptime in milliseconds, which decreases only at a reboot.
    package private(set) var boot: Int64
    /// The wall clock in milliseconds since 1970.
    package private(set) var wall: Int64

    package init(boot: Int64, wall: Int64) {
        self.boot = boot
        self.wall = wall
    }

    /// Advances both clocks by `milliseconds`, which must not be negative.
    package mutating func pass(_ milliseconds: Int64) {
        precondition(milliseconds >= 0, "time does not run backwards")
        self.boot += milliseconds
        self.wall += milliseconds
    }

    /// Steps the wall clock forward, or back by a negative number.
    package mutating func stepWall(by milliseconds: Int64) {
        self.wall += milliseconds
    }

    /// Reboots the machine: the uptime starts again at 0.
    package mutating func reboot() {
        self.boot = 0
    }
}

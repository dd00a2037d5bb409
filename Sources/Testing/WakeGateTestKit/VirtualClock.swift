/// The uptime and wall clock of a machine, in milliseconds. A test advances both, or steps the wall clock.
package struct VirtualClock: Hashable, Sendable {
    /// The uptime, which never decreases except at a reboot.
    package private(set) var boot: Int64
    /// The wall clock in milliseconds since 1970.
    package private(set) var wall: Int64

    package init(boot: Int64, wall: Int64) {
        self.boot = boot
        self.wall = wall
    }

    /// Advances both clocks.
    package mutating func pass(_ milliseconds: Int64) {
        precondition(milliseconds >= 0, "time does not run backwards")
        self.boot += milliseconds
        self.wall += milliseconds
    }

    /// Steps the wall clock.
    package mutating func stepWall(by milliseconds: Int64) {
        self.wall += milliseconds
    }

    /// Restarts the machine, after which the uptime begins at 0.
    package mutating func reboot() {
        self.boot = 0
    }
}

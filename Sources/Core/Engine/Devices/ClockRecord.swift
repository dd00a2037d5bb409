package import Policy
package import Wire

/// The clocks at a commit: what policy time goes on from at the next start.
package struct ClockRecord: Hashable, Sendable {
    package let now: Instant
    /// Milliseconds since 1970.
    package let wall: Int64
    /// How far the wall clock was ahead of policy time at most, in milliseconds: less than it is now only where a
    /// record says nothing of it.
    package let wallAheadMax: Int64
    /// The machine's uptime; nil where it is not known which boot it was.
    package let boot: BootMoment?

    /// - `wallAheadMax`: nil when the wall clock was never ahead by more than it is now.
    package init(now: Instant, wall: Int64, wallAheadMax: Int64? = nil, boot: BootMoment? = nil) {
        self.now = now
        self.wall = wall
        self.wallAheadMax = wallAheadMax ?? WallOffset(wall: wall, now: now).milliseconds
        self.boot = boot
    }

    /// The record that `store` wrote, or an older build, which knew of no boot; nil when it is none.
    package init?(stored bytes: ByteView) {
        var reader = RecordReader(bytes)
        let now = reader.moment()
        let wall = reader.moment().milliseconds
        var wallAheadMax: Int64?
        var boot: BootMoment?
        if bytes.count > Self.olderBytes {
            wallAheadMax = reader.integer()
            let id = BootID(first: reader.integer(), second: reader.integer())
            let milliseconds: Int64 = reader.integer()
            guard milliseconds >= 0 else { return nil }
            if id != .unknown { boot = BootMoment(id: id, milliseconds: milliseconds) }
        }
        self.init(now: now, wall: wall, wallAheadMax: wallAheadMax, boot: boot)
        guard reader.isWhole else { return nil }
    }

    /// Policy time and wall clock alone.
    private static let olderBytes = 16

    /// Appends policy time, wall clock and its greatest lead (8 bytes each), the boot's id (16) and the uptime (8).
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

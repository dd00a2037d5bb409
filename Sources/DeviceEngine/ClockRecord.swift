package import Bytes
package import LaunchPolicy

/// Both clocks at a commit: what policy time goes on from at the next start.
package struct ClockRecord: Hashable, Sendable {
    package let now: Instant
    /// Milliseconds since 1970.
    package let wall: Int64

    package init(now: Instant, wall: Int64) {
        self.now = now
        self.wall = wall
    }

    /// The record that `store` wrote; nil when it is none.
    package init?(stored bytes: ByteView) {
        var reader = RecordReader(bytes)
        self.init(now: Instant(milliseconds: reader.integer()), wall: reader.integer())
        guard reader.isWhole else { return nil }
    }

    /// Appends policy time and wall clock, 8 bytes each.
    package func store(to buffer: inout ByteBuffer) {
        buffer.appendLittleEndian(self.now.milliseconds)
        buffer.appendLittleEndian(self.wall)
    }
}

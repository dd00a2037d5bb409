/// Every bound of the agent: its unit, its default, and why it is that number.
package struct TransferLimits: Hashable, Sendable {
    /// Sessions; 1,000, far more than one user has apps.
    package var sessionsMax = 1_000
    /// Transfers that are remembered, ended ones among them; 100,000, some 40 MB of memory.
    package var transfersMax = 100_000
    /// Transfers that run at a time; 64, more than fill any line.
    package var runningMax = 64
    /// Streams of events of one user at a time; 256, far more than one user has workers.
    package var followersMax = 256
    /// Connections of one user at a time; 256 more than streams of events, so that there is always one to ask with.
    package var connectionsPerUserMax: Int { self.followersMax + 256 }
    /// Bytes of all files in the state folder; 1 TiB, so that the disk is what bounds it.
    package var stateBytesMax: Int64 = 1 << 40
    /// Bytes of one file; 256 GiB, larger than any that a background transfer should be.
    package var fileBytesMax: Int64 = 256 << 30
    /// Milliseconds for which a finished file waits to be taken, and an ended transfer is remembered; 7 days.
    package var untakenFor: Int64 = 604_800_000

    package init() {}
}

/// How much work the journal puts into one commit, and when.
package struct JournalLimits: Sendable {
    /// The content of a row, unless one record is longer.
    ///
    /// With pages of 16 KiB a row of this size is four full overflow pages and 2 KiB in a leaf, so that next to
    /// nothing of the file is padding.
    package var rowBytesMax = 67_500
    /// Rows of this many bytes in all are not compacted: the pages of a small file are not worth writing again.
    package var compactionFloorBytes = 1 << 20
    /// Bytes of rows that are deleted together. Deleting the rows of each commit with it dirties as many pages again as
    /// the commit's own records do, since SQLite evens out three leaves each time.
    package var deletionBytes = 512 << 10
    /// Pages in the write-ahead log that are not in the file yet, at which a checkpoint is asked for: 3 MiB. Syncing
    /// so few beside a commit makes it wait for a millisecond; asked for at fewer, more than one lone commit in a
    /// hundred would.
    package var checkpointPages = 192
    /// How many such pages make commits wait for the checkpoint that is being made: 32 MiB.
    package var waitPages = 2048
    /// Pages in the write-ahead log at which a commit copies the last of them itself, so that the next one begins the
    /// log anew: 64 MiB. A log that is written again and again is synced faster than one that grows.
    package var restartPages = 4096
    /// How many pages that may be.
    package var restPages = 96
    /// Pages in the write-ahead log at which a commit waits until all are copied: 128 MiB.
    package var logPagesMax = 8192

    /// The bytes of rows that are kept because the history has not made their events durable, which takes it seconds:
    /// 256 MiB. Beyond that it cannot be written, and the oldest events are given up.
    package var heldBytesMax = 256 << 20

    package init() {}
}

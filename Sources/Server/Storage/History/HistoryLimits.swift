/// The bounds of the history. Everything else follows from the size.
package struct HistoryLimits: Hashable, Sendable {
    /// The bytes that the file and its write-ahead log stay within; at least 4 MiB.
    package let bytesMax: Int
    /// How long an event is kept, in milliseconds of policy time; up to an eighth more, as events leave in large lots.
    package let ageMillisecondsMax: Int64

    package init(
        bytesMax: Int = 256 << 20,
        ageMillisecondsMax: Int64 = 7 * 86_400_000
    ) {
        self.bytesMax = max(bytesMax, 4 << 20)
        self.ageMillisecondsMax = max(ageMillisecondsMax, 0)
    }

    /// A history in memory: smaller, as it stands beside the devices.
    package static let inMemory = HistoryLimits(bytesMax: 32 << 20)

    /// The bytes of the runs that are kept; the rest of the size is for the log, and for a merge's result while its
    /// inputs are still there.
    var keptBytesMax: Int { self.bytesMax / 16 * 10 }

    /// The events of the largest run that a merge makes: about a thirty-second of the size.
    var runEventsMax: Int { min(self.bytesMax / 1024, 1 << 20) }

    /// The events collected in memory before they are written, asked for or not.
    var collectedMax: Int { min(self.runEventsMax / 2, 131_072) }

    /// The pages of the write-ahead log after which it is copied into the file.
    var logPagesMax: Int { self.bytesMax / 32 / RunTable.pageBytes }

    /// The events that one piece of a merge moves: 32,768 as a rule, a few milliseconds.
    var pieceEvents: Int { self.runEventsMax / 8 }

    /// The chunks that one piece of work deletes, or the pages it gives back: 256 as a rule.
    var pieceChunks: Int { self.runEventsMax / 1024 }

    /// The runs a merge makes one of.
    static let fanIn = 8

    /// The runs that there are at most, so that a question has a bounded number of places to look at.
    static let runsMax = 256

    /// The events after which a list of pushes looks into no further run: a few milliseconds.
    static let pushesExamined = 65_536

    /// The longest time a merged run may span, so that events do not outlive their age for long.
    var spanMillisecondsMax: Int64 { self.ageMillisecondsMax / 8 }
}

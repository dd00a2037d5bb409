/// Decides when progress is told: at most once a second, and then what is newest; a pure machine.
///
/// Moments are milliseconds of a clock that never goes back.
package struct ProgressPacer: Hashable, Sendable {
    package static let interval: Int64 = 1000

    private var waiting: CommandProgress?
    private var told: CommandProgress?
    private var toldAt: Int64?

    package init() {}

    /// When something is to be told; nil for nothing.
    package var nextMoment: Int64? {
        self.waiting == nil ? nil : self.toldAt.map { $0 + Self.interval } ?? .min
    }

    /// The command has come so far.
    package mutating func reported(_ progress: CommandProgress) {
        self.waiting = progress == self.told ? nil : progress
    }

    /// What is to be told now; nil when nothing is new, or it is too early.
    package mutating func due(now: Int64) -> CommandProgress? {
        guard let moment = self.nextMoment, moment <= now else { return nil }
        self.toldAt = now
        self.told = self.waiting
        self.waiting = nil
        return self.told
    }

    /// What is to be told at once because the command has ended; nil when nothing is new.
    package mutating func ended() -> CommandProgress? {
        defer { self.waiting = nil }
        return self.waiting
    }
}

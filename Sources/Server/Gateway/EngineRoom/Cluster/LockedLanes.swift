import Engine
import Wire

/// A command that has waited too long for the lock of its row.
struct OverdueCommand {
    let command: QueuedCommand
    let row: RequestedRow
    /// The session with the lock, if it is known.
    let holder: LockHolder?
}

/// The lanes of a `CommandQueue` whose rows other sessions of the database have locked, by their places.
///
/// A transaction that looks at these rows passes over the locked ones, so that it waits for none. Each row with
/// commands is looked at in rounds.
struct LockedLanes {
    /// The pause between rounds, in milliseconds.
    private static let pause: Int64 = 100

    private struct Lock {
        /// When it was found, and when a command last waited for it in vain, in milliseconds since the machine started.
        let since: Int64
        var usedAt: Int64
        var holder: LockHolder?
        /// Commands that a transaction had taken, in their order; they come before those in the lane.
        var returned: [QueuedCommand] = []
    }

    private var locks: [Int: Lock] = [:]
    /// Lanes to be looked at in this round. It may name one that has no commands, or is not locked any more.
    private var round = FIFOQueue<Int>()
    /// Lanes to be looked at in the next round.
    private var later: [Int] = []
    private var roundAt: Int64 = 0

    /// No locked lanes.
    init() {}

    var isEmpty: Bool { self.locks.isEmpty }

    /// The lanes in the order of their places.
    var places: [Int] { self.locks.keys.sorted() }

    func contains(_ place: Int) -> Bool { !self.locks.isEmpty && self.locks[place] != nil }

    /// When the next look is due, in milliseconds since the machine started; nil if no lane has commands.
    var nextAt: Int64? {
        guard !self.locks.isEmpty else { return nil }
        return self.round.isEmpty ? (self.later.isEmpty ? nil : self.roundAt) : 0
    }

    func holders(before moment: Int64) -> [LockHolder?: Int] {
        var holders: [LockHolder?: Int] = [:]
        for lock in self.locks.values where lock.since <= moment { holders[lock.holder, default: 0] += 1 }
        return holders
    }

    func lanes(before moment: Int64) -> [(place: Int, holder: LockHolder?)] {
        self.locks.filter { $0.value.since <= moment }.map { (place: $0.key, holder: $0.value.holder) }
            .sorted { $0.place < $1.place }
    }

    func unused(before moment: Int64) -> [Int] {
        self.locks.filter { $0.value.usedAt <= moment && $0.value.returned.isEmpty }.keys.sorted()
    }

    // MARK: Changes

    /// The first command of a lane has come.
    ///
    /// - Returns: false if the lane is not locked.
    mutating func append(_ place: Int) -> Bool {
        guard !self.locks.isEmpty, let lock = self.locks[place] else { return false }
        if lock.returned.isEmpty { self.round.append(place) }
        return true
    }

    /// A lane is locked, or still is.
    mutating func lock(_ place: Int, _ holder: LockHolder?, at now: Int64) {
        if self.locks[place] == nil { self.locks[place] = Lock(since: now, usedAt: now) }
        self.locks[place]?.usedAt = now
        self.locks[place]?.holder = holder
        self.later.append(place)
    }

    /// Takes a command back of a locked lane.
    mutating func putBack(_ command: QueuedCommand) { self.locks[command.place]?.returned.append(command) }

    mutating func used(_ place: Int, at now: Int64) { self.locks[place]?.usedAt = now }

    mutating func takeReturned(_ place: Int) -> [QueuedCommand] {
        let returned = self.locks[place]?.returned ?? []
        self.locks[place]?.returned = []
        return returned
    }

    /// A transaction with the row of a lane has ended.
    mutating func unlock(_ place: Int) {
        if !self.locks.isEmpty { self.locks[place] = nil }
    }

    /// Forgets a lane, and takes what was put back of it.
    mutating func remove(_ place: Int) -> [QueuedCommand] {
        self.locks.removeValue(forKey: place)?.returned ?? []
    }

    // MARK: Rounds

    /// Begins another round if this one is over and the next is due.
    mutating func beginRound(at now: Int64) {
        guard self.round.isEmpty, !self.later.isEmpty, now >= self.roundAt else { return }
        self.roundAt = now + Self.pause
        for place in self.later { self.round.append(place) }
        self.later = []
    }

    /// Takes the next lane of the round.
    mutating func next() -> Int? {
        while let place = self.round.popFirst() {
            if self.locks[place] != nil { return place }
        }
        return nil
    }
}

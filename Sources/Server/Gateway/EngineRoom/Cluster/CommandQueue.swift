import Engine
import Wire

/// What waits for a transaction, by rows: what is about one row is taken in the order in which it came, and by one
/// transaction at a time. Each command costs the same, however many wait for the same row.
struct CommandQueue {
    /// The most pushes that wait; more are refused. Half a second of what one database takes.
    static let pushesMax = 65_536
    /// The most commands of one row that a transaction takes.
    private static let rowCommandsMax = 256
    /// Commands for which a lane keeps memory while nothing waits in it.
    private static let laneKept = 8
    /// The most commands that a transaction takes, but for those of its last row.
    private static let commandsMax = 4096

    /// What is about one row; it has its place until nothing waits and no transaction has anything of it.
    private struct Lane {
        var row: RequestedRow
        var commands = FIFOQueue<QueuedCommand>()
        /// A transaction has commands of the row, and has not ended.
        var isBusy = false
        /// The number of the last command that came.
        var last: UInt64 = 0
    }

    /// What a transaction takes.
    struct Taken {
        /// Each once.
        var rows: [RequestedRow] = []
        /// In the order in which they came.
        var commands: [QueuedCommand] = []
    }

    /// The lanes, of which commands know the places: a row is looked up once for each command, and when it leaves.
    private var lanes: [Lane] = []
    private var places: [RequestedRow: Int] = [:]
    private var freePlaces: [Int] = []
    /// The lanes of which something waits and no transaction has anything, each once.
    private var next = FIFOQueue<Int>()
    /// The lanes whose rows other sessions of the database have locked; these are never in `next`.
    private var locked = LockedLanes()
    private var lastNumber: UInt64 = 0
    private var ends = EndedCommands()
    /// How many commands wait.
    private(set) var count = 0

    /// Whether a row has something that a transaction may take.
    var hasNext: Bool { !self.next.isEmpty }

    /// The number of the last command that came; 0 before the first.
    var last: UInt64 { self.lastNumber }

    /// Whether every command up to this one has ended.
    func hasEnded(upTo number: UInt64) -> Bool { self.ends.firstOpen > number }

    /// Returns true if this command has ended.
    func hasEnded(_ number: UInt64) -> Bool { self.ends.hasEnded(number) }

    /// The last command that came about a row and may not have ended; 0 if there is none, or another session has locked
    /// the row.
    func last(of row: RequestedRow) -> UInt64 {
        guard let place = self.places[row], !self.locked.contains(place) else { return 0 }
        return self.lanes[place].last
    }

    mutating func append(_ work: QueuedCommand.Work, _ row: RequestedRow, leftAt: Int64 = 0) {
        self.lastNumber += 1
        self.count += 1
        self.ends.begun()
        let place = self.place(of: row)
        if self.lanes[place].commands.isEmpty, !self.lanes[place].isBusy, !self.locked.append(place) {
            self.next.append(place)
        }
        self.lanes[place].last = self.lastNumber
        self.lanes[place].commands.append(
            QueuedCommand(number: self.lastNumber, place: place, leftAt: leftAt, work: work)
        )
    }

    private mutating func place(of row: RequestedRow) -> Int {
        let free = self.freePlaces.last ?? self.lanes.count
        // Found or put there in one look-up.
        func read(_ place: inout Int) -> Int { place }
        let place = read(&self.places[row, default: free])
        guard place == free else { return place }
        if place == self.lanes.count {
            self.lanes.append(Lane(row: row))
        } else {
            self.freePlaces.removeLast()
            self.lanes[place].row = row
        }
        return place
    }

    /// Takes the commands of the rows that are next; their rows are busy until `ended` is called with them.
    mutating func take(rowsMax: Int) -> Taken {
        var taken = Taken()
        let count = min(rowsMax, self.count)
        taken.rows.reserveCapacity(count)
        taken.commands.reserveCapacity(count)
        // As a rule each row has one command, and they came in the order of the rows.
        var (last, isInOrder): (UInt64, Bool) = (0, true)
        for _ in 0..<rowsMax {
            guard taken.commands.count < Self.commandsMax, let place = self.next.popFirst() else { break }
            taken.rows.append(self.lanes[place].row)
            for _ in 0..<Self.rowCommandsMax {
                guard let command = self.lanes[place].commands.popFirst() else { break }
                isInOrder = isInOrder && command.number > last
                last = command.number
                taken.commands.append(command)
            }
            self.lanes[place].isBusy = true
        }
        self.count -= taken.commands.count
        if !isInOrder { taken.commands.sort { $0.number < $1.number } }
        return taken
    }

    /// Takes everything that waits for no transaction, in the order in which it came: nothing of it is done.
    mutating func takeAll() -> [QueuedCommand] {
        var taken: [QueuedCommand] = []
        for place in self.locked.places {
            taken += self.locked.remove(place)
            if self.lanes[place].commands.isEmpty, !self.lanes[place].isBusy { self.forget(place) }
        }
        for place in self.lanes.indices where !self.lanes[place].commands.isEmpty {
            while let command = self.lanes[place].commands.popFirst() { taken.append(command) }
            if !self.lanes[place].isBusy { self.forget(place) }
        }
        self.next = FIFOQueue()
        self.count = 0
        taken.sort { $0.number < $1.number }
        for command in taken { self.ends.ended(command.number) }
        return taken
    }

    /// A transaction has ended that took these: what waits for their rows is next.
    mutating func ended(_ commands: [QueuedCommand]) {
        // Their numbers and places alone: a copy of each would touch what it holds.
        for index in commands.indices {
            self.ends.ended(commands[index].number)
            let place = commands[index].place
            // Of several commands of a row the first one frees it.
            guard self.lanes[place].isBusy else { continue }
            self.lanes[place].isBusy = false
            self.locked.unlock(place)
            if self.lanes[place].commands.isEmpty {
                self.forget(place)
            } else {
                self.next.append(place)
            }
        }
    }

    /// Nothing is about the row of a lane any more.
    private mutating func forget(_ place: Int) {
        // Else each lane would keep as much as most ever waited in it.
        self.lanes[place].commands.shrink(keeping: Self.laneKept)
        self.places[self.lanes[place].row] = nil
        self.freePlaces.append(place)
    }

    /// The row of a command that has not ended.
    func row(of command: QueuedCommand) -> RequestedRow { self.lanes[command.place].row }
}

// MARK: - Locked rows

extension CommandQueue {
    /// True if rows are locked by other sessions of the database, as far as is known.
    var hasLocked: Bool { !self.locked.isEmpty }

    /// The time of the next look at locked rows with commands, in milliseconds since the machine started.
    var lockedAt: Int64? { self.locked.nextAt }

    /// The sessions whose locks devices have waited for long enough to be reported, and the number of these devices.
    func lockHolders(at now: Int64) -> [LockHolder?: Int] { self.locked.holders(before: now - DeviceLocks.delay) }

    /// Takes commands back that a transaction had taken, as another session has locked their rows. Nothing else about
    /// these rows is taken but by `takeLocked`, until a transaction with them has ended.
    ///
    /// - Parameters:
    ///   - commands: every command that the transaction had of these rows, in their order.
    ///   - holder: the session with the lock of a row.
    ///   - now: in milliseconds since the machine started.
    mutating func putBack(_ commands: [QueuedCommand], at now: Int64, _ holder: (RequestedRow) -> LockHolder?) {
        for command in commands {
            if self.lanes[command.place].isBusy {
                self.lanes[command.place].isBusy = false
                self.locked.lock(command.place, holder(self.lanes[command.place].row), at: now)
            }
            self.locked.putBack(command)
        }
        self.count += commands.count
    }

    /// Takes commands of the locked rows that are due for a look, in the same way as `take`.
    mutating func takeLocked(rowsMax: Int, at now: Int64) -> Taken {
        var taken = Taken()
        self.locked.beginRound(at: now)
        while taken.rows.count < rowsMax, taken.commands.count < Self.commandsMax, let place = self.locked.next() {
            guard !self.lanes[place].isBusy else { continue }
            var commands = self.locked.takeReturned(place)
            while commands.count < Self.rowCommandsMax, let command = self.lanes[place].commands.popFirst() {
                commands.append(command)
            }
            guard !commands.isEmpty else { continue }
            taken.rows.append(self.lanes[place].row)
            taken.commands += commands
            self.lanes[place].isBusy = true
        }
        self.count -= taken.commands.count
        taken.commands.sort { $0.number < $1.number }
        return taken
    }

    /// Takes the commands of rows that were locked before `moment`: they have waited long enough, and have ended. Rows
    /// whose commands are all newer than the last look are left out, as these may be free by now.
    ///
    /// - Parameter now: in milliseconds since the machine started.
    mutating func takeOverdue(before moment: Int64, at now: Int64) -> [OverdueCommand] {
        var taken: [OverdueCommand] = []
        for place in self.locked.lanes(before: moment) where !self.lanes[place].isBusy {
            var commands = self.locked.takeReturned(place)
            guard !commands.isEmpty else { continue }
            while let command = self.lanes[place].commands.popFirst() { commands.append(command) }
            self.locked.used(place, at: now)
            let (row, holder) = (self.lanes[place].row, self.locked.holder(place))
            taken += commands.map { OverdueCommand(command: $0, row: row, holder: holder) }
        }
        self.count -= taken.count
        for overdue in taken { self.ends.ended(overdue.command.number) }
        return taken
    }

    /// Forgets locks of rows that nothing was asked about for a while.
    mutating func forgetUnusedLocks(before moment: Int64) {
        for place in self.locked.unused(before: moment)
        where self.lanes[place].commands.isEmpty && !self.lanes[place].isBusy {
            _ = self.locked.remove(place)
            self.forget(place)
        }
    }
}

/// Which commands have ended, of those from the first that has not.
private struct EndedCommands {
    /// How many flags of ended commands are kept at least before they are dropped.
    private static let keptMax = 1024

    /// The first command that has not ended.
    private(set) var firstOpen: UInt64 = 1
    /// Whether each command from `firstKept` on has ended.
    private var flags: [Bool] = []
    private var firstKept: UInt64 = 1

    /// Returns true if this command has ended.
    func hasEnded(_ number: UInt64) -> Bool {
        number < self.firstOpen || (number >= self.firstKept && self.flags[Int(number - self.firstKept)])
    }

    /// The command of the next number waits.
    mutating func begun() { self.flags.append(false) }

    mutating func ended(_ number: UInt64) {
        self.flags[Int(number - self.firstKept)] = true
        var dropped = Int(self.firstOpen - self.firstKept)
        while dropped < self.flags.count, self.flags[dropped] { dropped += 1 }
        self.firstOpen = self.firstKept + UInt64(dropped)
        guard dropped >= Self.keptMax, dropped * 2 >= self.flags.count else { return }
        self.flags.removeFirst(dropped)
        self.firstKept = self.firstOpen
    }
}

/// A command that has waited too long for the lock of its row.
struct OverdueCommand {
    let command: QueuedCommand
    let row: RequestedRow
    /// The session with the lock, if it is known.
    let holder: LockHolder?

    /// Whether an operator of every topic asked, who may know the sessions of the database.
    var isOfOperator: Bool {
        guard case .request(let request) = self.command.work else { return false }
        return request.caller.role == .operator && request.caller.topics == .all
    }
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

    /// The session with the lock of a lane, if it is known.
    func holder(_ place: Int) -> LockHolder? { self.locks[place]?.holder }

    func lanes(before moment: Int64) -> [Int] {
        self.locks.filter { $0.value.since <= moment }.keys.sorted()
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

import Engine
import Wire

/// The commands that have not begun, in one lane per row. The commands of one row are processed in order of arrival,
/// and by one transaction at a time. The cost of a command does not depend on the number of commands in its lane.
struct CommandQueue {
    /// The maximum number of pending pushes; more are refused. A database processes this many in half a second.
    static let pushesMax = 65_536
    /// The maximum number of commands per row in a transaction.
    private static let rowCommandsMax = 256
    /// The number of commands for which an unused lane keeps memory.
    private static let laneKept = 8
    /// The number of commands at which a transaction gets no further row.
    private static let commandsMax = 4096

    /// The commands of one row. A lane is in use while it has commands or a transaction has commands of its row.
    private struct Lane {
        var row: RequestedRow
        var commands = FIFOQueue<QueuedCommand>()
        /// True while a transaction has commands of the row.
        var isBusy = false
        /// The number of the last command appended.
        var last: UInt64 = 0
    }

    /// The rows and commands of a transaction.
    struct Taken {
        /// The rows, each once.
        var rows: [RequestedRow] = []
        /// The commands in order of arrival.
        var commands: [QueuedCommand] = []
    }

    /// The lanes. Each command has the index of its lane. A row is therefore looked up only when a command arrives and
    /// when the lane is removed.
    private var lanes: [Lane] = []
    private var places: [RequestedRow: Int] = [:]
    private var freePlaces: [Int] = []
    /// The lanes with pending commands and no transaction, each once.
    private var next = FIFOQueue<Int>()
    /// The lanes whose rows other sessions of the database have locked; these are never in `next`.
    private(set) var locked = LockedLanes()
    /// The number of the last command that arrived; 0 if there was none.
    private(set) var last: UInt64 = 0
    private var ends = EndedCommands()
    /// The number of pending commands.
    private(set) var count = 0

    /// True if `take` would return commands.
    var hasNext: Bool { !self.next.isEmpty }

    /// Returns true if every command up to this number has ended.
    func hasEnded(upTo number: UInt64) -> Bool { self.ends.firstOpen > number }

    /// Returns true if this command has ended.
    func hasEnded(_ number: UInt64) -> Bool { self.ends.hasEnded(number) }

    /// Returns the number of the last command of a row that may not have ended. Returns 0 if there is none, or if
    /// another session has locked the row.
    func last(of row: RequestedRow) -> UInt64 {
        guard let place = self.places[row], !self.locked.contains(place) else { return 0 }
        return self.lanes[place].last
    }

    mutating func append(_ work: QueuedCommand.Work, _ row: RequestedRow, leftAt: Int64 = 0) {
        self.last += 1
        self.count += 1
        self.ends.begun()
        let place = self.place(of: row)
        if self.lanes[place].commands.isEmpty, !self.lanes[place].isBusy, !self.locked.append(place) {
            self.next.append(place)
        }
        self.lanes[place].last = self.last
        self.lanes[place].commands.append(
            QueuedCommand(number: self.last, place: place, leftAt: leftAt, work: work)
        )
    }

    private mutating func place(of row: RequestedRow) -> Int {
        let free = self.freePlaces.last ?? self.lanes.count
        // Find or insert the row with a single lookup.
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

    /// Removes and returns the commands of the next rows. These rows are busy until `ended` is called with the
    /// commands.
    mutating func take(rowsMax: Int) -> Taken {
        var taken = Taken()
        let count = min(rowsMax, self.count)
        taken.rows.reserveCapacity(count)
        taken.commands.reserveCapacity(count)
        // Usually each row has one command, and the order of rows is the order of arrival.
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

    /// Removes and returns every pending command in order of arrival. The commands will not be performed.
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

    /// Ends the commands of a transaction. Later commands of their rows can then be taken.
    mutating func ended(_ commands: [QueuedCommand]) {
        // Read only numbers and indices. Copying a command would change reference counts.
        for index in commands.indices {
            self.ends.ended(commands[index].number)
            let place = commands[index].place
            // The first command of each row frees the row.
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

    /// Removes a lane without commands.
    private mutating func forget(_ place: Int) {
        // Otherwise each lane would keep memory for the longest queue that it ever had.
        self.lanes[place].commands.shrink(keeping: Self.laneKept)
        self.places[self.lanes[place].row] = nil
        self.freePlaces.append(place)
    }

    /// Returns the row of a command that has not ended.
    func row(of command: QueuedCommand) -> RequestedRow { self.lanes[command.place].row }
}

// MARK: - Locked rows

extension CommandQueue {
    /// Returns commands to the queue because another session has locked their rows. After that, only `takeLocked`
    /// returns commands of these rows, until a transaction with the row has ended.
    ///
    /// - Parameters:
    ///   - commands: every command of these rows in the transaction, in order.
    ///   - now: milliseconds since the start of the machine.
    ///   - holder: returns the session that holds the lock of a row.
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

    /// Removes and returns commands of locked rows that can be tried again. Otherwise works like `take`.
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

    /// Removes and returns the commands that must end because their rows have been locked since before `moment`. Rows
    /// whose commands all arrived after the last attempt are left out, because they may no longer be locked.
    ///
    /// - `now`: milliseconds since the start of the machine.
    mutating func takeOverdue(before moment: Int64, at now: Int64) -> [OverdueCommand] {
        var taken: [OverdueCommand] = []
        for place in self.locked.lanes(before: moment) where !self.lanes[place].isBusy {
            var commands = self.locked.takeReturned(place)
            guard !commands.isEmpty else { continue }
            while let command = self.lanes[place].commands.popFirst() { commands.append(command) }
            self.locked.used(place, at: now)
            let holder = self.locked.holder(place)
            taken += commands.map { OverdueCommand(command: $0, holder: holder) }
        }
        self.count -= taken.count
        for overdue in taken { self.ends.ended(overdue.command.number) }
        return taken
    }

    /// Removes the lanes of locked rows that have had no command since `moment`.
    mutating func forgetUnusedLocks(before moment: Int64) {
        for place in self.locked.unused(before: moment)
        where self.lanes[place].commands.isEmpty && !self.lanes[place].isBusy {
            _ = self.locked.remove(place)
            self.forget(place)
        }
    }
}

/// A record of the commands that have ended.
private struct EndedCommands {
    /// The minimum number of flags of ended commands to drop at once.
    private static let keptMax = 1024

    /// The number of the first command that has not ended.
    private(set) var firstOpen: UInt64 = 1
    /// The flags of all commands from `firstKept`. A flag is true if the command has ended.
    private var flags: [Bool] = []
    private var firstKept: UInt64 = 1

    /// Returns true if this command has ended.
    func hasEnded(_ number: UInt64) -> Bool {
        number < self.firstOpen || (number >= self.firstKept && self.flags[Int(number - self.firstKept)])
    }

    /// Records the arrival of the command with the next number.
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
    /// The session that holds the lock; nil if it is unknown.
    let holder: LockHolder?

    /// True if the caller is an operator of all topics. Only such an operator may see the sessions of the database.
    var isOfOperator: Bool {
        guard case .request(let request) = self.command.work else { return false }
        return request.caller.role == .operator && request.caller.topics == .all
    }
}

/// The lanes of a `CommandQueue` whose rows other sessions of the database have locked, by lane index.
///
/// Locked rows with commands are tried in rounds. A transaction that tries them skips rows that are still locked, and
/// never waits.
struct LockedLanes {
    /// The minimum time between the starts of two rounds, in milliseconds.
    private static let pause: Int64 = 100

    private struct Lock {
        /// The time of the first failed attempt, and the last time at which a command needed the row. Both are in
        /// milliseconds since the start of the machine.
        let since: Int64
        var usedAt: Int64
        var holder: LockHolder?
        /// The commands that a transaction returned, in order. They precede the commands in the lane.
        var returned: [QueuedCommand] = []
    }

    private var locks: [Int: Lock] = [:]
    /// The lanes to try in this round. Some may no longer have commands or a lock.
    private var round = FIFOQueue<Int>()
    /// The lanes to try in the next round.
    private var later: [Int] = []
    private var roundAt: Int64 = 0

    var isEmpty: Bool { self.locks.isEmpty }

    /// The locked lanes in ascending order.
    var places: [Int] { self.locks.keys.sorted() }

    func contains(_ place: Int) -> Bool { !self.locks.isEmpty && self.locks[place] != nil }

    /// The time of the next attempt, in milliseconds since the start of the machine; 0 for immediately. Nil if no lane
    /// has commands.
    var nextAt: Int64? {
        guard !self.locks.isEmpty else { return nil }
        return self.round.isEmpty ? (self.later.isEmpty ? nil : self.roundAt) : 0
    }

    /// Returns the sessions that have held locks since before `moment`, each with its number of locked devices.
    func holders(before moment: Int64) -> [LockHolder?: Int] {
        var holders: [LockHolder?: Int] = [:]
        for lock in self.locks.values where lock.since <= moment { holders[lock.holder, default: 0] += 1 }
        return holders
    }

    /// Returns the session that holds the lock of a lane; nil if it is unknown.
    func holder(_ place: Int) -> LockHolder? { self.locks[place]?.holder }

    func lanes(before moment: Int64) -> [Int] {
        self.locks.filter { $0.value.since <= moment }.keys.sorted()
    }

    func unused(before moment: Int64) -> [Int] {
        self.locks.filter { $0.value.usedAt <= moment && $0.value.returned.isEmpty }.keys.sorted()
    }

    // MARK: Changes

    /// Records that a lane has a new command.
    ///
    /// - Returns: false if the lane is not locked.
    mutating func append(_ place: Int) -> Bool {
        guard !self.locks.isEmpty, let lock = self.locks[place] else { return false }
        if lock.returned.isEmpty { self.round.append(place) }
        return true
    }

    /// Records that the row of a lane is locked.
    mutating func lock(_ place: Int, _ holder: LockHolder?, at now: Int64) {
        if self.locks[place] == nil { self.locks[place] = Lock(since: now, usedAt: now) }
        self.locks[place]?.usedAt = now
        self.locks[place]?.holder = holder
        self.later.append(place)
    }

    /// Returns a command to its lane.
    mutating func putBack(_ command: QueuedCommand) { self.locks[command.place]?.returned.append(command) }

    mutating func used(_ place: Int, at now: Int64) { self.locks[place]?.usedAt = now }

    mutating func takeReturned(_ place: Int) -> [QueuedCommand] {
        let returned = self.locks[place]?.returned ?? []
        self.locks[place]?.returned = []
        return returned
    }

    /// Removes the lock of a lane, because a transaction with its row has ended.
    mutating func unlock(_ place: Int) {
        if !self.locks.isEmpty { self.locks[place] = nil }
    }

    /// Removes a lane, and returns the commands that transactions returned to it.
    mutating func remove(_ place: Int) -> [QueuedCommand] {
        self.locks.removeValue(forKey: place)?.returned ?? []
    }

    // MARK: Rounds

    /// Begins a round if the previous round is finished and the next is due.
    mutating func beginRound(at now: Int64) {
        guard self.round.isEmpty, !self.later.isEmpty, now >= self.roundAt else { return }
        self.roundAt = now + Self.pause
        for place in self.later { self.round.append(place) }
        self.later = []
    }

    /// Removes and returns the next lane of the round.
    mutating func next() -> Int? {
        while let place = self.round.popFirst() {
            if self.locks[place] != nil { return place }
        }
        return nil
    }
}

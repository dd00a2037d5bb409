import Bytes
import DeviceEngine

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
    private var lastNumber: UInt64 = 0
    private var ends = EndedCommands()
    /// How many commands wait.
    private(set) var count = 0

    /// Nothing waits.
    init() {}

    /// Whether a row has something that a transaction may take.
    var hasNext: Bool { !self.next.isEmpty }

    /// The number of the last command that came; 0 before the first.
    var last: UInt64 { self.lastNumber }

    /// Whether every command up to this one has ended.
    func hasEnded(upTo number: UInt64) -> Bool { self.ends.firstOpen > number }

    mutating func append(_ work: QueuedCommand.Work, _ row: RequestedRow, leftAt: Int64 = 0) {
        self.lastNumber += 1
        self.count += 1
        self.ends.begun()
        let place = self.place(of: row)
        if self.lanes[place].commands.isEmpty, !self.lanes[place].isBusy { self.next.append(place) }
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

/// Which commands have ended, of those from the first that has not.
private struct EndedCommands {
    /// How many flags of ended commands are kept at least before they are dropped.
    private static let keptMax = 1024

    /// The first command that has not ended.
    private(set) var firstOpen: UInt64 = 1
    /// Whether each command from `firstKept` on has ended.
    private var flags: [Bool] = []
    private var firstKept: UInt64 = 1

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

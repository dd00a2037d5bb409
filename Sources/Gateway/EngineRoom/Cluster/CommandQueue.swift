import Bytes
import DeviceEngine

/// What waits for a transaction, by rows: what is about one row is taken in the order in which it came, and by one
/// transaction at a time. Each command costs the same, however many wait for the same row.
struct CommandQueue {
    /// The most pushes that wait; more are refused. Half a second of what one database takes.
    static let pushesMax = 65_536
    /// The most commands of one row that a transaction takes.
    private static let rowCommandsMax = 256
    /// The most commands that a transaction takes, but for those of its last row.
    private static let commandsMax = 4096

    private struct Lane {
        var commands = FIFOQueue<QueuedCommand>()
        /// A transaction has commands of the row, and has not ended.
        var isBusy = false
    }

    private var lanes: [RequestedRow: Lane] = [:]
    /// The rows of which something waits and no transaction has anything, each once.
    private var next = FIFOQueue<RequestedRow>()
    private var lastNumber: UInt64 = 0
    /// The first command that has not ended.
    private var firstOpen: UInt64 = 1
    /// Commands behind it that have ended.
    private var ended: Set<UInt64> = []
    /// How many commands wait.
    private(set) var count = 0

    /// Nothing waits.
    init() {}

    /// Whether a row has something that a transaction may take.
    var hasNext: Bool { !self.next.isEmpty }

    /// The number of the last command that came; 0 before the first.
    var last: UInt64 { self.lastNumber }

    /// Whether every command up to this one has ended.
    func hasEnded(upTo number: UInt64) -> Bool { self.firstOpen > number }

    mutating func append(_ work: QueuedCommand.Work, _ row: RequestedRow, leftAt: Int64 = 0) {
        self.lastNumber += 1
        self.count += 1
        let command = QueuedCommand(number: self.lastNumber, leftAt: leftAt, row: row, work: work)
        var lane = self.lanes.removeValue(forKey: row) ?? Lane()
        if lane.commands.isEmpty, !lane.isBusy { self.next.append(row) }
        lane.commands.append(command)
        self.lanes[row] = lane
    }

    /// Takes the commands of the rows that are next, in the order in which they came; their rows are busy until
    /// `ended` is called with them.
    mutating func take(rowsMax: Int) -> [QueuedCommand] {
        var taken: [QueuedCommand] = []
        for _ in 0..<rowsMax {
            guard taken.count < Self.commandsMax, let row = self.next.popFirst() else { break }
            guard var lane = self.lanes.removeValue(forKey: row) else { continue }
            for _ in 0..<Self.rowCommandsMax {
                guard let command = lane.commands.popFirst() else { break }
                taken.append(command)
            }
            lane.isBusy = true
            self.lanes[row] = lane
        }
        self.count -= taken.count
        taken.sort { $0.number < $1.number }
        return taken
    }

    /// Takes everything that waits for no transaction, in the order in which it came: nothing of it is done.
    mutating func takeAll() -> [QueuedCommand] {
        var taken: [QueuedCommand] = []
        for row in Array(self.lanes.keys) {
            guard var lane = self.lanes.removeValue(forKey: row) else { continue }
            while let command = lane.commands.popFirst() { taken.append(command) }
            if lane.isBusy { self.lanes[row] = lane }
        }
        self.next = FIFOQueue()
        self.count = 0
        taken.sort { $0.number < $1.number }
        for command in taken { self.noteEnd(command.number) }
        return taken
    }

    /// A transaction has ended that took these: what waits for their rows is next.
    mutating func ended(_ commands: [QueuedCommand]) {
        for command in commands {
            self.noteEnd(command.number)
            // Of several commands of a row the first one frees it.
            guard var lane = self.lanes[command.row], lane.isBusy else { continue }
            guard !lane.commands.isEmpty else {
                self.lanes[command.row] = nil
                continue
            }
            self.lanes[command.row] = nil
            lane.isBusy = false
            self.lanes[command.row] = lane
            self.next.append(command.row)
        }
    }

    private mutating func noteEnd(_ number: UInt64) {
        self.ended.insert(number)
        while self.ended.remove(self.firstOpen) != nil { self.firstOpen += 1 }
    }
}

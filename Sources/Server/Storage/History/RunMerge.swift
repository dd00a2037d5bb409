import Engine

/// Makes one run of several neighbours, a piece at a time.
final class RunMerge {
    /// A run that is read from its beginning.
    private struct Input {
        let run: HistoryRun
        /// The events of the chunk that is being read.
        var events: [HistoryEvent] = []
        var place = 0
        var nextChunk = 0

        var device: UInt64? { self.place < self.events.count ? self.events[self.place].device : nil }

        mutating func fill(_ table: RunTable) throws(SQLiteError) {
            while self.place == self.events.count, self.nextChunk < self.run.eventChunks.count {
                self.events.removeAll(keepingCapacity: true)
                self.place = 0
                try table.readEvents(self.run.eventChunks[self.nextChunk].row, device: nil, into: &self.events)
                self.nextChunk += 1
            }
        }
    }

    private let table: RunTable
    private var inputs: [Input]
    private let writer: RunWriter
    private let pieceEvents: Int

    /// - Parameter runs: from the oldest to the newest.
    init(_ runs: ArraySlice<HistoryRun>, _ table: RunTable, pieceEvents: Int) {
        self.pieceEvents = pieceEvents
        self.table = table
        self.inputs = runs.map { Input(run: $0) }
        let events = runs.reduce(0) { $0 + $1.events }
        self.writer = RunWriter(table, order: runs.first?.order ?? 0, eventsMax: events)
    }

    var inputIDs: [Int64] { self.inputs.map(\.run.id) }

    /// What is committed so far; nil before anything is.
    private(set) var output: HistoryRun?

    /// Moves one piece, in one transaction. After an error the merge is of no use any more.
    ///
    /// - Returns: the whole run when it is there; the inputs are then dead.
    func step(_ sorter: inout HalfWordSorter) throws(SQLiteError) -> HistoryRun? {
        let finished = try self.table.transaction { () throws(SQLiteError) -> HistoryRun? in
            guard try self.movePiece() else {
                try self.writer.saveUnfinished()
                return nil
            }
            let run = try self.writer.finish(&sorter)
            for index in self.inputs.indices {
                var input = self.inputs[index].run
                try self.table.save(&input, .dead)
            }
            return run
        }
        self.output = self.writer.run
        return finished
    }

    /// - Returns: whether all is moved.
    private func movePiece() throws(SQLiteError) -> Bool {
        for index in self.inputs.indices { try self.inputs[index].fill(self.table) }
        var moved = 0
        while moved < self.pieceEvents {
            // Of equal devices the oldest run comes first.
            var least: (device: UInt64, input: Int)?
            for index in self.inputs.indices {
                guard let device = self.inputs[index].device else { continue }
                if let found = least, found.device <= device { continue }
                least = (device, index)
            }
            guard let (device, input) = least else { return true }
            while self.inputs[input].device == device {
                try self.writer.append(self.inputs[input].events[self.inputs[input].place])
                self.inputs[input].place += 1
                moved += 1
                if self.inputs[input].place == self.inputs[input].events.count {
                    try self.inputs[input].fill(self.table)
                }
            }
        }
        return false
    }
}

extension RunTable {
    /// Appends the events of a chunk, of one device or of all.
    func readEvents(_ row: Int64, device: UInt64?, into events: inout [HistoryEvent]) throws(SQLiteError) {
        let isWhole = try self.readChunk(row) { chunk throws(SQLiteError) in
            guard var reader = EventChunkReader(chunk) else { return false }
            return reader.read(device, into: &events)
        }
        guard isWhole else { throw Self.damage("a chunk of events is damaged") }
    }
}

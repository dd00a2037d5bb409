import Engine
import Policy

/// Merges several consecutive runs into one, a part at a time.
final class RunMerge {
    /// A run that is being read.
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

    /// - `runs`: the runs to merge, the oldest first.
    init(_ runs: ArraySlice<HistoryRun>, _ table: RunTable, pieceEvents: Int) {
        self.pieceEvents = pieceEvents
        self.table = table
        self.inputs = runs.map { Input(run: $0) }
        let events = runs.reduce(0) { $0 + $1.events }
        self.writer = RunWriter(table, order: runs.first?.order ?? 0, eventsMax: events)
    }

    var inputIDs: [Int64] { self.inputs.map(\.run.id) }

    /// The output committed so far; nil before the first piece.
    private(set) var output: HistoryRun?

    /// Moves the next part of the events in one transaction. The merge is unusable after an error.
    ///
    /// - Returns: the complete run after the last part; nil before. The chunks of the inputs must then be deleted.
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

    /// - Returns: true if all events are moved.
    private func movePiece() throws(SQLiteError) -> Bool {
        for index in self.inputs.indices { try self.inputs[index].fill(self.table) }
        var moved = 0
        while moved < self.pieceEvents {
            // For the same device, the events of the oldest run come first.
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
    /// Appends the events of a chunk: those of `device`, or all if `device` is nil.
    func readEvents(_ row: Int64, device: UInt64?, into events: inout [HistoryEvent]) throws(SQLiteError) {
        let isWhole = try self.readChunk(row) { chunk throws(SQLiteError) in
            guard var reader = EventChunkReader(chunk) else { return false }
            return reader.read(device, into: &events)
        }
        guard isWhole else { throw Self.damage("a chunk of events is damaged") }
    }
}

/// Selects the runs to merge next.
///
/// The level of a run depends on its number of events. Eight consecutive runs that do not exceed a level become one
/// run. Runs of the highest level are not merged. A busy gateway writes runs of this size, so it writes each event only
/// once.
enum MergePlan {
    private static let levels = 4

    /// Returns the level of a run; 0 for the smallest runs.
    static func level(events: Int, _ limits: HistoryLimits) -> Int {
        var bound = limits.runEventsMax / HistoryLimits.fanIn
        var level = self.levels - 1
        while level > 0, events < bound {
            level -= 1
            bound /= HistoryLimits.fanIn
        }
        return level
    }

    /// - `runs`: all runs, the oldest first.
    /// - Returns: the range of runs to merge; nil if no merge is needed.
    static func next(_ runs: [HistoryRun], _ limits: HistoryLimits) -> Range<Int>? {
        guard runs.count >= HistoryLimits.fanIn else { return nil }
        let levels = runs.map { self.level(events: $0.events, limits) }
        for level in 0..<self.levels - 1 {
            var start = 0
            for end in 1...runs.count {
                if levels[end - 1] > level { start = end }
                while start < end, !self.fits(runs[start..<end], limits) { start += 1 }
                if end - start == HistoryLimits.fanIn { return start..<end }
            }
        }
        return runs.count > HistoryLimits.runsMax ? self.cheapest(runs) : nil
    }

    private static func fits(_ window: ArraySlice<HistoryRun>, _ limits: HistoryLimits) -> Bool {
        let oldest = window.lazy.map(\.oldest.milliseconds).min() ?? 0
        let newest = window.lazy.map(\.newest.milliseconds).max() ?? 0
        let (span, overflow) = newest.subtractingReportingOverflow(oldest)
        return !overflow && span <= limits.spanMillisecondsMax
            && window.reduce(0) { $0 + $1.events } <= limits.runEventsMax
    }

    /// Returns the range of eight consecutive runs with the fewest events. Used if there are too many runs in total.
    private static func cheapest(_ runs: [HistoryRun]) -> Range<Int> {
        var best = 0..<HistoryLimits.fanIn
        var bestEvents = Int.max
        for start in 0...(runs.count - HistoryLimits.fanIn) {
            let window = start..<start + HistoryLimits.fanIn
            let events = runs[window].reduce(0) { $0 + $1.events }
            if events < bestEvents { (best, bestEvents) = (window, events) }
        }
        return best
    }
}

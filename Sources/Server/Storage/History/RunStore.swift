import Engine
import Policy
import Wire

/// The runs of one file: written, merged, dropped, and asked.
final class RunStore {
    let table: RunTable
    var limits: HistoryLimits
    private let isInMemory: Bool
    /// From the oldest to the newest.
    private(set) var runs: [HistoryRun] = []
    /// Runs whose chunks are to be deleted.
    private var dead: [HistoryRun] = []
    /// The chunks of the first dead run that are deleted already.
    private var deletedChunks = 0
    private var merge: RunMerge?
    /// The records of events that are in the file.
    private(set) var written: RecordPositions
    /// Whether pages became free since it was last seen to that there are not too many.
    private var mayShrink = true
    /// How often runs were dropped, for each of the two bounds.
    var dropped = (bySize: 0, byAge: 0)
    private var sorter = HalfWordSorter()
    private var eventOrder = EventOrder()

    init(path: String?, key: HashKey, limits: HistoryLimits, vfs: String?) throws(RunTable.OpeningFault) {
        self.table = try RunTable(path: path, key: key, vfs: vfs)
        self.limits = limits
        self.isInMemory = path == nil
        do {
            self.written = try self.table.positions()
            for (run, state) in try self.table.runs() {
                switch state {
                case .live: self.runs.append(run)
                case .unfinished, .dead: self.dead.append(run)
                }
            }
        } catch {
            throw RunTable.isDamage(error) ? .unusable(error.message) : .failed(error)
        }
        self.runs.sort { $0.order < $1.order }
    }

    /// When the newest event in the file happened; nil when there is none.
    var newest: Instant? { self.runs.map(\.newest).max() }

    /// The bytes of all chunks that are in the file.
    private var heldBytes: Int {
        (self.runs + self.dead).reduce(self.merge?.output?.bytes ?? 0) { $0 + $1.bytes }
    }

    /// Writes events as a run of their own, and that the records they came in are there, in one transaction.
    func add(_ events: [HistoryEvent], ofRecords records: [UInt64]) throws(SQLiteError) {
        var written = self.written
        for record in records { written.take(record) }
        guard !events.isEmpty else {
            guard written != self.written else { return }
            try self.table.transaction { () throws(SQLiteError) in try self.table.save(written, after: self.written) }
            self.written = written
            return
        }
        let writer = RunWriter(self.table, order: (self.runs.last?.order ?? 0) + 1, eventsMax: events.count)
        let run = try self.table.transaction { () throws(SQLiteError) -> HistoryRun in
            try self.eventOrder.forEach(events, &self.sorter) { index throws(SQLiteError) in
                try writer.append(events[index])
            }
            if written != self.written { try self.table.save(written, after: self.written) }
            return try writer.finish(&self.sorter)
        }
        self.written = written
        self.runs.append(run)
    }

    /// Does one bounded piece of what keeps the file in order: deleting, dropping, copying the log, merging.
    ///
    /// - Returns: whether there was something to do.
    func tidy(now: Instant) throws(SQLiteError) -> Bool {
        if !self.dead.isEmpty {
            try self.deletePiece()
            return true
        }
        if try self.dropOldest(now: now) { return true }
        if !self.isInMemory, self.table.logPages >= self.limits.logPagesMax {
            try self.table.copyLog()
            return true
        }
        if try self.mergePiece() { return true }
        return try self.shrink()
    }

    /// Whether so much is in the file that nothing may be added before some of it is gone.
    var isFull: Bool {
        self.heldBytes > self.limits.keptBytesMax + self.limits.bytesMax / 16
            || self.table.logPages >= self.limits.logPagesMax * 2
    }

    // MARK: Pieces

    private func deletePiece() throws(SQLiteError) {
        let run = self.dead[0]
        let rows = run.rows[self.deletedChunks...].prefix(self.limits.pieceChunks)
        let isLast = self.deletedChunks + rows.count == run.rows.count
        try self.table.transaction { () throws(SQLiteError) in
            for row in rows { try self.table.removeChunk(row) }
            if isLast { try self.table.removeRun(run.id) }
        }
        self.deletedChunks += rows.count
        self.mayShrink = true
        if isLast {
            self.dead.removeFirst()
            self.deletedChunks = 0
        }
    }

    private func dropOldest(now: Instant) throws(SQLiteError) -> Bool {
        guard let oldest = self.runs.first else { return false }
        let isOld = oldest.newest + self.limits.ageMillisecondsMax < now
        guard isOld || self.heldBytes > self.limits.keptBytesMax else { return false }
        if let merge = self.merge, merge.inputIDs.contains(oldest.id) { self.cancel(merge) }
        try self.table.transaction { () throws(SQLiteError) in
            var run = oldest
            try self.table.save(&run, .dead)
        }
        self.runs.removeFirst()
        self.dead.append(oldest)
        if isOld { self.dropped.byAge += 1 } else { self.dropped.bySize += 1 }
        return true
    }

    private func mergePiece() throws(SQLiteError) -> Bool {
        if self.merge == nil {
            let sizes = self.runs.map {
                MergePlan.Run(
                    events: $0.events,
                    oldestMilliseconds: $0.oldest.milliseconds,
                    newestMilliseconds: $0.newest.milliseconds
                )
            }
            guard let window = MergePlan.next(sizes, self.limits) else { return false }
            self.merge = RunMerge(self.runs[window], self.table, pieceEvents: self.limits.pieceEvents)
        }
        guard let merge = self.merge else { return false }
        let finished: HistoryRun?
        do {
            finished = try merge.step(&self.sorter)
        } catch {
            self.cancel(merge)
            throw error
        }
        guard let finished else { return true }
        self.merge = nil
        let inputs = merge.inputIDs
        guard let first = self.runs.firstIndex(where: { $0.id == inputs[0] }) else { return true }
        self.dead += self.runs[first..<first + inputs.count]
        self.runs.replaceSubrange(first..<first + inputs.count, with: CollectionOfOne(finished))
        return true
    }

    /// Gives up a merge: what it wrote is deleted, its inputs stay.
    private func cancel(_ merge: RunMerge) {
        self.merge = nil
        if let output = merge.output { self.dead.append(output) }
    }

    /// Gives pages back to the file system when most of the file is free.
    private func shrink() throws(SQLiteError) -> Bool {
        guard self.mayShrink, !self.isInMemory else { return false }
        let pages = try self.table.pages()
        // Free pages are soon used again; only a file that stays far larger than what is in it is worth the work.
        let isTooLarge = pages.all * RunTable.pageBytes > self.limits.bytesMax
        guard pages.free > 0 && isTooLarge || pages.free > max(self.limits.pieceChunks, pages.all / 2) else {
            self.mayShrink = false
            return false
        }
        try self.table.giveBack(self.limits.pieceChunks)
        return true
    }
}

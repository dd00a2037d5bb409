package import Engine
import Policy
package import Wire

/// The runs of one history file. It writes, merges, drops and queries them.
final class RunStore {
    let table: RunTable
    var limits: HistoryLimits
    private let isInMemory: Bool
    /// The live runs, the oldest first.
    private(set) var runs: [HistoryRun] = []
    /// Runs whose chunks must be deleted.
    private var dead: [HistoryRun] = []
    /// The number of chunks of the first dead run that are already deleted.
    private var deletedChunks = 0
    private var merge: RunMerge?
    /// The positions of the event records that are in the file.
    private(set) var written: RecordPositions
    /// The spans of void events. The next call of `add` stores them.
    var voids: [VoidSpan]
    private var storedVoids: [VoidSpan]
    /// True if pages may have become free since `shrink` last examined them.
    private var mayShrink = true
    /// The number of times that runs were dropped, for each limit.
    var dropped = (bySize: 0, byAge: 0)
    /// The time of the newest event that was dropped since the file was opened.
    private(set) var droppedUntil = Instant.distantPast
    private var sorter = HalfWordSorter()
    private var eventOrder = EventOrder()

    init(path: String?, key: HashKey, limits: HistoryLimits, vfs: String?) throws(RunTable.OpeningFault) {
        self.table = try RunTable(path: path, key: key, vfs: vfs)
        self.limits = limits
        self.isInMemory = path == nil
        do {
            self.written = try self.table.positions()
            self.voids = try self.table.voids()
            self.storedVoids = self.voids
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

    /// The time of the newest event in the file; nil if there is none.
    var newest: Instant? { self.runs.map(\.newest).max() }

    /// The total size of all chunks in the file, in bytes.
    private var heldBytes: Int {
        (self.runs + self.dead).reduce(self.merge?.output?.bytes ?? 0) { $0 + $1.bytes }
    }

    /// Writes events as a new run. The same transaction stores the positions of their records.
    func add(_ events: [HistoryEvent], ofRecords records: [UInt64]) throws(SQLiteError) {
        var written = self.written
        for record in records { written.take(record) }
        guard !events.isEmpty else {
            try self.table.transaction { () throws(SQLiteError) in try self.savePositions(written) }
            return self.noteSaved(written)
        }
        let writer = RunWriter(self.table, order: (self.runs.last?.order ?? 0) + 1, eventsMax: events.count)
        let run = try self.table.transaction { () throws(SQLiteError) -> HistoryRun in
            try self.eventOrder.forEach(events, &self.sorter) { index throws(SQLiteError) in
                try writer.append(events[index])
            }
            try self.savePositions(written)
            return try writer.finish(&self.sorter)
        }
        self.noteSaved(written)
        self.runs.append(run)
    }

    private func savePositions(_ written: RecordPositions) throws(SQLiteError) {
        if written != self.written { try self.table.save(written, after: self.written) }
        if self.voids != self.storedVoids { try self.table.save(self.voids) }
    }

    private func noteSaved(_ written: RecordPositions) {
        self.written = written
        self.storedVoids = self.voids
    }

    /// Does one limited piece of maintenance: deletes chunks, drops or merges runs, or copies the log.
    ///
    /// - Returns: true if any work was done.
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

    /// True if chunks must be deleted or the log must be copied before events may be added.
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
        self.droppedUntil = max(self.droppedUntil, oldest.newest)
        if isOld { self.dropped.byAge += 1 } else { self.dropped.bySize += 1 }
        return true
    }

    private func mergePiece() throws(SQLiteError) -> Bool {
        if self.merge == nil {
            guard let window = MergePlan.next(self.runs, self.limits) else { return false }
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

    /// Cancels a merge: its output will be deleted, and its inputs stay.
    private func cancel(_ merge: RunMerge) {
        self.merge = nil
        if let output = merge.output { self.dead.append(output) }
    }

    /// Returns free pages to the file system if the file exceeds its limit or most of it is free.
    private func shrink() throws(SQLiteError) -> Bool {
        guard self.mayShrink, !self.isInMemory else { return false }
        let pages = try self.table.pages()
        // Free pages are normally reused soon. Only a file far larger than its content is worth shrinking.
        let isTooLarge = pages.all * RunTable.pageBytes > self.limits.bytesMax
        guard pages.free > 0 && isTooLarge || pages.free > max(self.limits.pieceChunks, pages.all / 2) else {
            self.mayShrink = false
            return false
        }
        try self.table.giveBack(self.limits.pieceChunks)
        return true
    }
}

extension RunStore {
    /// Appends the events of a chunk that are not void: those of `device`, or all if `device` is nil.
    private func readEvents(_ row: Int64, device: UInt64?, into events: inout [HistoryEvent]) throws(SQLiteError) {
        try self.table.readEvents(row, device: device, into: &events)
        guard !self.voids.isEmpty else { return }
        events.removeAll { event in self.voids.contains { $0.contains(event) } }
    }

    /// Calls `body` with the events of a device, including parts of names, the newest first. Stops when `body` returns
    /// false.
    ///
    /// - `latest`: events after this time are skipped.
    func visit(
        _ device: UInt64,
        notAfter latest: Instant,
        _ body: (HistoryEvent) -> Bool
    ) throws(SQLiteError) {
        var found: [HistoryEvent] = []
        for run in self.runs.reversed() where run.oldest <= latest {
            var next = run.lastEventChunk(of: device)
            while let number = next {
                let chunk = run.eventChunks[number]
                found.removeAll(keepingCapacity: true)
                try self.readEvents(chunk.row, device: device, into: &found)
                for event in found.reversed() where event.at <= latest {
                    guard body(event) else { return }
                }
                // If a chunk begins with another device, no earlier chunk has events of this device.
                next = chunk.device == device && number > 0 ? number - 1 : nil
            }
        }
    }

    /// Returns the devices of all events. Reads the whole file.
    func devices() throws(SQLiteError) -> Set<UInt64> {
        var devices: Set<UInt64> = []
        var found: [HistoryEvent] = []
        for run in self.runs {
            for chunk in run.eventChunks {
                found.removeAll(keepingCapacity: true)
                try self.readEvents(chunk.row, device: nil, into: &found)
                for event in found { devices.insert(event.device) }
            }
        }
        return devices
    }

    /// Passes the pushes of the runs to the collector, the newest run first. Stops when no older push is wanted or too
    /// many events have been examined.
    ///
    /// - `latest`: pushes after this time are skipped.
    /// - Returns: the time of the newest event that was not examined; nil if all wanted pushes were found.
    func collectPushes(
        notAfter latest: Instant,
        _ collector: inout LoggedPushCollector
    ) throws(SQLiteError) -> Instant? {
        var examined = 0
        var found: [HistoryEvent] = []
        var left = self.runs.filter { $0.oldest <= latest }
        while let newest = left.map(\.newest).max(), newest >= collector.bound {
            // The next page begins just after `newest`. If this page began there, it must continue.
            guard examined < HistoryLimits.pushesExamined || newest.milliseconds + 1 >= latest.milliseconds else {
                return newest
            }
            guard let number = left.lastIndex(where: { $0.newest == newest }) else { return nil }
            let run = left.remove(at: number)
            for chunk in run.eventChunks {
                found.removeAll(keepingCapacity: true)
                try self.readEvents(chunk.row, device: nil, into: &found)
                for event in found { collector.append(event) }
            }
            examined += run.events
        }
        return nil
    }

    /// Returns the last `countMax` events that name a push, in the order in which they were added.
    func pushEvents(_ apnsID: APNsID, countMax: Int) throws(SQLiteError) -> [HistoryEvent] {
        let hash = PushEntry.hash(apnsID, self.table.key)
        var newestFirst: [HistoryEvent] = []
        var chunks: [Int] = []
        var found: [HistoryEvent] = []
        for run in self.runs.reversed() {
            chunks.removeAll(keepingCapacity: true)
            for number in run.pushChunks(of: hash) {
                let isWhole = try self.table.readChunk(run.pushChunks[number].row) {
                    PushChunkReader.read($0, hash: hash, into: &chunks)
                }
                guard isWhole else { throw RunTable.damage("a chunk of the index of pushes is damaged") }
            }
            for number in chunks.sorted().reversed() {
                guard number < run.eventChunks.count else { throw RunTable.damage("the index names no chunk") }
                found.removeAll(keepingCapacity: true)
                try self.readEvents(run.eventChunks[number].row, device: nil, into: &found)
                newestFirst += found.reversed().lazy.filter { $0.names(apnsID) }
                if newestFirst.count >= countMax { return newestFirst.prefix(countMax).reversed() }
            }
        }
        return newestFirst.reversed()
    }
}

extension HistoryEvent {
    /// Returns true if the event belongs to this push, or to a push with which this push was coalesced.
    package func names(_ apnsID: APNsID) -> Bool {
        // A part of a name may have the same bytes as an identifier.
        (self.apnsID == apnsID || self.relatedPush == apnsID) && !self.isNamePart
    }
}

/// Events in the order in which they happened, and the ends of their records.
struct CollectedEvents {
    private struct RecordEnd {
        let sequence: UInt64
        /// The number of collected events up to the last event of the record.
        let count: Int
    }

    private(set) var events: [HistoryEvent] = []
    /// The ends of the numbered records.
    private var ends: [RecordEnd] = []

    /// True if neither events nor record numbers must be written.
    var isEmpty: Bool { self.events.isEmpty && self.ends.isEmpty }

    var count: Int { self.events.count }

    /// The numbers of the records, in the order they were added.
    var records: [UInt64] { self.ends.map(\.sequence) }

    /// The lowest number of a record; nil if no record has a number.
    var oldestRecord: UInt64? { self.ends.lazy.map(\.sequence).min() }

    mutating func append(_ event: HistoryEvent) {
        self.events.append(event)
    }

    /// Marks the last appended event as the end of record `sequence`.
    mutating func endRecord(_ sequence: UInt64) {
        self.ends.append(RecordEnd(sequence: sequence, count: self.events.count))
    }

    mutating func append(_ later: CollectedEvents) {
        let count = self.events.count
        self.events += later.events
        self.ends += later.ends.map { RecordEnd(sequence: $0.sequence, count: count + $0.count) }
    }

    mutating func removeAll() {
        self.events.removeAll(keepingCapacity: true)
        self.ends.removeAll(keepingCapacity: true)
    }

    /// Removes the records for which `isHeld` is true: their events, and the unnumbered events before them.
    mutating func removeRecords(where isHeld: (UInt64) -> Bool) {
        guard self.ends.contains(where: { isHeld($0.sequence) }) else { return }
        var kept = CollectedEvents()
        var start = 0
        for end in self.ends {
            defer { start = end.count }
            guard !isHeld(end.sequence) else { continue }
            kept.events += self.events[start..<end.count]
            kept.endRecord(end.sequence)
        }
        kept.events += self.events[start...]
        self = kept
    }
}

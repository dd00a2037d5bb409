import Engine
import Policy
import Wire

/// Writes sorted events as the chunks of one run, and the index of the pushes they name.
///
/// It is used within transactions of its caller. After an error it is of no use any more.
final class RunWriter {
    private let table: RunTable
    private(set) var run = HistoryRun()
    private var chunk = EventChunkWriter()
    private var firstDevice: UInt64 = 0
    private var entries: [UInt64] = []

    init(_ table: RunTable, order: UInt64, eventsMax: Int) {
        self.table = table
        self.run.order = order
        self.entries.reserveCapacity(eventsMax)
    }

    /// Gives the run a row before it is whole, so that what is written of it can be found after a crash.
    func saveUnfinished() throws(SQLiteError) {
        try self.table.save(&self.run, .unfinished)
    }

    func append(_ event: HistoryEvent) throws(SQLiteError) {
        if !self.chunk.hasRoom { try self.endChunk() }
        if self.chunk.eventCount == 0 { self.firstDevice = event.device }
        let names = self.chunk.append(event)
        let number = self.run.eventChunks.count
        if names.apnsID, let apnsID = event.apnsID { self.append(PushEntry(apnsID, chunk: number, self.table.key)) }
        if names.related, let related = event.related { self.append(PushEntry(related, chunk: number, self.table.key)) }
        self.run.oldest = min(self.run.oldest, event.at)
        self.run.newest = max(self.run.newest, event.at)
        self.run.events += 1
    }

    private func append(_ entry: PushEntry) {
        self.entries.append(entry.word)
    }

    /// Writes what is left, and the run's row.
    func finish(_ sorter: inout HalfWordSorter) throws(SQLiteError) -> HistoryRun {
        if self.chunk.eventCount > 0 { try self.endChunk() }
        sorter.sort(&self.entries)
        var chunk = PushChunkWriter()
        var first: UInt32 = 0
        var previous: UInt64?
        for word in self.entries where word != previous {
            previous = word
            let entry = PushEntry(hash: UInt32(truncatingIfNeeded: word >> 32), chunk: word & 0xFFFF_FFFF)
            if !chunk.hasRoom { try self.end(&chunk, first) }
            if chunk.isEmpty { first = entry.hash }
            chunk.append(entry)
        }
        if !chunk.isEmpty { try self.end(&chunk, first) }
        try self.table.save(&self.run, .live)
        return self.run
    }

    private func endChunk() throws(SQLiteError) {
        self.chunk.close()
        let row = try self.table.addChunk(self.chunk.buffer.view)
        self.run.eventChunks.append(HistoryRun.EventChunk(device: self.firstDevice, row: row))
        self.run.bytes += self.chunk.buffer.count
        self.chunk.removeAll()
    }

    private func end(_ chunk: inout PushChunkWriter, _ first: UInt32) throws(SQLiteError) {
        chunk.close()
        let row = try self.table.addChunk(chunk.buffer.view)
        self.run.pushChunks.append(HistoryRun.PushChunk(hash: first, row: row))
        self.run.bytes += chunk.buffer.count
        chunk.removeAll()
    }
}

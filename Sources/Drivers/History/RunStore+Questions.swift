package import Bytes
package import DeviceEngine
import LaunchPolicy
import SQLite

extension RunStore {
    /// Calls `body` with the events of a device, parts of names too, the newest first, until it returns false.
    ///
    /// - `latest`: those that happened later are passed over.
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
                try self.table.readEvents(chunk.row, device: device, into: &found)
                for event in found.reversed() where event.at <= latest {
                    guard body(event) else { return }
                }
                // A chunk that begins with an earlier device holds all there is before it.
                next = chunk.device == device && number > 0 ? number - 1 : nil
            }
        }
    }

    /// The last events that name a push, in the order they were added.
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
                try self.table.readEvents(run.eventChunks[number].row, device: nil, into: &found)
                newestFirst += found.reversed().lazy.filter { $0.names(apnsID) }
                if newestFirst.count >= countMax { return newestFirst.prefix(countMax).reversed() }
            }
        }
        return newestFirst.reversed()
    }
}

extension HistoryEvent {
    /// Whether it happened to this push, or to another that this one was coalesced with.
    package func names(_ apnsID: APNsID) -> Bool {
        // The bytes of a name may be those of an identifier.
        (self.apnsID == apnsID || self.related == apnsID) && !self.isNamePart
    }
}

package import Engine
import Policy
package import Wire

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

    /// The devices of all events. It reads everything.
    func devices() throws(SQLiteError) -> Set<UInt64> {
        var devices: Set<UInt64> = []
        var found: [HistoryEvent] = []
        for run in self.runs {
            for chunk in run.eventChunks {
                found.removeAll(keepingCapacity: true)
                try self.table.readEvents(chunk.row, device: nil, into: &found)
                for event in found { devices.insert(event.device) }
            }
        }
        return devices
    }

    /// Hands over the pushes of one run after the other, from the newest on, until no older one is wanted or very many
    /// events were looked at.
    ///
    /// - `latest`: those that came later are not wanted.
    /// - Returns: the newest moment of what was not looked at; nil when all that is wanted was.
    func collectPushes(
        notAfter latest: Instant,
        _ collector: inout LoggedPushCollector
    ) throws(SQLiteError) -> Instant? {
        var examined = 0
        var found: [HistoryEvent] = []
        var left = self.runs.filter { $0.oldest <= latest }
        while let newest = left.map(\.newest).max(), newest >= collector.bound {
            guard examined == 0 || examined < HistoryLimits.pushesExamined else { return newest }
            guard let number = left.lastIndex(where: { $0.newest == newest }) else { return nil }
            let run = left.remove(at: number)
            for chunk in run.eventChunks {
                found.removeAll(keepingCapacity: true)
                try self.table.readEvents(chunk.row, device: nil, into: &found)
                for event in found { collector.append(event) }
            }
            examined += run.events
        }
        return nil
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

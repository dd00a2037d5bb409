import Engine
import Policy
package import Wire

/// Events of one stretch of time, sorted by device, and what is needed to find one in it.
///
/// What the chunks begin with is kept in memory: 12 bytes or 16 for each 8 KiB of events.
package struct HistoryRun {
    /// A chunk of events and the first device in it.
    struct EventChunk: Hashable {
        let device: UInt64
        let row: Int64
    }

    /// A chunk of the index of pushes and the first hash in it.
    struct PushChunk: Hashable {
        let hash: UInt32
        let row: Int64
    }

    /// The run's row; 0 before it has one.
    var id: Int64 = 0
    /// Orders runs in time.
    var order: UInt64 = 0
    var oldest = Instant.distantFuture
    var newest = Instant.distantPast
    var events = 0
    /// Of all chunks.
    var bytes = 0
    var eventChunks: [EventChunk] = []
    var pushChunks: [PushChunk] = []

    /// Every chunk's row.
    package var rows: [Int64] { self.eventChunks.map(\.row) + self.pushChunks.map(\.row) }

    /// The number of the last chunk that may hold events of `device`; nil when there is none.
    package func lastEventChunk(of device: UInt64) -> Int? {
        let end = self.eventChunks.boundary { $0.device > device }
        return end == 0 ? nil : end - 1
    }

    /// The numbers of the chunks of the index that may hold entries with this hash.
    package func pushChunks(of hash: UInt32) -> Range<Int> {
        let start = self.pushChunks.boundary { $0.hash >= hash }
        let end = self.pushChunks.boundary { $0.hash > hash }
        return max(start - 1, 0)..<end
    }
}

extension HistoryRun {
    /// Appends the run's own row: seal, order, times, counts, and both lists of chunks.
    package func write(to buffer: inout ByteBuffer) {
        buffer.append(word: 0)
        buffer.append(word: self.order)
        buffer.append(word: UInt64(bitPattern: self.oldest.milliseconds))
        buffer.append(word: UInt64(bitPattern: self.newest.milliseconds))
        buffer.append(word: UInt64(self.events))
        buffer.append(word: UInt64(self.bytes))
        buffer.append(word: UInt64(self.eventChunks.count))
        for chunk in self.eventChunks {
            buffer.append(word: chunk.device)
            buffer.append(word: UInt64(bitPattern: chunk.row))
        }
        for chunk in self.pushChunks {
            buffer.append(halfWord: chunk.hash)
            buffer.append(word: UInt64(bitPattern: chunk.row))
        }
        ChunkSeal.close(&buffer)
    }

    /// nil when the row is damaged.
    package init?(id: Int64, _ row: ByteView) {
        guard let content = ChunkSeal.open(row) else { return nil }
        var reader = ByteReader(content)
        self.id = id
        self.order = reader.word()
        self.oldest = Instant(milliseconds: Int64(bitPattern: reader.word()))
        self.newest = Instant(milliseconds: Int64(bitPattern: reader.word()))
        guard let events = Int(exactly: reader.word()), let bytes = Int(exactly: reader.word()) else { return nil }
        self.events = events
        self.bytes = bytes
        var remaining = reader.word()
        while remaining > 0, !reader.isDamaged {
            let device = reader.word()
            self.eventChunks.append(EventChunk(device: device, row: Int64(bitPattern: reader.word())))
            remaining -= 1
        }
        while !reader.isAtEnd {
            let hash = reader.halfWord()
            self.pushChunks.append(PushChunk(hash: hash, row: Int64(bitPattern: reader.word())))
        }
        if reader.isDamaged { return nil }
    }
}

extension Array {
    /// The first index whose element satisfies `belongsBehind`, which holds for all behind the first for which it does.
    func boundary(_ belongsBehind: (Element) -> Bool) -> Int {
        var range = self.indices
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = belongsBehind(self[middle]) ? range.lowerBound..<middle : middle + 1..<range.upperBound
        }
        return range.lowerBound
    }
}

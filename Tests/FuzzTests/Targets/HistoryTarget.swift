import Engine
import Policy
import Storage
import Wire

/// Rows and chunks of the history with a valid seal. The first byte selects the kind.
enum HistoryTarget {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        var reader = InputReader(input)
        let kind = reader.byte() % 3
        var sealed = ByteBuffer()
        sealed.append(word: 0)
        sealed.append(reader.rest)
        ChunkSeal.close(&sealed)
        switch kind {
        case 0: try self.checkRun(sealed.view)
        case 1: try self.checkEvents(sealed.view)
        default: try self.checkPushes(sealed.view)
        }
    }

    /// Checks that the row of a run is the same when it is written again.
    private static func checkRun(_ row: ByteView) throws(BrokenPromise) {
        guard let run = HistoryRun(id: 1, row) else { return }
        var written = ByteBuffer()
        run.write(to: &written)
        try promise(written.view == row, "the row of a run changed when it was written anew")
        _ = run.rows
        _ = run.lastEventChunk(of: 1 << 63)
        _ = run.pushChunks(of: 1 << 31)
    }

    /// Checks that events that were read are the same after they are written and read again, for all devices and for
    /// each device.
    private static func checkEvents(_ chunk: ByteView) throws(BrokenPromise) {
        var events: [HistoryEvent] = []
        guard var reader = EventChunkReader(chunk), reader.read(nil, into: &events) else { return }
        for event in events { _ = event.kind }
        events.sort { $0.device < $1.device }
        var writer = EventChunkWriter()
        for event in events {
            guard writer.hasRoom else { return }
            _ = writer.append(event)
        }
        guard writer.eventCount > 0 else { return }
        writer.close()
        var again: [HistoryEvent] = []
        var rereader = EventChunkReader(writer.buffer.view)
        try promise(rereader?.read(nil, into: &again) == true, "what was written anew cannot be read")
        try promise(again == events, "events changed when they were written anew")
        for device in Set(events.map(\.device)) {
            var own: [HistoryEvent] = []
            var reader = EventChunkReader(writer.buffer.view)
            try promise(reader?.read(device, into: &own) == true, "the events of a device cannot be read")
            try promise(own == events.filter { $0.device == device }, "the events of a device are not all there")
            var entries = HistoryEntries()
            for event in own.reversed() { entries.append(event) }
            let happened = own.reversed().filter { !$0.isNamePart }
            try promise(entries.finish().map(\.event) == happened, "a name took something that happened with it")
        }
    }

    /// Checks that an index that was read names the same chunks for each hash after it is written again.
    private static func checkPushes(_ chunk: ByteView) throws(BrokenPromise) {
        var all: [Int] = []
        _ = PushChunkReader.read(chunk, hash: 0, into: &all)
        _ = PushChunkReader.read(chunk, hash: .max, into: &all)
        var input = InputReader(chunk.dropFirst(ChunkSeal.byteCount))
        var words: [UInt64] = []
        while input.rest.count >= 8 { words.append(input.view(8).word(at: 0)) }
        var writer = PushChunkWriter()
        for word in words.sorted() {
            guard writer.hasRoom else { break }
            writer.append(PushEntry(hash: UInt32(truncatingIfNeeded: word >> 32), chunk: word & 0xFFFF_FFFF))
        }
        guard !writer.isEmpty else { return }
        writer.close()
        for word in words {
            var chunks: [Int] = []
            let hash = UInt32(truncatingIfNeeded: word >> 32)
            try promise(PushChunkReader.read(writer.buffer.view, hash: hash, into: &chunks), "an index cannot be read")
            try promise(chunks.contains(Int(word & 0xFFFF_FFFF)), "a push is not in its index")
        }
    }
}

import Engine
import Foundation
import Gateway
import Policy
import Storage
import Testing
import WakeGateTestKit

@Suite("What the history is given again from the journal", .timeLimit(.minutes(15)))
struct HistoryFeedTests {
    /// A folder that is removed with the object.
    private final class Folder {
        private let url = FileManager.default.temporaryDirectory.appending(path: "wakegate-feed-\(UUID())")

        init() throws { try FileManager.default.createDirectory(at: self.url, withIntermediateDirectories: true) }

        deinit { try? FileManager.default.removeItem(at: self.url) }

        var copy: String { self.url.appending(path: "copy.sqlite").path }
        var journal: String { self.url.appending(path: "journal.sqlite").path }
        var history: String { self.url.appending(path: "history.sqlite").path }
    }

    /// A journal, a history and what feeds it.
    private final class Rig {
        let folder: Folder
        let journal: Journal
        let file: HistoryFile
        let feed: HistoryFeed
        private(set) var faults: [String] = []
        let retention = EventRetention()
        private var numbers: EventNumbers

        /// - Parameters:
        ///   - last: the number of the newest record that the journal has.
        ///   - path: of the journal; nil for the folder's own.
        ///   - recovery: takes what the journal has.
        init(
            _ folder: Folder,
            after last: UInt64 = 0,
            path: String? = nil,
            historyBytesMax: Int = 256 << 20,
            recovery: EventRecovery? = nil
        ) throws {
            self.folder = folder
            let path = path ?? folder.journal
            self.numbers = EventNumbers(after: last, keyMark: HistoryEvent.mark(of: EngineRig.historyKey))
            self.journal = try Journal(path: path)
            self.journal.retention = self.retention
            try self.journal.load { key, content throws(StoreError) in
                if key.kind == .events { try recovery?.take(content) }
            }
            try self.journal.begin()
            self.file = HistoryFile(
                path: folder.history,
                key: EngineRig.historyKey,
                limits: HistoryLimits(bytesMax: historyBytesMax)
            ) { _ in }
            var told: (String) -> Void = { _ in }
            self.feed = HistoryFeed(self.file, self.retention, JournalEvents(path: path)) { told($0) }
            told = { [unowned self] in self.faults.append($0) }
        }

        /// Gives the history what a former process did not come to write.
        func recover(_ recovery: EventRecovery) {
            let now = Instant(milliseconds: 10)
            recovery.compare(with: self.file.found)
            let offset = WallOffset(wall: 10, now: now)
            recovery.finish(at: EventRecovery.Start(isFirst: false, now: now, offset: offset))
            let batch = HistoryBatch()
            batch.recovery = recovery
            self.feed.take(batch)
        }

        /// Commits events of one device.
        func commit(_ count: Int, device: UInt64) throws -> HistoryBatch {
            let batch = HistoryBatch()
            let event = HistoryEvent(device: device, at: Instant(milliseconds: Int64(device)), kind: .conditions)
            batch.events = Array(repeating: event, count: count)
            var records = RecordBatch()
            self.numbers.write(batch, to: &records)
            try self.journal.commit(records)
            return batch
        }

        func catchUp() {
            while self.feed.isBehind, self.feed.catchUp() {}
        }

        func count(device: UInt64) -> Int { self.file.recent(device: device, count: .max).count }
    }

    @Test("What was dropped since too many waited is read again, each event once and in order")
    func tooMany() throws {
        let rig = try Rig(Folder())
        let waiting = try rig.commit(200_000, device: 1)
        waiting.append(try rig.commit(100_000, device: 2))
        waiting.append(try rig.commit(10, device: 3))
        #expect(waiting.events.count == 200_010)
        rig.feed.take(waiting)
        #expect(rig.feed.isBehind)
        rig.feed.take(try rig.commit(20, device: 4))
        #expect(rig.count(device: 4) == 0, "those before it come first")
        rig.catchUp()
        #expect(!rig.feed.isBehind)
        rig.feed.take(try rig.commit(30, device: 5))
        #expect(!rig.feed.isBehind)
        rig.feed.flush()
        #expect((1...5).map { rig.count(device: $0) } == [200_000, 100_000, 10, 20, 30])
        #expect(rig.feed.takeDropped() == 0)
        #expect(rig.faults == [])
    }

    @Test("What could not be written for long is read again once it can")
    func noRoom() throws {
        let rig = try Rig(Folder(), historyBytesMax: 4 << 20)
        rig.file.limitPages(to: 10)
        for device in 1...60 as ClosedRange<UInt64> { rig.feed.take(try rig.commit(500, device: device)) }
        #expect(rig.feed.isBehind && !rig.feed.catchUp())
        rig.file.limitPages(to: 1 << 30)
        rig.catchUp()
        rig.feed.flush()
        rig.feed.sync()
        #expect((1...60).map { rig.count(device: $0) } == Array(repeating: 500, count: 60))
        #expect(rig.file.durableSequence == 60)
        #expect(rig.feed.takeDropped() == 0)
    }

    @Test("The journal lets go of events that are durable in the history, and of no others")
    func held() throws {
        let rig = try Rig(Folder())
        rig.feed.take(try rig.commit(5, device: 1))
        rig.feed.flush()
        #expect(rig.retention.durableSequence == 0, "written is not durable")
        rig.feed.sync()
        #expect(rig.retention.durableSequence == 1)
        let waiting = try rig.commit(5, device: 2)
        rig.feed.sync()
        #expect(rig.retention.durableSequence == 1, "what the history was not given stays")
        rig.feed.take(waiting)
        rig.feed.flush()
        rig.feed.sync()
        #expect(rig.retention.durableSequence == 2)
    }

    @Test("A journal that is returned to after another one ran in its place gives what the history was without")
    func returned() throws {
        let folder = try Folder()
        do {
            let rig = try Rig(folder)
            rig.feed.take(try rig.commit(5, device: 1))
            rig.feed.flush()
            rig.feed.sync()
            _ = try rig.commit(7, device: 2)
        }
        let other = EventRecord.sequencesOfSecond * 1_700_000_000
        do {
            let rig = try Rig(folder, after: other, path: folder.copy)
            rig.feed.take(try rig.commit(9, device: 3))
            rig.catchUp()
            rig.feed.flush()
            rig.feed.sync()
            #expect(rig.count(device: 3) == 9)
        }
        let recovery = EventRecovery(EngineRig.historyKey)
        let rig = try Rig(folder, after: 2 * other, recovery: recovery)
        #expect(rig.file.found?.leftOff == [1])
        rig.recover(recovery)
        #expect(!rig.feed.isBehind && rig.file.durableSequence == other + 1)
        #expect(rig.faults.count == 1 && rig.faults[0].contains("was undone"))
        rig.feed.take(try rig.commit(11, device: 4))
        rig.catchUp()
        rig.feed.flush()
        #expect((1...4).map { rig.count(device: $0) } == [5, 7, 9, 11])
        #expect(rig.feed.takeDropped() == 0)
    }

    @Test("A history that is begun anew while it runs has what the journal has still, and says since when")
    func damaged() throws {
        let folder = try Folder()
        do {
            let rig = try Rig(folder)
            for device in 1...3 as ClosedRange<UInt64> { rig.feed.take(try rig.commit(5, device: device)) }
            rig.feed.flush()
            rig.feed.sync()
        }
        try SQLiteDatabase(path: folder.history, mode: .readWrite).execute("UPDATE chunk SET content = zeroblob(100)")
        let rig = try Rig(folder, after: 3)
        #expect(rig.count(device: 1) == 0)
        rig.feed.take(try rig.commit(5, device: 4))
        rig.feed.flush()
        rig.catchUp()
        rig.feed.take(try rig.commit(5, device: 5))
        rig.feed.flush()
        #expect((1...5).map { rig.count(device: $0) } == Array(repeating: 5, count: 5))
        #expect(rig.file.beginnings == 1)
        #expect(rig.faults.count == 1 && rig.faults[0].contains("what happened before 1970-01-01T00:00:00"))
    }
}

import Engine
import Foundation
import Gateway
import Platform
import Policy
import Storage
import Synchronization
import Testing
import WakeGateTestKit
import Wire

@Suite("Events that the history receives again from the journal", .timeLimit(.minutes(15)))
struct HistoryFeedTests {
    /// A journal, a history and its feed.
    private final class Rig {
        let folder: TemporaryFolder
        let journal: Journal
        let file: HistoryFile
        let feed: HistoryFeed
        private(set) var faults: [String] = []
        let retention = EventRetention()
        private var numbers: EventNumbers

        /// - Parameters:
        ///   - last: the number of the newest record in the journal.
        ///   - path: the path of the journal; nil for the folder's own.
        ///   - recovery: receives the records in the journal.
        init(
            _ folder: TemporaryFolder,
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

        /// Passes the events to the history that a former process had not written.
        func recover(_ recovery: EventRecovery, at milliseconds: Int64 = 10) {
            let now = Instant(milliseconds: milliseconds)
            recovery.compare(with: self.file.found)
            let offset = WallOffset(wall: 10, now: now)
            recovery.finish(isFirst: false, now: now, offset: offset)
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

        /// Commits events of each of these devices, passes them to the history, and makes them durable there.
        func store(_ count: Int, devices: ClosedRange<UInt64>) throws {
            for device in devices { self.feed.take(try self.commit(count, device: device)) }
            self.catchUp()
            self.feed.flush()
            self.feed.sync()
        }

        func catchUp() {
            while self.feed.isBehind, self.feed.catchUp() {}
        }

        func count(device: UInt64) -> Int { self.file.recent(device: device, count: .max).count }
    }

    @Test("Events dropped because too many waited are read again, each once and in order")
    func tooMany() throws {
        let rig = try Rig(TemporaryFolder())
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

    @Test("Events that could not be written are read again once they can be")
    func noRoom() throws {
        let rig = try Rig(TemporaryFolder(), historyBytesMax: 4 << 20)
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

    @Test("The journal drops only events that are durable in the history")
    func held() throws {
        let rig = try Rig(TemporaryFolder())
        rig.feed.take(try rig.commit(5, device: 1))
        rig.feed.flush()
        #expect(rig.retention.durableSequence == 0, "written is not durable")
        rig.feed.sync()
        #expect(rig.retention.durableSequence == 1)
        let waiting = try rig.commit(5, device: 2)
        rig.feed.sync()
        #expect(rig.retention.durableSequence == 1, "records that the history lacks stay")
        rig.feed.take(waiting)
        rig.feed.flush()
        rig.feed.sync()
        #expect(rig.retention.durableSequence == 2)
    }

    @Test("A journal that is used again after another one supplies the events that the history missed")
    func returned() throws {
        let folder = try TemporaryFolder()
        do {
            let rig = try Rig(folder)
            try rig.store(5, devices: 1...1)
            _ = try rig.commit(7, device: 2)
        }
        let other = EventRecord.sequencesOfSecond * 1_700_000_000
        do {
            let rig = try Rig(folder, after: other, path: folder.copy)
            try rig.store(9, devices: 3...3)
            #expect(rig.count(device: 3) == 9)
        }
        let recovery = EventRecovery(EngineRig.historyKey)
        let rig = try Rig(folder, after: 2 * other, recovery: recovery)
        #expect(rig.file.found?.positions.leftOff == [1])
        rig.recover(recovery, at: 4)
        #expect(!rig.feed.isBehind && rig.file.durableSequence == other + 1)
        #expect(rig.faults.count == 1 && rig.faults[0].contains("another journal was restored"))
        try rig.store(11, devices: 4...4)
        #expect((1...4).map { rig.count(device: $0) } == [5, 7, 0, 11])
        #expect(rig.feed.takeDropped() == 0)
    }

    @Test("Events that a restored journal never had are void, until the journal that had them returns")
    func undone() throws {
        let folder = try TemporaryFolder()
        try Rig(folder).store(5, devices: 1...3)
        // Record 1 is the last one that the restored journal has, and record 2 that of another, newer copy.
        for (last, first, counts) in [(1, 4, [5, 0, 0, 5]), (2, 5, [5, 5, 0, 0, 5])] as [(Int, Int64, [Int])] {
            let recovery = EventRecovery(EngineRig.historyKey)
            try recovery.take(UInt64(last), device: UInt64(last), at: Int64(last))
            let numbering = EventRecord.sequencesOfSecond * (1_700_000_000 + UInt64(last))
            let rig = try Rig(folder, after: numbering, path: folder.copy + "\(last)")
            rig.recover(recovery, at: first)
            try rig.store(5, devices: UInt64(first)...UInt64(first))
            #expect((1...UInt64(counts.count)).map { rig.count(device: $0) } == counts, "\(rig.faults)")
        }
        // A start without another journal leaves them void.
        let rig = try Rig(folder, after: 99, path: folder.copy + "2")
        #expect((1...5).map { rig.count(device: $0) } == [5, 5, 0, 0, 5])
    }

    @Test("A history restarted at run time gets the journal's remaining events, and reports since when")
    func damaged() throws {
        let folder = try TemporaryFolder()
        try Rig(folder).store(5, devices: 1...3)
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

@Suite("Comparing a history with its journal at a start")
struct EventRecoveryTests {
    private static let hour: Int64 = 3_600_000

    /// Returns the recovery from a journal with these records, each with one event, an hour apart.
    private static func recovery(
        _ records: [UInt64],
        foreign: [UInt64] = [],
        isFirst: Bool = false
    ) throws -> EventRecovery {
        let recovery = EventRecovery(EngineRig.historyKey)
        for sequence in records + foreign {
            let key = foreign.contains(sequence) ? HashKey((1, 2)) : EngineRig.historyKey
            try recovery.take(sequence, device: 1, at: Int64(sequence % 1000) * Self.hour, key)
        }
        let now = Instant(milliseconds: 10 * Self.hour)
        recovery.finish(isFirst: isFirst, now: now, offset: WallOffset(wall: 10 * Self.hour, now: now))
        return recovery
    }

    private static func found(_ sequence: UInt64, leftOff: [UInt64] = [], isNew: Bool = false) -> OpenedHistory {
        let newest = isNew ? nil : Instant(milliseconds: Int64(sequence % 1000) * Self.hour)
        let positions = RecordPositions(newest: sequence, leftOff: leftOff)
        return OpenedHistory(isNew: isNew, positions: positions, newest: newest)
    }

    @Test("A history that is complete, or can be completed, causes no fault")
    func whole() throws {
        for (records, written) in [([7], 7), ([5, 6, 7], 7), ([5, 6, 7], 4), ([3, 4], 3)] as [([UInt64], UInt64)] {
            let recovery = try Self.recovery(records)
            recovery.compare(with: Self.found(written))
            #expect(recovery.faults == [])
            #expect(recovery.takeRecords().map(\.sequence) == records.filter { $0 > written })
        }
        let first = try Self.recovery([], isFirst: true)
        first.compare(with: Self.found(0, isNew: true))
        #expect(first.faults == [])
    }

    @Test("A history older than the journal's records lacks events, which are counted, with the time since when")
    func older() throws {
        let recovery = try Self.recovery([6, 7])
        recovery.compare(with: Self.found(2))
        let fault = try #require(recovery.faults.first)
        #expect(recovery.faults.count == 1)
        #expect(fault.contains("the events of 3 records since 1970-01-01T02:00:00"), "\(fault)")
        #expect(fault.contains("continues at 1970-01-01T06:00:00"), "\(fault)")
        #expect(recovery.takeRecords().map(\.sequence) == [6, 7])
    }

    @Test("A missing history lacks the events before the journal's first record")
    func missing() throws {
        let recovery = try Self.recovery([4, 6])
        recovery.compare(with: Self.found(0, isNew: true))
        let faults = recovery.faults
        #expect(faults.count == 2)
        #expect(faults[0].contains("what happened before 1970-01-01T04:00:00"), "\(faults)")
        #expect(faults[1].contains("the events of 1 records"), "\(faults)")
    }

    @Test("A history beyond its journal belongs to a newer journal, and record numbers continue beyond both")
    func newer() throws {
        let recovery = try Self.recovery([2, 3])
        recovery.compare(with: Self.found(9))
        let fault = try #require(recovery.faults.first)
        #expect(recovery.faults.count == 1)
        #expect(fault.contains("up to 9, of 1970-01-01T09:00:00") && fault.contains("journal ends at 3"), "\(fault)")
        #expect(fault.hasSuffix("records 4 to 9 are void"), "\(fault)")
        func hour(_ number: Int64) -> Instant { Instant(milliseconds: number * Self.hour) }
        #expect(recovery.undone == VoidSpan(after: hour(3), until: hour(10)))
        #expect(Self.next(recovery.numbers(wall: 0)) == 10)
        let new = try Self.recovery([], isFirst: true)
        new.compare(with: Self.found(9))
        #expect(new.faults.first?.contains("the journal is new") == true)
        #expect(new.undone == nil, "the history is the only record of what happened")
        let again = try Self.recovery([])
        again.compare(with: Self.found(9))
        #expect(again.undone == nil)
    }

    /// With a cost that grew with the square of the records, ten million devices kept the history busy for an hour.
    @Test(
        "A journal with many records is compared in linear time",
        .timeLimit(.minutes(5)),
        arguments: [100_000, 200_000]
    )
    func large(written: UInt64) throws {
        let recovery = try Self.recovery(Array(1...100_000))
        recovery.compare(with: Self.found(written))
        #expect((recovery.undone != nil) == (written > 100_000))
        #expect(recovery.faults.count == (written > 100_000 ? 1 : 0))
        #expect(recovery.takeRecords().isEmpty)
    }

    @Test("A journal that is used again supplies its records since the history left it for another")
    func returned() throws {
        let wall: Int64 = 1_800_000_000_000
        let other = EventRecord.sequencesOfSecond * 1_700_000_000
        let recovery = try Self.recovery([2, 3, 4, 5])
        recovery.compare(with: Self.found(other + 7, leftOff: [3]))
        #expect(recovery.faults.count == 1)
        #expect(recovery.faults.first?.hasSuffix("its events since 1970-01-01T05:00:00Z are void") == true)
        #expect(Self.next(recovery.numbers(wall: wall)) > other + EventRecord.sequencesOfSecond)
        #expect(recovery.takeRecords().map(\.sequence) == [4, 5])
        // The journal has dropped two of those.
        let later = try Self.recovery([6, 7])
        later.compare(with: Self.found(other + 7, leftOff: [3]))
        #expect(later.faults.count == 2)
        #expect(later.faults.last?.contains("the events of 2 records") == true)
        #expect(later.takeRecords().map(\.sequence) == [6, 7])
        // It is unknown where the numbering of a former build stopped.
        let former = try Self.recovery([2, 3, 4, 5])
        former.compare(with: Self.found(other + 7))
        #expect(former.faults.count == 1)
        #expect(former.faults.first?.contains("may be without the newest events that the journal has") == true)
        #expect(former.takeRecords() == [])
    }

    @Test("Events numbered under another key are lost, and counted")
    func otherKey() throws {
        let recovery = try Self.recovery([5], foreign: [3, 4])
        recovery.compare(with: Self.found(2))
        #expect(recovery.faults == ["2 events that the journal has are lost with the former history.key"])
        #expect(recovery.takeRecords().map(\.sequence) == [3, 4, 5], "those of the other key count as taken, too")
    }

    @Test("While a history cannot be opened, numbering restarts beyond any number it may have")
    func unopened() throws {
        let wall: Int64 = 1_800_000_000_000
        let recovery = try Self.recovery([2, 3])
        let beginning = Self.next(recovery.numbers(wall: wall))
        #expect(beginning > 1_700_000_000 << 30 && beginning < EventRecord.sequenceMax)
        #expect(Self.next(recovery.numbers(wall: .max)) < EventRecord.sequenceMax)
        #expect(Self.next(recovery.numbers(wall: -1)) == 4)
        #expect(recovery.faults == [])
        // The gateway's own history, opened later: nothing is missing in between.
        recovery.compare(with: Self.found(3))
        #expect(recovery.faults == [])
        let next = try Self.recovery([2, 3, beginning, beginning + 1])
        next.compare(with: Self.found(3))
        #expect(next.faults == [])
        #expect(next.takeRecords().map(\.sequence) == [beginning, beginning + 1])
        #expect(Self.next(next.numbers(wall: wall)) == beginning + 2)
        // A history that is ahead of the journal.
        let restored = try Self.recovery([2, 3, beginning, beginning + 2])
        restored.compare(with: Self.found(9))
        #expect(restored.faults.count == 2)
        #expect(restored.faults.first?.contains("the journal ends at 3: an older journal was restored") == true)
        // The former start after the restoration is the end of what is void, since the history took nothing from it.
        let began = Instant(milliseconds: Int64(beginning % 1000) * Self.hour)
        #expect(restored.undone == VoidSpan(after: Instant(milliseconds: 3 * Self.hour), until: began))
        #expect(restored.faults.last?.contains("the events of 1 records") == true)
        #expect(restored.takeRecords().map(\.sequence) == [beginning, beginning + 2])
    }

    /// Returns the number of the next record; 0 if there is none.
    private static func next(_ numbers: EventNumbers) -> UInt64 {
        var numbers = numbers
        let history = HistoryBatch()
        history.events = [HistoryEvent(device: 1, at: Instant(milliseconds: 1), kind: .conditions)]
        var records = RecordBatch()
        numbers.write(history, to: &records)
        return records.records.last?.content.withByteView { (try? EventRecord($0))?.sequence } ?? 0
    }
}

@Suite("Events that the engine sends to the history", .timeLimit(.minutes(15)))
struct EngineHistoryTests {
    @Test("Tokens that collide under a known hash seed do not share a history")
    func unknownDevices() throws {
        // The second eight bytes cancel those before them. Without a key, all such tokens would have the same number.
        let numbers = try ["00112233445566aa", "b0112233445566bb"].map { prefix in
            let token = try #require((prefix + "6453f3d32de93f29").withByteView { DeviceToken(hex: $0) })
            return HistoryEvent.device(of: token, EngineRig.historyKey)
        }
        #expect(numbers[0] != numbers[1])
    }

    @Test("A file that a merge finds damaged is set aside at once, although nothing is written")
    func damagedMerge() throws {
        let folder = try TemporaryFolder()
        do {
            let file = HistoryFile(path: folder.history, key: EngineRig.historyKey) { _ in }
            // Eight runs are merged into one.
            for device in 0..<8 as Range<UInt64> {
                file.append(HistoryEvent(device: device, at: Instant(milliseconds: 1), kind: .registered))
                file.flush()
            }
        }
        try SQLiteDatabase(path: folder.history, mode: .readWrite).execute("UPDATE chunk SET content = zeroblob(100)")
        let isSetAside = Latch()
        let thread = try HistoryThread(
            mailboxes: PerOutput(LoopMailbox()),
            onDropped: { _ in },
            makeFile: {
                HistoryFile(path: folder.history, key: EngineRig.historyKey) { failure in
                    if case .setAside = failure { isSetAside.open() }
                }
            }
        )
        try thread.open()
        // Without new events, the thread's next turn would be ten minutes away.
        #expect(isSetAside.wait(untilNanoseconds: SystemClock.monotonicNanoseconds + 60_000_000_000))
        thread.stop()
    }

    @Test("Excess waiting events are dropped and counted; questions are answered, and later events are kept")
    func dropped() throws {
        let loop = LoopMailbox()
        let dropped = Mutex(0)
        let thread = try HistoryThread(
            mailboxes: PerOutput(loop),
            onDropped: { count in dropped.withLock { $0 += count } },
            makeFile: { HistoryFile(path: nil, key: EngineRig.historyKey, limits: .inMemory) { _ in } }
        )
        try thread.open()
        var waiting = HistoryBatch()
        for (device, count) in [(1, 200_000), (2, 100_000), (3, 5)] {
            let number = HistoryEvent.device(of: device.token, EngineRig.historyKey)
            let event = HistoryEvent(device: number, at: Instant(milliseconds: 1), kind: .conditions)
            let topic = EngineRig.topicName(0)
            let batch = HistoryBatch()
            batch.events = Array(repeating: event, count: count)
            batch.questions.append(
                HistoryQuestion(device, about: .events(device.token, topic: topic, EventSelection(), for: .gateway))
            )
            waiting.append(batch)
        }
        thread.submit(&waiting)
        thread.stop()
        let answers = EngineOutput.all(from: loop)
        #expect(dropped.withLock { $0 } == 100_000)
        #expect(answers.map(\.request) == [1, 2, 3])
        #expect(answers.map(\.steps.count) == [EventSelection.limitByDefault, 0, 5])
    }
}

extension EventRecovery {
    /// Adds a record with one event, at a policy time in milliseconds.
    fileprivate func take(
        _ sequence: UInt64,
        device: UInt64,
        at milliseconds: Int64,
        _ key: HashKey = EngineRig.historyKey
    ) throws {
        let event = HistoryEvent(device: device, at: Instant(milliseconds: milliseconds), kind: .conditions)
        let keyMark = HistoryEvent.mark(of: key)
        var record = ByteBuffer()
        _ = EventRecord.write([event], from: 0, sequence: sequence, keyMark: keyMark, to: &record)
        try self.take(record.view)
    }
}

extension TemporaryFolder {
    fileprivate var copy: String { "\(self.path)/copy.sqlite" }
    fileprivate var journal: String { "\(self.path)/journal.sqlite" }
    fileprivate var history: String { "\(self.path)/history.sqlite" }
}

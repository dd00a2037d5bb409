import Engine
import Foundation
import Policy
import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite("Faults of the history file", .timeLimit(.minutes(15)))
struct HistoryTroubleTests {
    /// Returns a closed history with some events.
    private func filled(_ seed: UInt64 = 1) throws -> HistoryRig {
        let rig = try HistoryRig()
        var random = SeededGenerator(seed: seed)
        for _ in 0..<10 {
            for _ in 0..<1000 { rig.appendRandom(&random, devices: 50) }
            rig.flush()
        }
        rig.tidyAll()
        rig.close()
        #expect(rig.troubles == [])
        return rig
    }

    /// Checks that a history starts anew next to the old file, and works.
    private func expectNewStart(_ rig: HistoryRig, _ reason: String, isInPlace: Bool = false) throws {
        rig.forget()
        rig.append(HistoryEvent(device: 5, at: rig.now, kind: .registered))
        rig.flush()
        rig.close()
        #expect(rig.open().recent(device: 5, count: 32) == rig.recent(5))
        #expect(rig.troubles.count == 1)
        guard case .setAside(rig.asidePath, let told, isInPlace)? = rig.troubles.first else {
            Issue.record("reported \(rig.troubles)")
            return
        }
        #expect(told.contains(reason), "\(told)")
        #expect(FileManager.default.fileExists(atPath: rig.asidePath))
    }

    @Test("A database of another program is set aside unchanged")
    func foreignDatabase() throws {
        let rig = try HistoryRig()
        try SQLiteDatabase(path: rig.path, mode: .create).execute(
            "PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (42)"
        )
        try self.expectNewStart(rig, "another program")
        let aside = try SQLiteDatabase(path: rig.asidePath, mode: .readWrite)
        #expect(try aside.integer("SELECT x FROM t") == 42)
    }

    @Test("A file that is not a database is set aside")
    func foreignFile() throws {
        let rig = try HistoryRig()
        try Data(repeating: 65, count: 100_000).write(to: URL(filePath: rig.path))
        try self.expectNewStart(rig, "not a database")
    }

    @Test(
        "A file of another format is set aside and replaces an earlier one, which is reported",
        arguments: [1, 3]
    )
    func otherFormat(format: Int64) throws {
        let rig = try self.filled()
        try Data().write(to: URL(filePath: rig.asidePath))
        try SQLiteDatabase(path: rig.path, mode: .readWrite).execute("PRAGMA user_version = \(format)")
        try self.expectNewStart(rig, "format is \(format)", isInPlace: true)
        #expect(rig.troubles.first?.message.hasSuffix("in place of one that was set aside before") == true)
        #expect(try SQLiteDatabase(path: rig.asidePath, mode: .readOnly).integer("PRAGMA user_version") == format)
    }

    @Test("A file of another key is set aside, and its events are not returned")
    func otherKey() throws {
        let rig = try self.filled()
        let device = try #require(rig.events.last?.device)
        #expect(rig.open().recent(device: device, count: 1).count == 1)
        rig.close()
        var troubles: [HistoryFailure] = []
        let other = HistoryFile(path: rig.path, key: HashKey((1, 2)), limits: rig.limits) { troubles.append($0) }
        #expect(other.recent(device: device, count: 1) == [])
        #expect(troubles.count == 1)
        let told = troubles.first?.message ?? ""
        #expect(told.contains("history.key") && told.contains(rig.asidePath), "\(told)")
        #expect(FileManager.default.fileExists(atPath: rig.asidePath))
    }

    @Test("A damaged row of a run is found at the start")
    func damagedRow() throws {
        let rig = try self.filled()
        try SQLiteDatabase(path: rig.path, mode: .readWrite).execute("UPDATE run SET content = x'00112233' || content")
        try self.expectNewStart(rig, "damaged")
    }

    @Test("A damaged byte never causes a wrong answer: at most the history is started over")
    func damagedBytes() throws {
        let rig = try self.filled()
        let whole = try Data(contentsOf: URL(filePath: rig.path))
        var random = SeededGenerator(seed: 3)
        var found = 0
        for _ in 0..<60 {
            var damaged = whole
            for _ in 0..<20 { damaged[random.number(below: damaged.count)] ^= UInt8(random.number(in: 1...255)) }
            try damaged.write(to: URL(filePath: rig.path))
            for device in 0..<50 as Range<UInt64> {
                let device = device &* 0x9E37_79B9_7F4A_7C15
                let answer = rig.open().recent(device: device, count: 32)
                #expect(answer.isEmpty || answer == rig.recent(device).prefix(answer.count).map(\.self))
                // At most the newest events are missing, if the damage was found after them.
            }
            for event in rig.events.suffix(30) {
                guard let apnsID = event.apnsID else { continue }
                let answer = rig.open().push(apnsID)
                #expect(answer.isEmpty || answer == rig.push(apnsID))
            }
            rig.closeKeepingEvents()
            if rig.troubles.contains(where: { if case .setAside = $0 { true } else { false } }) { found += 1 }
            rig.forgetTroubles()
        }
        #expect(found > 0)
    }

    @Test("Damage found at run time sets the file aside, and the history continues")
    func damagedChunk() throws {
        let rig = try self.filled()
        try SQLiteDatabase(path: rig.path, mode: .readWrite).execute("UPDATE chunk SET content = zeroblob(100)")
        #expect(rig.open().recent(device: 0, count: 32) == [])
        try self.expectNewStart(rig, "damaged")
    }

    @Test("A file that is started over at run time forgets all records, and accepts them again in order")
    func recordsAgain() throws {
        let rig = try self.filled()
        try SQLiteDatabase(path: rig.path, mode: .readWrite).execute("UPDATE chunk SET content = zeroblob(100)")
        let history = rig.open()
        let event = HistoryEvent(device: 5, at: rig.now, kind: .conditions)
        for record in 1...3 as ClosedRange<UInt64> { history.append([event], ofRecord: record) }
        history.flush()
        #expect(history.takenSequence == 3 && history.writtenSequence == 3 && history.beginnings == 0)
        #expect(history.recent(device: 0, count: 1) == [])
        history.append([event], ofRecord: 4)
        history.flush()
        #expect(history.takenSequence == 0 && history.writtenSequence == 0 && history.beginnings == 1)
        #expect(history.recent(device: 5, count: 32) == [])
        for record in 2...4 as ClosedRange<UInt64> { history.append([event, event], ofRecord: record) }
        history.flush()
        #expect(history.recent(device: 5, count: 32).count == 6)
        #expect(history.writtenSequence == 4)
    }

    @Test("Records without space are refused, not dropped, and accepted when they are appended again")
    func noRoom() throws {
        let rig = try HistoryRig()
        rig.open().limitPages(to: 10)
        let history = rig.open()
        let event = HistoryEvent(device: 5, at: rig.now, kind: .conditions)
        var record: UInt64 = 1
        while history.append(Array(repeating: event, count: 500)[...], ofRecord: record) { record += 1 }
        #expect(history.droppedEvents == 0 && history.takenSequence == record - 1)
        history.limitPages(to: 1 << 30)
        #expect(history.append(Array(repeating: event, count: 500)[...], ofRecord: record))
        history.flush()
        #expect(history.writtenSequence == record && history.droppedEvents == 0)
        #expect(history.recent(device: 5, count: .max).count == Int(record) * 500)
    }

    @Test("A full disk drops and counts events, is reported once, and ends when there is space again")
    func fullDisk() throws {
        let rig = try HistoryRig()
        var random = SeededGenerator(seed: 2)
        rig.open().limitPages(to: 10)
        for _ in 0..<20_000 { rig.appendRandom(&random, devices: 1000) }
        #expect(rig.troubles.count == 1)
        guard case .failing? = rig.troubles.first else {
            Issue.record("reported \(rig.troubles)")
            return
        }
        let dropped = rig.open().droppedEvents
        #expect(dropped > 10_000 && dropped < 20_000)
        #expect(rig.open().recent(device: rig.events[19_999].device, count: 1) == [rig.events[19_999]])
        rig.open().limitPages(to: 1 << 30)
        rig.flush()
        #expect(rig.troubles.last == .recovered(droppedEvents: dropped))
        #expect(rig.open().collectedEvents == 0)
        rig.tidyAll()
        #expect(rig.troubles.count == 2)
    }

    @Test("With a missing folder events are kept in memory, and stored when it exists again")
    func noFolder() throws {
        let rig = try HistoryRig()
        try FileManager.default.removeItem(at: rig.folder.url)
        rig.append(HistoryEvent(device: 1, at: rig.now, kind: .registered))
        rig.flush()
        rig.flush()
        guard case .failing? = rig.troubles.first else {
            Issue.record("reported \(rig.troubles)")
            return
        }
        #expect(rig.open().recent(device: 1, count: 32) == rig.recent(1))
        try FileManager.default.createDirectory(at: rig.folder.url, withIntermediateDirectories: true)
        rig.flush()
        #expect(rig.troubles.dropFirst() == [.recovered(droppedEvents: 0)])
        rig.close()
        #expect(rig.open().recent(device: 1, count: 32) == rig.recent(1))
        #expect(rig.recent(1).count == 1)
    }
}

import Engine
import Foundation
import Policy
import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite("Which records of events a history has")
struct RecordPositionsTests {
    private static let second = EventRecord.sequencesOfSecond

    @Test("Records are taken in sequence, and numbers that start over leave earlier ones off")
    func leftOff() {
        var positions = RecordPositions()
        #expect(positions.take(1) == 0 && positions.take(2) == 0)
        #expect(positions.take(5) == 2, "3 and 4 are passed over")
        #expect(positions.holds(3) && positions.holds(5) && !positions.holds(6))
        let other = 7 * Self.second
        #expect(positions.take(other + 1) == 0 && positions.take(other + 2) == 0)
        #expect(positions.leftOff == [5] && positions.newest == other + 2)
        #expect(positions.holds(5) && positions.holds(other + 1) && positions.holds(other))
        #expect(!positions.holds(6) && !positions.holds(100) && !positions.holds(other + 3))
        #expect(positions.knowsNumbers(of: 4) && positions.knowsNumbers(of: 100))
        #expect(positions.knowsNumbers(of: other + 9) && !positions.knowsNumbers(of: 3 * Self.second))
    }

    @Test("Records after a place where numbers left off are taken later, each once")
    func returned() {
        let other = 7 * Self.second
        var positions = RecordPositions(newest: other + 2, leftOff: [5])
        #expect(positions.take(6) == 0 && positions.take(9) == 2)
        #expect(positions.leftOff == [9] && positions.newest == other + 2)
        #expect(positions.take(7) == 0 && positions.leftOff == [9])
        let third = 9 * Self.second
        positions.take(third)
        #expect(positions.leftOff == [9, other + 2])
        #expect(!positions.holds(other + 3) && positions.holds(other + 2) && !positions.holds(10) && positions.holds(9))
        positions.take(other + 3)
        #expect(positions.leftOff == [9, other + 3] && positions.newest == third)
    }

    @Test("Only the newest places where numbers left off are kept; older records count as taken")
    func many() {
        var positions = RecordPositions()
        for number in 1...100 as ClosedRange<UInt64> { positions.take(number * Self.second) }
        #expect(positions.leftOff.count == 32 && positions.leftOff.last == 99 * Self.second)
        #expect(positions.holds(2 * Self.second + 1) && !positions.holds(98 * Self.second + 1))
    }

    /// Appends one event for each record, of the device with its number.
    private func append(_ records: ClosedRange<UInt64>, to rig: HistoryRig) {
        for record in records {
            let event = HistoryEvent(device: record, at: rig.now, kind: .conditions)
            #expect(rig.open().append([event], ofRecord: record))
        }
    }

    @Test("A file records where numbering left off, and accepts later records")
    func file() throws {
        let rig = try HistoryRig()
        let other = 7 * Self.second
        self.append(1...3, to: rig)
        self.append(other + 1...other + 2, to: rig)
        rig.open().flush()
        rig.open().sync()
        rig.closeKeepingEvents()
        #expect(rig.open().found?.positions == RecordPositions(newest: other + 2, leftOff: [3]))
        #expect(rig.open().durableSequence == other + 2)
        // The history does not take these records again.
        self.append(2...5, to: rig)
        self.append(other + 2...other + 3, to: rig)
        #expect(rig.open().collectedEvents == 3 && rig.open().durableSequence == 3)
        rig.open().sync()
        #expect(rig.open().durableSequence == 3, "they are not in the file")
        rig.open().flush()
        rig.open().sync()
        #expect(rig.open().durableSequence == other + 3)
        rig.closeKeepingEvents()
        #expect(rig.open().found?.positions.leftOff == [5] && rig.open().takenSequence == other + 3)
        for record in [1, 2, 3, 4, 5, other + 1, other + 2, other + 3] {
            #expect(rig.open().recent(device: record, count: 32).count == 1, "record \(record)")
        }
    }

    @Test("Events collected before the file can be opened continue where the file left off")
    func openedLater() throws {
        let rig = try HistoryRig()
        let other = 7 * Self.second
        self.append(1...3, to: rig)
        self.append(other + 1...other + 1, to: rig)
        rig.open().flush()
        rig.closeKeepingEvents()
        let hidden = rig.path + ".hidden"
        try FileManager.default.moveItem(atPath: rig.path, toPath: hidden)
        try FileManager.default.createDirectory(atPath: rig.path, withIntermediateDirectories: false)
        self.append(2...5, to: rig)
        self.append(2 * other...2 * other, to: rig)
        #expect(!rig.open().isOpen)
        try FileManager.default.removeItem(atPath: rig.path)
        try FileManager.default.moveItem(atPath: hidden, toPath: rig.path)
        rig.open().flush()
        rig.open().sync()
        #expect(rig.open().isOpen && rig.open().durableSequence == 2 * other)
        for record in [1, 2, 3, 4, 5, other + 1, 2 * other] {
            #expect(rig.open().recent(device: record, count: 32).count == 1, "record \(record)")
        }
        rig.closeKeepingEvents()
        #expect(rig.open().found?.positions.leftOff == [5, other + 1])
    }

    @Test("A record without events counts as taken, also after the file was closed")
    func withoutEvents() throws {
        let rig = try HistoryRig()
        #expect(rig.open().append([], ofRecord: 1) && rig.open().append([], ofRecord: 2))
        rig.open().flush()
        rig.open().sync()
        #expect(rig.open().durableSequence == 2 && rig.open().runCount == 0)
        rig.closeKeepingEvents()
        #expect(rig.open().found?.positions.newest == 2 && rig.open().holds(2) && !rig.open().holds(3))
    }

    @Test("A file without earlier numbers counts as having all of their records")
    func formerFile() throws {
        let rig = try HistoryRig()
        let event = HistoryEvent(device: 5, at: rig.now, kind: .conditions)
        rig.open().append([event], ofRecord: 3)
        rig.open().flush()
        rig.closeKeepingEvents()
        try SQLiteDatabase(path: rig.path, mode: .readWrite).execute(
            "REPLACE INTO written (id, sequence) VALUES (1, \(7 * Self.second))"
        )
        #expect(rig.open().found?.positions.leftOff == [] && rig.open().holds(4))
        rig.open().append([event], ofRecord: 4)
        #expect(rig.open().collectedEvents == 0)
    }
}

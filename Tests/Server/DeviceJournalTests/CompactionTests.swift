import Engine
import Foundation
import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite("The file stays near twice the live data, by bounded work in each commit")
struct CompactionTests {
    /// A journal on an in-memory disk, and a model of its contents.
    private final class Rig {
        static let path = "/journal.sqlite"

        let disk = SimulatedDisk()
        let limits: JournalLimits
        let journal: Journal
        private(set) var model: [RecordKey: [UInt8]] = [:]
        private(set) var modelBytes = 0
        private(set) var copied = 0
        private(set) var largestShare = 0.0

        init(floor: Int = 64 << 10) throws {
            var limits = JournalLimits()
            limits.compactionFloorBytes = floor
            limits.deletionBytes = 32 << 10
            self.limits = limits
            self.journal = try Journal(path: Self.path, vfs: self.disk.vfsName, limits: limits) { _ in }
            try self.journal.begin()
        }

        func commit(_ devices: some Sequence<Int>, bytes: (Int) -> Int) throws {
            var records: [(RecordKey, [UInt8])] = []
            var own = 0
            for device in devices {
                let content = Array(repeating: UInt8(truncatingIfNeeded: device), count: bytes(device))
                records.append((.device(device), content))
                own += content.count + RecordBatch.headerCount
                let old = self.model.updateValue(content, forKey: .device(device))
                self.modelBytes += content.count - (old?.count ?? -RecordBatch.headerCount)
            }
            try self.journal.commit(records)
            let copied = self.journal.copiedBytesOfLastCommit
            self.copied += copied
            #expect(copied <= own * 6 + self.limits.rowBytesMax)
            #expect(self.journal.bytes.live == self.modelBytes)
            if self.journal.bytes.all > 4 * self.limits.compactionFloorBytes {
                self.largestShare = max(self.largestShare, Double(self.journal.bytes.all) / Double(self.modelBytes))
            }
        }

        /// Returns the number of bytes in the file's used pages.
        func usedBytes() throws -> Int {
            let database = try SQLiteDatabase(path: Self.path, mode: .readWrite, vfs: self.disk.vfsName)
            let pages = try database.integer("PRAGMA page_count") ?? 0
            let pageBytes = try database.integer("PRAGMA page_size") ?? 0
            return try Int((pages - (database.integer("PRAGMA freelist_count") ?? 0)) * pageBytes)
        }

        func reopened() throws -> [RecordKey: [UInt8]] {
            self.disk.losePower()
            return try Journal(path: Self.path, vfs: self.disk.vfsName) { _ in }.loadAll()
        }
    }

    @Test(
        "Over a month of days and nights, with devices that appear, go quiet and hold payloads",
        .timeLimit(.minutes(15))
    )
    func month() throws {
        var random = SeededGenerator(seed: 30)
        let rig = try Rig()
        var known = 200
        for hour in 0..<30 * 24 {
            known = min(2000, known + random.number(below: 6))
            let isNight = hour % 24 < 7
            for _ in 0..<(isNight ? 2 : 10) {
                let hot = max(1, known / 5)
                var devices: Set<Int> = []
                for _ in 0..<random.number(in: 1...40) {
                    devices.insert(
                        random.once(in: 4) ? random.number(below: known) : known - 1 - random.number(below: hot)
                    )
                }
                try rig.commit(devices) { _ in random.once(in: 3) ? random.number(in: 200...2000) : 150 }
            }
            if hour % 24 == 23 {
                let used = try rig.usedBytes()
                #expect(used <= rig.modelBytes * 5 / 2 + (1 << 20), "day \(hour / 24): \(used) of \(rig.modelBytes)")
            }
        }
        #expect(rig.largestShare < 2.3, "\(rig.largestShare)")
        #expect(rig.copied > 1 << 20)
        #expect(try rig.reopened() == rig.model)
    }

    @Test("Old rows with only live data are passed without the file growing much beyond twice the live data")
    func coldHead() throws {
        let rig = try Rig()
        for first in stride(from: 0, to: 10_000, by: 100) { try rig.commit(first..<first + 100) { _ in 300 } }
        for turn in 0..<3000 { try rig.commit([turn % 7, 7 + turn % 13]) { _ in 1000 } }
        #expect(rig.largestShare > 1.5 && rig.largestShare < 2.4, "\(rig.largestShare)")
        #expect(try rig.reopened() == rig.model)
    }

    @Test("A store whose records become small returns their space")
    func shrinking() throws {
        let rig = try Rig()
        for first in stride(from: 0, to: 2000, by: 50) { try rig.commit(first..<first + 50) { _ in 4000 } }
        for first in stride(from: 0, to: 2000, by: 50) { try rig.commit(first..<first + 50) { _ in 40 } }
        for turn in 0..<400 { try rig.commit((0..<50).map { (turn * 50 + $0) % 2000 }) { _ in 40 } }
        #expect(rig.journal.bytes.all <= rig.modelBytes * 2 + 4 * rig.limits.compactionFloorBytes)
        #expect(try rig.usedBytes() <= 1 << 20)
        #expect(try rig.reopened() == rig.model)
    }

    @Test("Single records are committed for a long time without the rows piling up")
    func singleRecords() throws {
        let rig = try Rig()
        for turn in 0..<6000 { try rig.commit([turn % 500]) { _ in 400 } }
        #expect(rig.largestShare < 2.4, "\(rig.largestShare)")
        #expect(try rig.reopened() == rig.model)
    }
}

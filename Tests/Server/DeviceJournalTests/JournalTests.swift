import Engine
import Foundation
import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite
struct JournalTests {
    @Test("Committed records of every kind and size are read back")
    func roundTrip() throws {
        let folder = try JournalFolder()
        let records: [(RecordKey, [UInt8])] = [
            (RecordKey(.clock), [1, 2, 3]),
            (RecordKey(.origin), []),
            (RecordKey(.topic, 7), Array(repeating: 9, count: 5000)),
            (RecordKey(.rejections, RecordKey.everyTopic), [4]),
            (RecordKey(.rejections, 0), [5]),
            (.device(0), [6]),
            (.device(99_999), Array(repeating: 7, count: 400)),
        ]
        do {
            let (journal, found) = try folder.open()
            #expect(found.isEmpty)
            try journal.commit(records)
        }
        let (_, found) = try folder.open()
        #expect(found == Dictionary(uniqueKeysWithValues: records))
        #expect(try folder.read() == found)
    }

    @Test("A commit of any size is split into rows and read back complete")
    func largeCommits() throws {
        let folder = try JournalFolder()
        var expected: [RecordKey: [UInt8]] = [:]
        do {
            let (journal, _) = try folder.open()
            for (count, bytes) in [(40, 5000), (4000, 409), (1, 200_000), (3, 67_400), (2, 0)] {
                let records = (0..<count).map {
                    (RecordKey.device($0), Array(repeating: UInt8($0 & 255), count: bytes))
                }
                try journal.commit(records)
                for (key, value) in records { expected[key] = value }
            }
        }
        let (_, found) = try folder.open()
        #expect(found == expected)
    }

    @Test("Nothing is written for an empty batch")
    func emptyBatch() throws {
        let folder = try JournalFolder()
        let (journal, _) = try folder.open()
        try journal.commit([])
        #expect(journal.bytes.all == 0)
    }

    @Test("The file holds the last value of each key, through restarts at any time", arguments: 0..<8)
    func randomWorkload(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let folder = try JournalFolder()
        if random.once(in: 3) { try folder.makeJournal(pageBytes: 16_384) }
        var limits = JournalLimits()
        // Low limits, so that rows, compaction, checkpoints and new logs happen often.
        limits.rowBytesMax = random.number(in: 300...6000)
        limits.compactionFloorBytes = random.number(in: 0...50_000)
        limits.checkpointBytes = random.number(in: 32...320) << 10
        limits.restartBytes = random.number(in: 64...640) << 10
        let devices = random.number(in: 1...300)
        var model: [RecordKey: [UInt8]] = [:]
        var (journal, found) = try folder.open(limits: limits)
        let checkpointer = journal.makeCheckpointer()
        journal.onCheckpointDue = { try? checkpointer.checkpoint() }
        for _ in 0..<300 {
            if random.once(in: 40) {
                (journal, found) = try folder.open(limits: limits)
                #expect(found == model, "seed \(seed)")
                if random.once(in: 2) {
                    let checkpointer = journal.makeCheckpointer()
                    journal.onCheckpointDue = { try? checkpointer.checkpoint() }
                }
            }
            var records: [RecordKey: [UInt8]] = [:]
            for _ in 0..<random.number(in: 1...30) {
                let bytes = random.once(in: 20) ? random.number(below: 5000) : random.number(below: 400)
                let key = random.once(in: 10) ? RecordKey(.clock) : .device(random.number(below: devices))
                records[key] = Array(repeating: UInt8(truncatingIfNeeded: random.next()), count: bytes)
            }
            try journal.commit(records.map { ($0.key, $0.value) })
            model.merge(records) { $1 }
            if random.once(in: 50) { #expect(try folder.read() == model, "seed \(seed)") }
        }
        (_, found) = try folder.open(limits: limits)
        #expect(found == model, "seed \(seed)")
    }
}

import Engine
import Policy
import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite("Events that the history has not made durable", .timeLimit(.minutes(15)))
struct HeldEventTests {
    private static let path = "/journal.sqlite"

    /// A journal on an in-memory disk whose commits contain events.
    private final class Rig {
        let retention: EventRetention
        private let journal: Journal
        private let disk: SimulatedDisk
        /// The numbers of the records that the journal handed over, in ascending order.
        let found: [UInt64]
        private var sequence: UInt64

        init(on disk: SimulatedDisk = SimulatedDisk(), durable: UInt64 = 0, heldBytesMax: Int = 1 << 30) throws {
            var limits = JournalLimits()
            limits.compactionFloorBytes = 1000
            limits.deletionBytes = 1000
            limits.heldBytesMax = heldBytesMax
            self.disk = disk
            self.journal = try Journal(path: path, vfs: self.disk.vfsName, limits: limits) { _ in }
            self.retention = EventRetention(durableSequence: durable)
            self.journal.retention = self.retention
            var found: Set<UInt64> = []
            try self.journal.load { key, content in
                if key.kind == .events, let record = try? EventRecord(content) { found.insert(record.sequence) }
            }
            try self.journal.begin()
            self.found = found.sorted()
            self.sequence = found.max() ?? 0
        }

        /// Commits one device's record and a record of events.
        func commit(events: Int = 1) throws {
            var batch = RecordBatch()
            batch.append(RecordKey(.device, 0)) { $0.append(Array(repeating: 7, count: 300)) }
            if events > 0 {
                self.sequence += 1
                let event = HistoryEvent(device: 1, at: Instant(milliseconds: 1), kind: .conditions)
                batch.append(EventRecord.key(self.sequence)) {
                    _ = EventRecord.write(
                        Array(repeating: event, count: events),
                        from: 0,
                        sequence: self.sequence,
                        keyMark: 1,
                        to: &$0
                    )
                }
            }
            try self.journal.commit(batch)
        }

        var bytes: Int { self.journal.bytes.all }

        /// Returns the journal as the next process finds it.
        func reopened(durable: UInt64) throws -> Rig {
            self.disk.losePower()
            return try Rig(on: self.disk, durable: durable)
        }
    }

    @Test("Every record is kept until the history has it, across losses of power, and dropped then")
    func kept() throws {
        var rig = try Rig()
        for _ in 0..<200 { try rig.commit() }
        #expect(rig.retention.heldBytes > 200 * 300)
        rig = try rig.reopened(durable: 150)
        #expect(rig.found.suffix(50) == Array(151...200))
        for _ in 0..<20 { try rig.commit() }
        rig = try rig.reopened(durable: 150)
        #expect(rig.found.suffix(70) == Array(151...220))
        #expect(rig.found.count < 100, "what the history has is dropped")
        rig.retention.advance(to: 220)
        for _ in 0..<20 { try rig.commit(events: 0) }
        #expect(rig.bytes < 10_000)
        #expect(rig.retention.heldBytes == 0)
    }

    @Test("The newest record is never dropped, so that its number is not given again")
    func newest() throws {
        var rig = try Rig()
        for _ in 0..<50 { try rig.commit() }
        rig.retention.advance(to: 50)
        for _ in 0..<500 { try rig.commit(events: 0) }
        for _ in 0..<3 {
            rig = try rig.reopened(durable: 50)
            #expect(rig.found.last == 50)
            for _ in 0..<100 { try rig.commit(events: 0) }
        }
        #expect(rig.bytes < 10_000)
    }

    @Test("While the history takes nothing, the journal keeps so much and no more, and says what it gave up")
    func bound() throws {
        var rig = try Rig(heldBytesMax: 20_000)
        for _ in 0..<1000 { try rig.commit(events: 3) }
        #expect(rig.bytes < 40_000)
        let givenUp = rig.retention.takeGivenUp()
        #expect(givenUp % 3 == 0)
        rig = try rig.reopened(durable: 0)
        let kept = try #require(rig.found.last) - UInt64(givenUp / 3)
        #expect(rig.found.suffix(Int(kept)) == Array(1000 - kept + 1...1000))
        #expect(rig.found.count < 1000)
        #expect(kept > 20)
    }

    @Test("A record of events that cannot be one is refused with the row's name")
    func impossible() throws {
        for change in 0..<3 {
            let folder = try JournalFolder()
            var (journal, _) = try folder.open()
            var content = ByteBuffer()
            let event = HistoryEvent(device: 1, at: Instant(milliseconds: 1), kind: .conditions)
            _ = EventRecord.write([event], from: 0, sequence: 1, keyMark: 1, to: &content)
            var bytes = content.view.array
            switch change {
            case 0: bytes[17] = 2
            case 1: bytes[21] = 31
            default: bytes.append(0)
            }
            try journal.commit([(RecordKey(.clock), [1]), (EventRecord.key(1), bytes)])
            (journal, _) = (try JournalFolder().open())
            let refusal = try #require(try folder.refusal())
            #expect(refusal.contains("a record of events of row 1") && refusal.contains(folder.path), "\(refusal)")
        }
    }
}

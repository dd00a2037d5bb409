import Engine
import Gateway
import Policy
import Storage
import Testing
import WakeGateTestKit
import Wire

@Suite("What a start says of a history beside its journal")
struct EventRecoveryTests {
    private static let hour: Int64 = 3_600_000

    /// What a journal has that keeps these records, each of an event an hour after the one before.
    private static func recovery(
        _ records: [UInt64],
        foreign: [UInt64] = [],
        isFirst: Bool = false
    ) throws -> EventRecovery {
        let recovery = EventRecovery(EngineRig.historyKey)
        for sequence in records + foreign {
            let key = foreign.contains(sequence) ? HashKey((1, 2)) : EngineRig.historyKey
            let at = Instant(milliseconds: Int64(sequence % 1000) * Self.hour)
            var content = ByteBuffer()
            _ = EventRecord.write(
                [HistoryEvent(device: 1, at: at, kind: .conditions)],
                from: 0,
                sequence: sequence,
                keyMark: HistoryEvent.mark(of: key),
                to: &content
            )
            try recovery.take(content.view)
        }
        let now = Instant(milliseconds: 10 * Self.hour)
        recovery.finish(
            at: EventRecovery.Start(isFirst: isFirst, now: now, offset: WallOffset(wall: 10 * Self.hour, now: now))
        )
        return recovery
    }

    private static func found(_ sequence: UInt64, leftOff: [UInt64] = [], isNew: Bool = false) -> HistoryFound {
        let newest = isNew ? nil : Instant(milliseconds: Int64(sequence % 1000) * Self.hour)
        return HistoryFound(isNew: isNew, sequence: sequence, leftOff: leftOff, newest: newest)
    }

    @Test("Nothing is said of a history that has all, or is given all that it lacks")
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

    @Test("A history that is older than what the journal keeps lacks records, which are counted, with since when")
    func older() throws {
        let recovery = try Self.recovery([6, 7])
        recovery.compare(with: Self.found(2))
        let fault = try #require(recovery.faults.first)
        #expect(recovery.faults.count == 1)
        #expect(fault.contains("the events of 3 records since 1970-01-01T02:00:00"), "\(fault)")
        #expect(fault.contains("goes on with 1970-01-01T06:00:00"), "\(fault)")
        #expect(recovery.takeRecords().map(\.sequence) == [6, 7])
    }

    @Test("A history that is not there lacks what was before the journal's first record")
    func missing() throws {
        let recovery = try Self.recovery([4, 6])
        recovery.compare(with: Self.found(0, isNew: true))
        let faults = recovery.faults
        #expect(faults.count == 2)
        #expect(faults[0].contains("what happened before 1970-01-01T04:00:00"), "\(faults)")
        #expect(faults[1].contains("the events of 1 records"), "\(faults)")
    }

    @Test("A history that goes on beyond the journal belongs to a newer one, and numbers go on beyond both")
    func newer() throws {
        let recovery = try Self.recovery([2, 3])
        recovery.compare(with: Self.found(9))
        let fault = try #require(recovery.faults.first)
        #expect(recovery.faults.count == 1)
        #expect(fault.contains("to record 9, of 1970-01-01T09:00:00") && fault.contains("the journal to 3"), "\(fault)")
        #expect(Self.next(recovery.numbers(wall: 0)) == 10)
        let new = try Self.recovery([], isFirst: true)
        new.compare(with: Self.found(9))
        #expect(new.faults.first?.contains("the journal is new") == true)
    }

    @Test("A journal that is returned to gives what it had when the history left it for another")
    func returned() throws {
        let wall: Int64 = 1_800_000_000_000
        let other = EventRecord.sequencesOfSecond * 1_700_000_000
        let recovery = try Self.recovery([2, 3, 4, 5])
        recovery.compare(with: Self.found(other + 7, leftOff: [3]))
        #expect(recovery.faults.count == 1)
        #expect(recovery.faults.first?.hasSuffix("what the history has beyond it was undone") == true)
        #expect(Self.next(recovery.numbers(wall: wall)) > other + EventRecord.sequencesOfSecond)
        #expect(recovery.takeRecords().map(\.sequence) == [4, 5])
        // The journal has dropped two of those.
        let later = try Self.recovery([6, 7])
        later.compare(with: Self.found(other + 7, leftOff: [3]))
        #expect(later.faults.count == 2)
        #expect(later.faults.last?.contains("the events of 2 records") == true)
        #expect(later.takeRecords().map(\.sequence) == [6, 7])
        // Nothing is known of what a former build had left off.
        let former = try Self.recovery([2, 3, 4, 5])
        former.compare(with: Self.found(other + 7))
        #expect(former.faults.count == 1)
        #expect(former.faults.first?.contains("may be without the newest events that the journal has") == true)
        #expect(former.takeRecords() == [])
    }

    @Test("Events that were numbered under another key are lost, and counted")
    func otherKey() throws {
        let recovery = try Self.recovery([5], foreign: [3, 4])
        recovery.compare(with: Self.found(2))
        #expect(recovery.faults == ["2 events that the journal has are lost with the former history.key"])
        #expect(recovery.takeRecords().map(\.sequence) == [3, 4, 5], "those of the other key count as taken, too")
    }

    @Test("While a history cannot be opened, numbers begin anew beyond any that it may have")
    func unopened() throws {
        let wall: Int64 = 1_800_000_000_000
        let recovery = try Self.recovery([2, 3])
        let beginning = Self.next(recovery.numbers(wall: wall))
        #expect(beginning > 1_700_000_000 << 30 && beginning < EventRecord.sequenceMax)
        #expect(Self.next(recovery.numbers(wall: .max)) < EventRecord.sequenceMax)
        #expect(Self.next(recovery.numbers(wall: -1)) == 4)
        #expect(recovery.faults == [])
        // Its own history, which opens later: nothing is missing in between.
        recovery.compare(with: Self.found(3))
        #expect(recovery.faults == [])
        let next = try Self.recovery([2, 3, beginning, beginning + 1])
        next.compare(with: Self.found(3))
        #expect(next.faults == [])
        #expect(next.takeRecords().map(\.sequence) == [beginning, beginning + 1])
        #expect(Self.next(next.numbers(wall: wall)) == beginning + 2)
        // One that goes on beyond the journal.
        let restored = try Self.recovery([2, 3, beginning, beginning + 2])
        restored.compare(with: Self.found(9))
        #expect(restored.faults.count == 2)
        #expect(restored.faults.first?.contains("the journal to 3: the journal is an older one") == true)
        #expect(restored.faults.last?.contains("the events of 1 records") == true)
        #expect(restored.takeRecords().map(\.sequence) == [beginning, beginning + 2])
    }

    /// The number that the next record has; 0 when it is none.
    private static func next(_ numbers: EventNumbers) -> UInt64 {
        var numbers = numbers
        let history = HistoryBatch()
        history.events = [HistoryEvent(device: 1, at: Instant(milliseconds: 1), kind: .conditions)]
        var records = RecordBatch()
        numbers.write(history, to: &records)
        var next: UInt64 = 0
        func note(key: RecordKey, content: ByteView) { next = (try? EventRecord(content))?.sequence ?? 0 }
        records.forEach(note)
        return next
    }
}

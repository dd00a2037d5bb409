import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("What a gateway keeps besides devices", .timeLimit(.minutes(15)))
struct GatewayRecordsTests {
    private let now = Instant(milliseconds: 1_700_000_000_000)

    private func keys(_ batch: borrowing RecordBatch) -> [RecordKey] {
        var keys: [RecordKey] = []
        func note(key: RecordKey, content: ByteView) { keys.append(key) }
        batch.forEach(note)
        return keys
    }

    /// The keys of what is stored at this moment.
    private func take(_ records: GatewayRecords, at monotonic: Int64) -> [RecordKey] {
        var batch = RecordBatch()
        records.takeChanges(into: &batch, at: monotonic)
        return self.keys(batch)
    }

    @Test("Refused pushes are stored once a second at most, unless it is the end")
    func rejections() {
        let records = GatewayRecords(countingSince: 1)
        let reason = APNSReason.badTopic.index
        #expect(!records.hasChanges(at: 5_000) && self.take(records, at: 5_000).isEmpty)
        records.countRejected(reason, TopicIndex(rawValue: 3))
        #expect(records.hasChanges(at: 5_000))
        let both = [RecordKey(.rejections, 3), RecordKey(.rejections, RecordKey.everyTopic)]
        #expect(self.take(records, at: 5_000) == both)
        records.countRejected(reason, nil)
        #expect(!records.hasChanges(at: 5_999) && self.take(records, at: 5_999).isEmpty)
        #expect(records.hasChanges(at: 6_000))
        records.hurry()
        #expect(records.hasChanges(at: 5_999))
        #expect(self.take(records, at: 5_999) == [both[1]])
        #expect(records.rejections.total[reason] == 2)
    }

    @Test("A policy is stored when it is another one")
    func policies() {
        let records = GatewayRecords(countingSince: 1)
        records.begin(EngineRig.open(), at: self.now)
        #expect(records.policies.current?.number == 1)
        #expect(self.take(records, at: 0) == [RecordKey(.policies)])
        records.begin(EngineRig.open(), at: self.now + 1)
        #expect(!records.hasChanges(at: 0))
        records.begin(EngineRig.open([(.launchInterval, 5)]), at: self.now + 2)
        #expect(records.policies.current?.number == 2)
        #expect(self.take(records, at: 0) == [RecordKey(.policies)] && !records.hasChanges(at: 0))
    }

    @Test("That workers are asked is stored once", arguments: [true, false])
    func asked(before: Bool) {
        let records = GatewayRecords(countingSince: 1, wereWorkersAsked: before)
        records.workersAsked()
        records.workersAsked()
        #expect(self.take(records, at: 0) == (before ? [] : [.workersAsked]))
        records.workersAsked()
        #expect(!records.hasChanges(at: 0))
    }

    @Test("A start stores when counting began, a new policy, and that workers are asked", arguments: [true, false])
    func beginning(isAsking: Bool) {
        let records = GatewayRecords(countingSince: 1, wereWorkersAsked: isAsking)
        records.begin(EngineRig.open(), at: self.now)
        var batch = RecordBatch()
        records.takeBeginning(into: &batch, isAsking: isAsking)
        let asking: [RecordKey] = isAsking ? [.workersAsked] : []
        #expect(self.keys(batch) == [RecordKey(.origin)] + asking + [RecordKey(.policies)])
        #expect(!records.hasChanges(at: 0))
    }
}

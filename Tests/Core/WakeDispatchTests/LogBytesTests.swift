import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Bytes of a push in the journal")
struct LogBytesTests {
    /// Returns the bytes of a commit with its events, and its bytes without the causes in them.
    private static func bytes(_ rig: DispatchRig) -> (now: Int, before: Int) {
        var batch = RecordBatch()
        rig.engine.takeStep(into: &batch)
        var events: [HistoryEvent] = []
        rig.engine.takeEvents(into: &events)
        let before = events.compactMap { event -> HistoryEvent? in
            if case .worker = event.kind { return nil }
            guard event.waited != nil else { return event }
            return HistoryEvent(device: event.device, at: event.at, kind: event.kind, apnsID: event.apnsID)
        }
        func count(_ events: [HistoryEvent]) -> Int {
            var record = ByteBuffer()
            _ = EventRecord.write(events, from: 0, sequence: 1, keyMark: 1, to: &record)
            return RecordBatch.headerCount + record.count
        }
        return (batch.bytes.count + count(events), batch.bytes.count + count(before))
    }

    /// Returns the records and the events of a device whose push and request were held, and of wakes that failed.
    private static func scene(
        keepsCauses: Bool
    ) throws -> (records: [RecordKey.Kind: [UInt8]], events: [HistoryEvent]) {
        let rig = DispatchRig(EngineRig.openToTasks())
        rig.engine.keepsCauses = keepsCauses
        rig.subscribe(1, slots: 4, tasks: ["other"], label: "builder-17")
        rig.push(1)
        rig.report(.failed, try #require(rig.takeDeliveries().last).wake)
        rig.submit(1, "other", .processing([]))
        rig.report(.failure, try #require(rig.takeDeliveries().last).wake)
        rig.submit(1, "clean", .processing(.network))
        for isThere in [false, true] {
            rig.advance(by: 1000)
            rig.conditions(1) { $0.network = isThere }
        }
        var batch = RecordBatch()
        rig.engine.takeStep(into: &batch)
        var records: [RecordKey.Kind: [UInt8]] = [:]
        func note(_ key: RecordKey, _ content: ByteView) { records[key.kind] = content.array }
        batch.forEach(note)
        var events: [HistoryEvent] = []
        rig.engine.takeEvents(into: &events)
        return (records, events)
    }

    @Test("While a program is attached that cannot read them, records have no waits, and events no causes")
    func withoutCauses() throws {
        let (with, without) = (try Self.scene(keepsCauses: true), try Self.scene(keepsCauses: false))
        // A wait has its start, the start of the hold, its code, and the number of ended holds, and each 9 bytes.
        for (kind, holds) in [(RecordKey.Kind.device, 1), (.tasks, 1)] {
            let counts = [with, without].map { $0.records[kind]?.count ?? 0 }
            #expect(counts[1] > 0 && counts[0] == counts[1] + 18 + 9 * holds, "\(kind): \(counts)")
        }
        let kinds = { (events: [HistoryEvent]) in Set(events.map(\.code)) }
        #expect(kinds(with.events).subtracting(kinds(without.events)) == [23], "the names of workers")
        #expect(without.events.allSatisfy { $0.payloadBytes == nil })
        #expect(with.events.contains { $0.payloadBytes != nil })
    }

    @Test("Causes take at most a tenth more, be the push launched at once or after the interval")
    func causes() throws {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 4, label: "builder-17")
        for device in 0..<2 { rig.push(device) }
        for wake in rig.takeDeliveries() { rig.report(.newData, wake.wake) }
        _ = Self.bytes(rig)
        for wait in [900_000, 100_000] as [Int64] {
            rig.advance(by: wait)
            _ = Self.bytes(rig)
            rig.push(0)
            var total = Self.bytes(rig)
            if wait < 900_000 {
                rig.advance(by: 900_000)
                let launch = Self.bytes(rig)
                total = (total.now + launch.now, total.before + launch.before)
            }
            for wake in rig.takeDeliveries() { rig.report(.newData, wake.wake) }
            let result = Self.bytes(rig)
            total = (total.now + result.now, total.before + result.before)
            #expect(total.now > total.before && total.now * 10 <= total.before * 11, "\(total)")
        }
    }
}

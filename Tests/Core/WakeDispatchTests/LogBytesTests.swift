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

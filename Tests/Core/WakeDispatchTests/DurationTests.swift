import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("How long wakes take", .timeLimit(.minutes(15)))
struct DurationTests {
    @Test("A quantile is at most an eighth too long, and never longer than the longest")
    func quantiles() {
        for milliseconds in [0, 1, 2, 8, 9, 15, 16, 17, 100, 1_000, 29_999, 30_000, 3_600_000, 1 << 40] as [Int64] {
            var counts = DurationCounts()
            #expect(counts.quantile(0.5) == nil && counts.isEmpty)
            counts.record(milliseconds)
            #expect(counts.quantile(0.5) == milliseconds)
            counts.record(1 << 41)
            let median = counts.quantile(0.5) ?? 0
            if milliseconds < 1 << 25 {
                #expect((milliseconds...max(1, milliseconds + milliseconds / 8)).contains(median), "\(milliseconds)")
            }
            #expect(counts.max == 1 << 41 && counts.sum == milliseconds + 1 << 41)
        }
        var counts = DurationCounts()
        for milliseconds in 1...1_000 as ClosedRange<Int64> { counts.record(milliseconds) }
        #expect((950...1_000).contains(counts.quantile(0.95) ?? 0) && (500...562).contains(counts.quantile(0.5) ?? 0))
        for power in 0..<20 as Range<Int64> {
            #expect(counts.count(upTo: 1 << power) == min(1_000, 1 << power), "powers of two begin new buckets")
        }
    }

    /// The durations of the workers of a name, or of all.
    private func row(_ rig: DispatchRig, _ worker: String?) -> DurationCounts? {
        rig.dispatcher.durations(nil).first { $0.worker == worker }?.counts
    }

    @Test("Answers and missed deadlines count for the worker by its name; wakes that are lost or given back do not")
    func counted() throws {
        let rig = DispatchRig()
        rig.subscribe(1, label: "fast")
        rig.push(1)
        rig.advance(by: 100)
        rig.report(.newData, try #require(rig.takeDeliveries().last).wake)
        rig.push(2)
        let late = try #require(rig.takeDeliveries().last).wake
        rig.advance(by: 30_000)
        rig.report(.newData, late)
        #expect(self.row(rig, "fast")?.count == 2)
        #expect(self.row(rig, "fast")?.max == 30_000 && self.row(rig, "fast")?.sum == 30_100)
        rig.push(3)
        _ = rig.dispatcher.release(try #require(rig.takeDeliveries().last).wake, reason: "")
        _ = rig.takeDeliveries()
        rig.endStream(1)
        rig.subscribe(2)
        rig.advance(by: 7)
        rig.report(.failed, try #require(rig.takeDeliveries().last).wake)
        #expect(self.row(rig, "fast")?.count == 2)
        #expect(self.row(rig, "")?.max == 7)
        #expect(self.row(rig, nil)?.count == 3 && self.row(rig, nil)?.max == 30_000)
    }

    @Test("Durations older than half an hour are dropped, except for the totals since the start")
    func forgotten() throws {
        let rig = DispatchRig()
        let start = rig.rig.instant
        rig.dispatcher.advanceDurations(to: start)
        rig.subscribe(1, label: "a")
        for round in 1...3 as ClosedRange<Int64> {
            rig.push(Int(round))
            rig.advance(by: 10)
            rig.report(.newData, try #require(rig.takeDeliveries().last).wake)
            #expect(self.row(rig, "a")?.count == 1 + (round == 1 ? 0 : 1))
            rig.dispatcher.advanceDurations(to: start + round * WakeDurations.span)
        }
        #expect(rig.dispatcher.durationsSince.milliseconds % WakeDurations.span == 0)
        rig.dispatcher.advanceDurations(to: start + 4 * WakeDurations.span)
        #expect(rig.dispatcher.durations(nil).isEmpty)
        #expect(rig.dispatcher.pushDurations.values.map(\.count) == [3])
        rig.push(9)
        rig.report(.newData, try #require(rig.takeDeliveries().last).wake)
        #expect(self.row(rig, "a")?.count == 1, "a stream counts again after its count was dropped")
        rig.dispatcher.advanceDurations(to: start + 9 * WakeDurations.span)
        #expect(rig.dispatcher.durations(nil).isEmpty)
        #expect(rig.dispatcher.pushDurations.values.map(\.count) == [4])
    }

    @Test("A bounded number of names have counts of their own; the others count for their topic alone")
    func names() throws {
        let rig = DispatchRig()
        let count = WakeDurations.namesMax + 10
        for number in 1...count {
            rig.subscribe(number, label: "worker \(number)")
            rig.push(number)
            rig.report(.newData, try #require(rig.takeDeliveries().last).wake)
            rig.endStream(number)
        }
        let rows = rig.dispatcher.durations(nil)
        #expect(rows.count == WakeDurations.namesMax + 1)
        #expect(rows.first { $0.worker == nil }?.counts.count == Int64(count))
    }
}

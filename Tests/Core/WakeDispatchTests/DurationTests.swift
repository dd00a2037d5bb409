import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Durations of wakes", .timeLimit(.minutes(15)))
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
        #expect(rig.dispatcher.durationsSince == start, "nothing was counted before")
        rig.subscribe(1, label: "a")
        for round in 1...3 as ClosedRange<Int64> {
            rig.push(Int(round))
            rig.advance(by: 10)
            rig.report(.newData, try #require(rig.takeDeliveries().last).wake)
            let counted: Int64 = round == 1 ? 1 : 2
            #expect(self.row(rig, "a")?.count == counted)
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

    /// Has a worker of a topic answer a wake.
    private func wake(_ rig: DispatchRig, _ number: Int, topic: Int = 0, endsStream: Bool = true) throws {
        rig.subscribe(number, topic: topic, label: "worker \(number)")
        rig.push(number, topic: topic)
        rig.report(.newData, try #require(rig.takeDeliveries().last).wake)
        if endsStream { rig.endStream(number) }
    }

    @Test("The names of a topic's workers have half of the free counts; the others count only for their topic")
    func names() throws {
        let rig = DispatchRig()
        let half = WakeDurations.namesMax / 2
        for number in 1...half + 10 { try self.wake(rig, number) }
        let rows = rig.dispatcher.durations(nil)
        #expect(rows.count == half + 1)
        #expect(rows.first { $0.worker == nil }?.counts.count == Int64(half + 10))
        try self.wake(rig, half + 11, topic: 1)
        #expect(self.row(rig, "worker \(half + 11)")?.count == 1, "another topic has room")
    }

    @Test("A worker without counts of its own gets them when there is room again")
    func roomAgain() throws {
        let rig = DispatchRig()
        let start = rig.rig.instant
        rig.dispatcher.advanceDurations(to: start)
        let last = WakeDurations.namesMax / 2 + 1
        for number in 1...last { try self.wake(rig, number, endsStream: number < last) }
        #expect(self.row(rig, "worker \(last)") == nil)
        rig.dispatcher.advanceDurations(to: start + WakeDurations.span)
        rig.push(last + 1)
        rig.report(.newData, try #require(rig.takeDeliveries().last).wake)
        #expect(self.row(rig, "worker \(last)") == nil, "the counts of the others are shown still")
        rig.dispatcher.advanceDurations(to: start + 2 * WakeDurations.span)
        rig.push(last + 2)
        rig.report(.newData, try #require(rig.takeDeliveries().last).wake)
        #expect(self.row(rig, "worker \(last)")?.count == 1)
    }

    @Test("Topics beyond a limit are in no row, and in the totals since the start")
    func manyTopics() throws {
        let rig = DispatchRig()
        let start = rig.rig.instant
        rig.dispatcher.advanceDurations(to: start)
        let count = WakeDurations.cellsMax + 10
        for number in 1...count { try self.wake(rig, number, topic: number) }
        let rows = rig.dispatcher.durations(nil)
        #expect(rows.count { $0.worker == nil } == WakeDurations.cellsMax)
        #expect(rows.count { $0.worker != nil } == WakeDurations.namesMax)
        func total() -> Int64 { rig.dispatcher.pushDurations.values.reduce(0) { $0 + $1.count } }
        #expect(total() == Int64(count))
        rig.dispatcher.advanceDurations(to: start + 3 * WakeDurations.span)
        for number in count + 1...2 * count { try self.wake(rig, number, topic: number) }
        rig.dispatcher.advanceDurations(to: start + 6 * WakeDurations.span)
        #expect(total() == Int64(2 * count))
        #expect(rig.dispatcher.pushDurations.count <= WakeDurations.cellsMax + 1)
    }
}

import Engine
import Policy
import Testing
import WakeGateTestKit

@Suite("How long launches are waited for and wakes take", .timeLimit(.minutes(15)))
struct WakeTimesTests {
    private func topic(_ rig: EngineRig) -> TopicIndex { rig.engine.identity(rig.index(1)).topic }

    @Test("A value falls into the first bucket whose bound it does not pass, or into the last")
    func histogram() {
        var histogram = Histogram(bounds: [0, 10, 100])
        for value: Int64 in [0, 1, 10, 11, 100, 101, 5000] { histogram.record(value) }
        histogram.record(50, times: 3)
        #expect(histogram.counts == [1, 2, 5, 2])
        #expect(histogram.count == 10)
        #expect(histogram.sum == 5373)
    }

    @Test("What a step counted that did not happen is taken back, and what others counted meanwhile stays")
    func takenBack() {
        let rig = EngineRig()
        rig.push(1, workerIsFree: true)
        let before = rig.engine.times
        rig.push(2, workerIsFree: true)
        let after = rig.engine.times
        rig.push(3, workerIsFree: true)
        rig.engine.times.takeBack(from: before, to: after)
        #expect(rig.engine.times.lateness.count == 2)
        rig.engine.times.takeBack(from: before, to: before)
        #expect(rig.engine.times.lateness.count == 2)
    }

    @Test("A push that launches as it comes is not late at all")
    func atOnce() {
        let rig = EngineRig()
        rig.push(1, workerIsFree: true)
        #expect(rig.engine.times.lateness.count == 1)
        #expect(rig.engine.times.lateness.sum == 0)
        #expect(rig.engine.oldestDueMilliseconds == 0)
    }

    @Test("A push that waits for a worker is late from its arrival, and the oldest that waits is told")
    func waitsForWorker() throws {
        let rig = EngineRig()
        rig.push(1)
        rig.advance(by: 300)
        rig.push(2)
        rig.advance(by: 4000)
        // A newer push in the place of the first does not begin its wait anew.
        rig.push(1)
        #expect(rig.engine.oldestDueMilliseconds == 4300)
        _ = try #require(rig.engine.claim(self.topic(rig)))
        #expect(rig.engine.times.lateness.sum == 4300)
        #expect(rig.engine.oldestDueMilliseconds == 4000)
        _ = try #require(rig.engine.claim(self.topic(rig)))
        #expect(rig.engine.times.lateness.count == 2)
        #expect(rig.engine.times.lateness.sum == 8300)
        #expect(rig.engine.oldestDueMilliseconds == 0)
    }

    @Test("The interval is no lateness: it counts from the moment at which the policy allows the launch")
    func interval() throws {
        let rig = EngineRig()
        rig.push(1, workerIsFree: true)
        let wake = try #require(rig.snapshot(1).wake)
        #expect(rig.engine.report(.push(.newData), wake: wake) == .ended)
        rig.push(1)
        #expect(rig.engine.oldestDueMilliseconds == 0)
        // The engine is told late: 900 s after the launch the push was due, and 2 s go by.
        rig.advance(by: 902_000)
        #expect(rig.engine.oldestDueMilliseconds == 2000)
        rig.advance(by: 1000)
        _ = try #require(rig.engine.claim(self.topic(rig)))
        #expect(rig.engine.times.lateness.sum == 3000)
    }

    @Test("A hold is no lateness: it counts from the hold's end")
    func hold() throws {
        let rig = EngineRig()
        rig.register(1)
        rig.conditions(1) { $0.network = false }
        rig.push(1)
        rig.advance(by: 60_000)
        #expect(rig.engine.oldestDueMilliseconds == 0)
        rig.conditions(1) { $0.network = true }
        rig.advance(by: 70)
        _ = try #require(rig.engine.claim(self.topic(rig)))
        #expect(rig.engine.times.lateness.sum == 70)
    }

    @Test("A wake's time counts under its outcome, from the launch to the end")
    func durations() throws {
        let rig = EngineRig()
        rig.push(1, workerIsFree: true)
        rig.push(2, workerIsFree: true)
        rig.advance(by: 1200)
        let wake = try #require(rig.snapshot(1).wake)
        #expect(rig.engine.report(.push(.noData), wake: wake) == .ended)
        #expect(rig.engine.times[.noData].sum == 1200)
        rig.advance(by: 60_000)
        #expect(rig.engine.times[.expired].count == 1)
        #expect(rig.engine.times[.newData].count == 0)
    }
}

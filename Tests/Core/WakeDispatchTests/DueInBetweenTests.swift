import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

/// A bounded step gives a stream that comes free what has waited longest; of that device something may be due that the
/// step has not come to, and it is done first.
@Suite("What waits longest is of a device with something due", .timeLimit(.minutes(15)))
struct DueInBetweenTests {
    /// Goes on to a later moment in steps of so many devices.
    private static func pass(_ milliseconds: Int64, _ rig: DispatchRig, devicesMax: Int) {
        rig.rig.pass(milliseconds)
        while !rig.dispatcher.advance(to: rig.rig.instant, devicesMax: devicesMax) {}
    }

    @Test("What is held from then on keeps nobody behind it waiting")
    func held() throws {
        let rig = TaskDispatchTests.rig([("usageWindow", 60)])
        rig.rig.register(3)
        rig.conditions(3) { $0.appState = .active }
        rig.conditions(3) { $0.appState = .background }
        rig.advance(by: 29_000)
        rig.subscribe(1, kinds: [], tasks: ["a"], sessions: ["s"])
        rig.finish(0, "s")
        #expect(TaskDispatchTests.given(rig) == [[1, 0]])
        rig.submit(3, "a")
        rig.submit(4, "a")
        // The session's wake expires after 30 s, and a second later device 3 has not been used for too long.
        Self.pass(32_000, rig, devicesMax: 1)
        #expect(TaskDispatchTests.given(rig) == [[1, 4]])
        #expect(rig.engine.tasks(of: rig.rig.index(3)).count == 1)
    }

    @Test("A stream on which the third wake in a row expires of it gets nothing more")
    func stalled() throws {
        let rig = TaskDispatchTests.rig()
        rig.subscribe(1, slots: 4, tasks: ["a"], sessions: ["s"])
        rig.push(0)
        rig.push(1)
        rig.advance(by: 1)
        rig.finish(2, "s")
        rig.submit(3, "a", .processing([]))
        let wakes = rig.takeDeliveries()
        #expect(wakes.count == 4)
        rig.submit(2, "a", .processing([]))
        rig.advance(by: 1)
        rig.push(4)
        Self.pass(30_000, rig, devicesMax: 2)
        #expect(rig.output.expirations.count == 3)
        #expect(TaskDispatchTests.given(rig).isEmpty)
        rig.report(.newData, try #require(wakes.first).wake)
        #expect(TaskDispatchTests.given(rig) == [[1, 2], [1, 4]])
    }

    @Test("A stream that stalls of it leaves what has just come to wait to another that is free")
    func stalledForAnother() throws {
        let rig = TaskDispatchTests.rig([("launchInterval", 30)])
        rig.subscribe(1, slots: 4, tasks: ["b"], sessions: ["s"])
        rig.subscribe(2, slots: 9, kinds: [], sessions: ["s"])
        rig.finish(5, "s")
        rig.finish(6, "s")
        let first = rig.takeDeliveries()
        #expect(first.map(\.stream.number) == [1, 2])
        for delivery in first { rig.report(.success, delivery.wake) }
        rig.finish(5, "s")
        rig.advance(by: 1)
        rig.push(0)
        rig.push(1)
        rig.advance(by: 1)
        rig.finish(2, "s")
        rig.finish(7, "s")
        rig.push(3)
        let wakes = rig.takeDeliveries()
        #expect(wakes.map(\.stream.number) == [1, 1, 1, 2, 1])
        _ = rig.dispatcher.extend(try #require(wakes.last).wake, by: 200_000)
        rig.report(.success, wakes[3].wake)
        rig.submit(2, "b", .processing([]))
        // Device 5 may launch again, and two wakes of the first stream expire; the third is of device 2.
        Self.pass(30_000, rig, devicesMax: 3)
        #expect(rig.output.expirations.count == 3)
        #expect(TaskDispatchTests.given(rig) == [[2, 5]])
    }
}

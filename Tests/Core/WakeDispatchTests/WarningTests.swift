import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Workers are warned before the deadlines of their wakes", .timeLimit(.minutes(15)))
struct WarningTests {
    private static let stream = DispatchRig.address(1)

    /// Returns a rig with one wake in flight on stream 1, which has 30 seconds.
    private static func launched(_ parameters: [(PolicyParameter, Double)] = []) -> (DispatchRig, WakeID) {
        let rig = DispatchRig(EngineRig.open(parameters))
        rig.subscribe(1)
        rig.push(1)
        guard let wake = rig.takeDeliveries().first?.wake else { preconditionFailure("nothing was launched") }
        return (rig, wake)
    }

    /// Returns the time left for each wake whose worker was warned since the last call.
    private static func timesLeft(_ rig: DispatchRig) -> [Int64] { rig.output.takeWarnings().map(\.timeLeft) }

    @Test("A warning is a device's next due time, and changes nothing else that a store keeps")
    func moment() throws {
        let (rig, wake) = Self.launched()
        let deadline = rig.rig.instant + 30_000
        #expect(rig.engine.nextDue == rig.rig.instant + 25_000)
        rig.advance(by: 24_999)
        #expect(rig.output.takeWarnings().isEmpty)
        _ = rig.engine.takeStep()
        rig.advance(by: 1)
        let warnings = rig.output.takeWarnings()
        let warning = try #require(warnings.first)
        #expect((warning.wake, warning.stream) == (wake, Self.stream))
        #expect((warning.deadline, warning.timeLeft) == (deadline, 5000))
        #expect(warnings.count == 1 && rig.output.take().isEmpty)
        #expect(!rig.engine.hasChanges && rig.engine.nextDue == deadline)
        rig.advance(by: 4_999)
        #expect(rig.report(.failed, wake) == .ended)
        #expect(rig.output.takeWarnings().isEmpty)
    }

    @Test("A push or report that arrives before a bounded step reaches the device is handled after the warning")
    func unseen() {
        let (rig, wake) = Self.launched()
        rig.rig.pass(26_000)
        _ = rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 0)
        #expect(rig.output.takeWarnings().isEmpty)
        rig.push(1)
        #expect(Self.timesLeft(rig) == [4000])
        rig.rig.pass(3_999)
        _ = rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 0)
        #expect(rig.report(.newData, wake) == .ended)
        #expect(Self.timesLeft(rig).isEmpty)
    }

    @Test("No warning is sent for a wake that ends at the same time, or whose stream has ended")
    func ended() {
        let (rig, wake) = Self.launched()
        rig.rig.pass(25_000)
        _ = rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 0)
        #expect(rig.report(.noData, wake) == .ended)
        rig.advance(by: 0)
        #expect(rig.output.takeWarnings().isEmpty)
        let (other, _) = Self.launched()
        other.rig.pass(25_000)
        other.endStream(1)
        other.advance(by: 0)
        #expect(other.output.takeWarnings().isEmpty)
    }

    @Test("A pending push expires at its time, even if that is the time of a warning")
    func pendingExpires() {
        let (rig, _) = Self.launched()
        rig.push(1, .considerate, .at(rig.rig.instant + 25_000))
        rig.advance(by: 25_000)
        #expect(Self.timesLeft(rig) == [5000])
        #expect(rig.engine.totals.discarded[.expired] == 1)
    }

    @Test("A window that is shorter than twice the lead is halved", arguments: [(8.0, 4000), (0.01, 5), (0.001, 0)])
    func short(window: Double, timeLeft: Int64) {
        let (rig, _) = Self.launched([(.executionWindow, window)])
        for _ in 0..<Int(window * 1000) { rig.advance(by: 1) }
        #expect(Self.timesLeft(rig) == (timeLeft > 0 ? [timeLeft] : []))
        #expect(rig.output.expirations.count == 1)
    }

    @Test("A device whose worker is warned during a policy change is examined, too")
    func judged() throws {
        let rig = TaskDispatchTests.rig()
        rig.subscribe(1, slots: 9, tasks: ["a", "b"])
        rig.submit(1, "a", .processing([]))
        rig.report(.success, try #require(rig.takeDeliveries().first?.wake))
        rig.submit(1, "b", .processing([]))
        rig.push(1)
        try #require(rig.takeDeliveries().map(\.kind) == [.push])
        rig.rig.pass(25_000)
        _ = rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 0)
        rig.engine.reconfigure(EngineRig.openToTasks([(.processingInterval, 10)]))
        rig.conditions(1) { $0.batteryLevel = 0.5 }
        _ = rig.dispatcher.snapshot(rig.rig.index(1))
        #expect(Self.timesLeft(rig) == [5000])
        #expect(rig.takeDeliveries().map(\.task?.name) == ["b"])
    }

    @Test("Work that becomes eligible at the time of a warning is launched")
    func launches() throws {
        let rig = TaskDispatchTests.rig([(.processingWindow, 40), (.refreshFlex, 0)])
        rig.subscribe(1, slots: 9, tasks: ["a", "b"])
        rig.submit(1, "a", .processing([]))
        rig.submit(1, "b", earliestBegin: rig.rig.instant + 35_000)
        try #require(rig.takeDeliveries().map(\.kind) == [.processing])
        rig.advance(by: 35_000)
        #expect(Self.timesLeft(rig) == [5000])
        #expect(rig.takeDeliveries().map(\.kind) == [.appRefresh])
        rig.advance(by: 25_000)
        #expect(Self.timesLeft(rig) == [5000])
    }

    @Test("Each lane of a device has its warnings")
    func lanes() throws {
        let rig = TaskDispatchTests.rig([(.processingWindow, 40)])
        rig.subscribe(1, slots: 9, tasks: ["a"])
        rig.rig.register(1)
        rig.submit(1, "a", .processing([]))
        rig.advance(by: 10_000)
        rig.push(1)
        let wakes = rig.takeDeliveries().map(\.wake)
        try #require(wakes.count == 2)
        rig.advance(by: 25_000)
        let warnings = rig.output.takeWarnings()
        #expect(Set(warnings.map(\.wake)) == Set(wakes) && warnings.map(\.timeLeft) == [5000, 5000])
        rig.report(.success, wakes[0])
        rig.advance(by: 5000)
        #expect(rig.output.expirations == [wakes[1]] && rig.output.takeWarnings().isEmpty)
    }
}

import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("How wakes of background tasks end", .timeLimit(.minutes(15)))
struct TaskWakeTests {
    private static let stream = DispatchRig.address(1)

    private static func ends(_ rig: DispatchRig, _ wake: WakeID) -> [RecordingOutput.Event] {
        rig.output.take().filter {
            switch $0 {
            case .expired(wake, _, _), .released(wake, _): true
            default: false
            }
        }
    }

    @Test("A task lost while its stream is open launches again, and its worker is notified if it had the task")
    func lost() throws {
        let rig = TaskDispatchTests.rig()
        rig.subscribe(1, slots: 9, tasks: ["a"])
        rig.submit(1, "a", .processing([]))
        let wake = try #require(rig.takeDeliveries().first).wake
        rig.dispatcher.lose(wake, on: Self.stream, takingBackAttempt: false)
        let again = rig.output.deliveries
        #expect(again.map(\.task?.task.attempts) == [2])
        #expect(Self.ends(rig, wake) == [.expired(wake, Self.stream, .lost), .released(wake, Self.stream)])
        let second = try #require(again.first).wake
        rig.dispatcher.lose(second, on: Self.stream, takingBackAttempt: true)
        #expect(rig.output.deliveries.map(\.task?.task.attempts) == [2])
        #expect(Self.ends(rig, second) == [.released(second, Self.stream)])
        // For a push, only its release is reported.
        rig.push(2)
        let push = try #require(rig.takeDeliveries().first).wake
        rig.dispatcher.lose(push, on: Self.stream, takingBackAttempt: false)
        #expect(Self.ends(rig, push) == [.released(push, Self.stream)])
    }

    @Test("Three wakes of the short lane in a row stall a stream, tasks of minutes do not; any answer ends it")
    func stalls() {
        let rig = TaskDispatchTests.rig()
        rig.subscribe(1, slots: 20, tasks: ["a"], sessions: ["s"])
        for device in 0..<5 { rig.submit(device, "a", .processing([])) }
        rig.advance(by: 600_000)
        #expect(rig.takeDeliveries().count == 5)
        #expect(rig.dispatcher.streams(countMax: 9).map(\.state) == [.free])
        rig.submit(10, "a")
        rig.finish(11, "s")
        rig.push(12)
        let short = rig.takeDeliveries()
        #expect(short.map(\.kind) == [.appRefresh, .urlSession, .push])
        rig.advance(by: 30_000)
        #expect(rig.dispatcher.streams(countMax: 9).map(\.state) == [.stalled])
        _ = rig.output.take()
        #expect(rig.submit(13, "a", .processing([]))?.held == .worker)
        guard let first = short.first?.wake else { return }
        #expect(rig.report(.newData, first) == .otherKind)
        #expect(rig.takeDeliveries().isEmpty)
        #expect(rig.report(.success, first) == .endedOtherwise(.task(.appRefresh, .expired)))
        #expect(rig.takeDeliveries().contains { $0.token == EngineRig.token(13) })
    }
}

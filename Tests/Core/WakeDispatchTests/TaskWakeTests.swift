import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("How wakes of background tasks end", .timeLimit(.minutes(15)))
struct TaskWakeTests {
    private static let stream = DispatchRig.address(1)

    /// Returns a rig with one task of this kind in flight on stream 1, and its wake.
    private static func running(_ kind: TaskSubmission.Kind, isActive: Bool = false) -> (DispatchRig, WakeID) {
        let rig = TaskDispatchTests.rig()
        rig.subscribe(1, slots: 9, tasks: ["a", "b"])
        rig.rig.register(1)
        if isActive { rig.conditions(1) { $0.appState = .active } }
        rig.submit(1, "a", kind)
        guard let wake = rig.takeDeliveries().first?.wake else { preconditionFailure("nothing was launched") }
        return (rig, wake)
    }

    private static func ends(_ rig: DispatchRig, _ wake: WakeID) -> [RecordingOutput.Event] {
        rig.output.take().filter {
            switch $0 {
            case .expired(wake, _, _), .released(wake, _): true
            default: false
            }
        }
    }

    private static func expired(_ wake: WakeID, _ reason: ExpirationReason) -> [RecordingOutput.Event] {
        [.expired(wake, Self.stream, reason), .released(wake, Self.stream)]
    }

    @Test("A refresh and a processing task expire at their deadlines, a continued one when it does not advance")
    func deadlines() {
        let (refresh, one) = Self.running(.appRefresh)
        refresh.advance(by: 30_000)
        #expect(Self.ends(refresh, one) == Self.expired(one, .deadline))
        let (processing, two) = Self.running(.processing([]))
        processing.advance(by: 599_999)
        #expect(Self.ends(processing, two).isEmpty)
        processing.advance(by: 1)
        #expect(Self.ends(processing, two) == Self.expired(two, .deadline))
        let (continued, three) = Self.running(.continued(.queue), isActive: true)
        continued.advance(by: 59_999)
        let progress = TaskProgress(completed: 1, total: 9)
        #expect(continued.dispatcher.progress(progress, wake: three) == .lasts(continued.rig.instant + 60_000))
        continued.advance(by: 59_999)
        #expect(continued.dispatcher.progress(progress, wake: three) == .lasts(continued.rig.instant + 1))
        continued.advance(by: 1)
        #expect(Self.ends(continued, three) == Self.expired(three, .progress))
        #expect(continued.dispatcher.progress(progress, wake: three) == .ended(.task(.continued, .expired)))
        #expect(continued.dispatcher.progress(progress, wake: WakeID(random: (1, 1))) == .unknown)
        #expect(continued.report(.success, three) == .endedOtherwise(.task(.continued, .expired)))
    }

    @Test("Cancelling all tasks leaves a running task that is not continued")
    func cancelAll() {
        let (other, four) = Self.running(.processing([]))
        other.dispatcher.cancelTask(nil, other.rig.index(1))
        #expect(Self.ends(other, four).isEmpty)
        #expect(other.report(.success, four) == .ended)
        #expect(Self.ends(other, four) == [.released(four, Self.stream)])
    }

    @Test("A task lost while its stream is open launches again, and its worker is notified if it had the task")
    func lost() {
        let (rig, wake) = Self.running(.processing([]))
        rig.dispatcher.lose(wake, on: Self.stream, takingBackAttempt: false)
        let again = rig.output.deliveries
        #expect(again.map(\.task?.task.attempts) == [2])
        #expect(Self.ends(rig, wake) == Self.expired(wake, .lost))
        guard let second = again.first?.wake else { return }
        rig.dispatcher.lose(second, on: Self.stream, takingBackAttempt: true)
        #expect(rig.output.deliveries.map(\.task?.task.attempts) == [2])
        #expect(Self.ends(rig, second) == [.released(second, Self.stream)])
        // For a push, only its release is reported.
        rig.push(2)
        guard let push = rig.takeDeliveries().first?.wake else { return }
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

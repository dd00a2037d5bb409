import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Streams of background tasks", .timeLimit(.minutes(15)))
struct TaskDispatchTests {
    static func rig(_ parameters: [(PolicyParameter, Double)] = [], workPerStepMax: Int = 4096) -> DispatchRig {
        DispatchRig(EngineRig.openToTasks(parameters), workPerStepMax: workPerStepMax)
    }

    /// Returns the deliveries since the last call, as pairs of stream and device.
    static func given(_ rig: DispatchRig) -> [[Int]] {
        rig.takeDeliveries().map { delivery in
            [delivery.stream.number, (0..<1000).first { EngineRig.token($0) == delivery.token } ?? -1]
        }
    }

    @Test(
        "Streams that accept a task take turns, whatever patterns they use",
        arguments: [
            [["a.b.c", "z"], ["a.*"], ["a.*", "a.b.*", "a.b.c"]],
            [["a.*"], ["a.*"], ["a.*"]],
        ]
    )
    func turns(patterns: [[String]]) {
        let rig = Self.rig()
        for (index, tasks) in patterns.enumerated() { rig.subscribe(index + 1, slots: 100, kinds: [], tasks: tasks) }
        var counts = [0, 0, 0, 0]
        for device in 0..<60 {
            rig.submit(device, "a.b.c")
            for delivery in rig.takeDeliveries() {
                counts[delivery.stream.number] += 1
                if device % 3 == 0 { rig.report(.success, delivery.wake) }
            }
            #expect((counts[1...].max() ?? 0) - (counts[1...].min() ?? 0) <= 1)
        }
        #expect(counts == [0, 20, 20, 20])
    }

    @Test("A stream that names devices gets pending work from each lane of each device in rounds")
    func namedLanes() {
        let rig = Self.rig()
        for device in [1, 2] {
            rig.push(device)
            rig.submit(device, "p", .processing([]))
        }
        rig.subscribe(1, slots: 3, tasks: ["p"], devices: [1, 2])
        #expect(Self.given(rig) == [[1, 1], [1, 2], [1, 1]])
        rig.dispatcher.slotsChanged(DispatchRig.address(1), to: 4)
        #expect(Self.given(rig) == [[1, 2]])
    }
}

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
}

@Suite("The order of work for a free stream", .timeLimit(.minutes(15)))
struct TaskFairnessTests {
    @Test("Replaced, cancelled and removed tasks lose their place, and a new submission goes to the end")
    func stale() {
        let rig = TaskDispatchTests.rig()
        for device in 0..<5 { rig.submit(device, "a") }
        rig.dispatcher.cancelTask("a", rig.rig.index(0))
        rig.submit(0, "a")
        rig.submit(1, "a")
        rig.dispatcher.unregister(rig.rig.index(2))
        rig.submit(2, "a", topic: 1)
        rig.conditions(3) { $0.thermalState = .critical }
        rig.subscribe(1, slots: 9, kinds: [], tasks: ["a"])
        #expect(TaskDispatchTests.given(rig).map { $0[1] } == [4, 0, 1])
        rig.conditions(3) { $0.thermalState = .nominal }
        #expect(TaskDispatchTests.given(rig).map { $0[1] } == [3])
        rig.subscribe(2, topic: 1, slots: 9, kinds: [], tasks: ["a"])
        #expect(TaskDispatchTests.given(rig) == [[2, 2]])
    }

    @Test("Tasks that are submitted and cancelled without a worker use only as much memory as those still waiting")
    func memory() throws {
        let rig = TaskDispatchTests.rig()
        rig.submit(0, "first")
        let topic = try #require(EngineRig.topicName(0).withByteView { rig.engine.findTopic($0) })
        for round in 0..<5000 {
            rig.submit(1 + round % 7, "name.\(round)")
            if round >= 20 { rig.dispatcher.cancelTask("name.\(round - 20)", rig.rig.index(1 + (round - 20) % 7)) }
            #expect(rig.dispatcher.waitingTaskCount(topic) <= 64)
        }
        rig.subscribe(1, slots: 99, kinds: [], tasks: ["first", "name.*"])
        #expect(TaskDispatchTests.given(rig).first == [1, 0])
        #expect(rig.dispatcher.waitingTaskCount(topic) <= 7)
    }

    @Test("Streams that come and go with new patterns leave nothing to catch up with")
    func churn() {
        let rig = TaskDispatchTests.rig()
        for device in 0..<2000 { rig.submit(device, "a.\(device % 100)") }
        for round in 0..<300 {
            let patterns = (0..<64).map { "b.\(round).\($0).*" } + ["a.\(round).x"]
            rig.subscribe(1, kinds: [], tasks: patterns)
            #expect(!rig.dispatcher.isBehind)
            rig.endStream(1)
        }
        #expect(rig.takeDeliveries().isEmpty)
        rig.subscribe(2, slots: 3, kinds: [], tasks: ["a.*"])
        rig.subscribe(3, slots: 2, kinds: [], tasks: ["a.7"])
        #expect(TaskDispatchTests.given(rig).map { $0[1] } == [0, 1, 2, 7, 107])
    }

    @Test("Unsatisfied needs cost one search of the streams, until a suitable stream arrives or becomes free")
    func unmetNeeds() throws {
        let rig = TaskDispatchTests.rig()
        for stream in 0..<50 {
            rig.subscribe(stream, kinds: [], tasks: ["a"], resources: stream < 20 ? ["gpu", "disk"] : ["npu", "disk"])
        }
        let topic = try #require(EngineRig.topicName(0).withByteView { rig.engine.findTopic($0) })
        for device in 0..<100 {
            rig.rig.register(device)
            rig.conditions(device) { $0.appState = .active }
        }
        for device in 0..<100 { rig.submit(device, "a", .continued(.queue), resources: ["gpu", "npu"]) }
        #expect(rig.dispatcher.searchedStreamCount(topic) == 20)
        #expect(rig.takeDeliveries().isEmpty)
        rig.subscribe(50, kinds: [], tasks: ["a"], resources: ["npu", "gpu", "disk"])
        let first = try #require(rig.takeDeliveries().first)
        #expect(first.token == EngineRig.token(0) && first.stream == DispatchRig.address(50))
        rig.submit(0, "a", .continued(.queue), resources: ["gpu", "npu"])
        let searched = rig.dispatcher.searchedStreamCount(topic)
        for device in 1..<100 { rig.submit(device, "a", .continued(.queue), resources: ["gpu", "npu"]) }
        #expect(rig.dispatcher.searchedStreamCount(topic) == searched)
        rig.report(TaskResult.success, first.wake)
        #expect(rig.takeDeliveries().map(\.stream) == [DispatchRig.address(50)])
    }

    @Test("A stream that becomes free by a changed byte limit takes tasks that need several resources")
    func unmetByBytes() throws {
        let rig = TaskDispatchTests.rig()
        rig.rig.register(1)
        rig.conditions(1) { $0.appState = .active }
        rig.subscribe(2, kinds: [], tasks: ["a"], resources: ["gpu", "disk"])
        rig.subscribe(3, kinds: [], tasks: ["a"], resources: ["npu", "disk"])
        rig.subscribe(1, slots: 2, kinds: [], tasks: ["a", "b"], resources: ["gpu", "npu"])
        rig.submit(1, "b", .continued(.queue), resources: ["gpu", "npu"])
        let held = try #require(rig.takeDeliveries().first)
        rig.dispatcher.wakeBytesPerStreamChanged(to: 1)
        rig.rig.register(2)
        rig.conditions(2) { $0.appState = .active }
        rig.submit(2, "a", .continued(.queue), resources: ["gpu", "npu"])
        #expect(rig.takeDeliveries().isEmpty)
        rig.report(TaskResult.success, held.wake)
        #expect(rig.takeDeliveries().map(\.token) == [EngineRig.token(2)])
    }

    @Test("A crowd that has ceased to wait is passed over in steps")
    func crowdThatLeft() {
        let rig = TaskDispatchTests.rig(workPerStepMax: 16)
        for device in 0..<100 { rig.submit(device, "a") }
        for device in 0..<99 { rig.conditions(device) { $0.thermalState = .critical } }
        rig.subscribe(1, slots: 1000, kinds: [], tasks: ["a"])
        rig.advance(by: 1)
        #expect(TaskDispatchTests.given(rig) == [[1, 99]])
    }
}

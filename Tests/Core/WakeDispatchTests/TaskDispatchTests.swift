import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Streams of background tasks", .timeLimit(.minutes(15)))
struct TaskDispatchTests {
    static func rig(_ parameters: [(String, Double)] = [], workPerStepMax: Int = 4096) -> DispatchRig {
        DispatchRig(EngineRig.openToTasks(parameters), workPerStepMax: workPerStepMax)
    }

    /// Returns the deliveries since the last call, as pairs of stream and device.
    static func given(_ rig: DispatchRig) -> [[Int]] {
        rig.takeDeliveries().map { delivery in
            [delivery.stream.number, (0..<1000).first { EngineRig.token($0) == delivery.token } ?? -1]
        }
    }

    @Test(
        "A plain pattern matches only its identifier; a wildcard matches every longer identifier with its prefix",
        arguments: [
            ("a.b", "a.b", true), ("a.b", "a.b.c", false), ("a.b", "a", false), ("a.*", "a.b", true),
            ("a.*", "a.b.c", true), ("a.*", "a", false), ("a.*", "a.", false), ("a.*", "ab.c", false),
            ("a.b.*", "a.b.c.d", true), ("a.b.*", "a.c", false), ("a.*", "a..", true), (".*", ".x", true),
        ]
    )
    func patterns(pattern: String, name: String, isTaken: Bool) {
        let rig = Self.rig()
        rig.subscribe(1, kinds: [], tasks: [pattern])
        #expect(rig.submit(1, name)?.disposition == (isTaken ? .launched : .scheduled))
        #expect(rig.takeDeliveries().map(\.task?.name) == (isTaken ? [name] : []))
        // A task that precedes its stream is found, too, and sessions follow the same rule.
        let other = Self.rig()
        #expect(other.submit(1, name)?.held == .worker)
        other.finish(2, name)
        other.subscribe(1, kinds: [], tasks: [pattern])
        #expect(other.takeDeliveries().map(\.kind) == (isTaken ? [.appRefresh] : []))
        other.subscribe(2, kinds: [], sessions: [pattern])
        #expect(other.takeDeliveries().map(\.kind) == (isTaken ? [.urlSession] : []))
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

    @Test("Of the streams that accept a task, one that names the device with the fewest wakes goes first")
    func namedFirst() {
        let rig = Self.rig()
        rig.subscribe(1, slots: 9, kinds: [], tasks: ["a"])
        rig.subscribe(2, slots: 2, kinds: [], tasks: ["a", "b"], devices: [1, 2, 3])
        rig.subscribe(3, slots: 2, kinds: [], tasks: ["b"], devices: [1, 2, 3])
        rig.subscribe(4, slots: 9, devices: [1, 2, 3])
        rig.submit(1, "a")
        #expect(Self.given(rig) == [[2, 1]])
        rig.submit(2, "b")
        #expect(Self.given(rig) == [[3, 2]])
        rig.submit(3, "a")
        #expect(Self.given(rig) == [[2, 3]])
        rig.submit(1, "a", .processing([]))
        #expect(Self.given(rig) == [[1, 1]])
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

    @Test("A task goes only to a stream with all resources it needs, and a task without one blocks nothing")
    func resources() {
        let rig = Self.rig()
        for device in 0..<5 {
            rig.rig.register(device)
            rig.conditions(device) { $0.appState = .active }
        }
        rig.submit(0, "a", .continued(.queue), resources: ["npu", "gpu"])
        rig.submit(1, "a", .continued(.queue), resources: ["gpu"])
        rig.submit(2, "a", .continued(.queue))
        rig.subscribe(1, slots: 9, kinds: [], tasks: ["a"], resources: ["disk"])
        #expect(Self.given(rig) == [[1, 2]])
        rig.subscribe(2, slots: 9, kinds: [], tasks: ["a"], resources: ["gpu", "gpu"])
        #expect(Self.given(rig) == [[2, 1]])
        #expect(rig.submit(3, "a", .continued(.fail), resources: ["npu"]) == nil)
        rig.subscribe(3, slots: 9, kinds: [], tasks: ["a"], resources: ["npu", "disk", "gpu"])
        #expect(Self.given(rig) == [[3, 0]])
        #expect(rig.submit(3, "a", .continued(.fail), resources: ["npu"])?.disposition == .launched)
        #expect(rig.submit(4, "a", .continued(.fail), resources: ["disk", "npu"])?.disposition == .launched)
        #expect(Self.given(rig) == [[3, 3], [3, 4]])
        let topic = EngineRig.topicName(0).withByteView { rig.engine.findTopic($0) }
        guard let topic else { return }
        #expect(rig.dispatcher.resources(topic) == ["disk", "gpu", "npu"])
        rig.endStream(3)
        #expect(rig.dispatcher.resources(topic) == ["disk", "gpu"])
        #expect(rig.dispatcher.resources(TopicIndex(rawValue: 99)).isEmpty)
    }

    @Test("A draining gateway launches neither tasks nor sessions")
    func drain() {
        let rig = Self.rig()
        rig.subscribe(1, slots: 9, tasks: ["a"])
        rig.dispatcher.drain()
        rig.submit(3, "a")
        rig.advance(by: 1)
        rig.finish(3, "s")
        rig.subscribe(3, slots: 9, tasks: ["a"], sessions: ["s"], devices: [3])
        #expect(Self.given(rig).isEmpty)
        #expect(rig.dispatcher.simulateLaunch(rig.rig.index(3), identifier: "a") == .noWorker)
    }
}

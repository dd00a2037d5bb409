import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The order of work for a free stream", .timeLimit(.minutes(15)))
struct TaskFairnessTests {
    @Test("Pushes and tasks of different devices launch in order of arrival")
    func pushesAndTasks() {
        let rig = TaskDispatchTests.rig()
        for device in 0..<8 {
            if device % 2 == 0 { rig.push(device) } else { rig.submit(device, "a") }
            rig.rig.pass(10)
            _ = rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 100)
        }
        rig.subscribe(1, slots: 5, tasks: ["a"])
        #expect(TaskDispatchTests.given(rig).map { $0[1] } == [0, 1, 2, 3, 4])
        rig.subscribe(2, slots: 5)
        #expect(TaskDispatchTests.given(rig) == [[2, 6]])
        rig.subscribe(3, slots: 5, kinds: [], tasks: ["a"])
        #expect(TaskDispatchTests.given(rig) == [[3, 5], [3, 7]])
    }

    /// Uses devices in this order, one millisecond apart.
    private func use(_ devices: [Int], _ rig: DispatchRig) {
        for device in devices {
            rig.rig.register(device)
            rig.conditions(device) { $0.appState = .active }
            rig.conditions(device) { $0.appState = .background }
            rig.advance(by: 1)
        }
    }

    @Test("Devices that arrived within a second launch in the order of their last use, most recent first")
    func lastUse() {
        let rig = TaskDispatchTests.rig()
        self.use([3, 1, 2], rig)
        for device in 0..<6 {
            if device % 2 == 0 { rig.push(device) } else { rig.submit(device, "a") }
            rig.advance(by: 10)
        }
        rig.advance(by: 1000)
        // The most recently used device, one second later.
        self.use([6], rig)
        rig.submit(6, "a")
        rig.push(7)
        rig.subscribe(1, slots: 9, tasks: ["a"])
        #expect(TaskDispatchTests.given(rig).map { $0[1] } == [2, 1, 3, 0, 4, 5, 6, 7])
    }

    @Test("On one device the longest-waiting work launches first, also before a push of priority 10")
    func policyDecides() {
        let rig = TaskDispatchTests.rig()
        rig.submit(1, "a")
        rig.rig.pass(5)
        rig.push(1, .immediate)
        rig.subscribe(1, slots: 1, tasks: ["a"])
        #expect(rig.takeDeliveries().map(\.kind) == [.appRefresh])
        // A stream that takes only pushes gets the push, and the task blocks nothing.
        let other = TaskDispatchTests.rig()
        other.submit(1, "a")
        other.rig.pass(5)
        other.push(1, .immediate)
        other.push(2)
        other.subscribe(1, slots: 2)
        #expect(other.takeDeliveries().map(\.kind) == [.push, .push])
    }

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

    @Test("Many tasks launch in steps, in order of arrival")
    func crowd() {
        let rig = TaskDispatchTests.rig(workPerStepMax: 16)
        for device in 0..<100 { rig.submit(device, device % 2 == 0 ? "a" : "b") }
        rig.advance(by: 1)
        rig.subscribe(1, slots: 1000, kinds: [], tasks: ["a", "b"])
        var order = TaskDispatchTests.given(rig).map { $0[1] }
        #expect(order.count <= 16)
        var steps = 0
        while !rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 1000) {
            let more = TaskDispatchTests.given(rig).map { $0[1] }
            #expect(more.count <= 16)
            order += more
            steps += 1
        }
        order += TaskDispatchTests.given(rig).map { $0[1] }
        #expect(order == Array(0..<100) && steps >= 5)
        #expect(!rig.dispatcher.isBehind)
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

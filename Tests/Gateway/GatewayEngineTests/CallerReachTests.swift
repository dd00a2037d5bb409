import Access
import LaunchPolicy
import Testing
import WakeGateTestKit

@Suite("What the engine lets a caller reach", .timeLimit(.minutes(15)))
struct CallerReachTests {
    /// Device 1 is of topic 0 and has a wake in flight on stream 3, device 2 is of topic 1.
    private func rig() throws -> CoreRig {
        let rig = try CoreRig()
        try rig.ask(1...4) {
            $0.register(1, 1)
            $0.register(2, 2, topic: 1)
            $0.subscribe(3)
            $0.push(4, 1, .immediate)
        }
        try rig.waitForWakes(1)
        return rig
    }

    @Test("What is of another topic is not found, whatever is asked of it")
    func foreign() throws {
        let rig = try self.rig()
        defer { rig.stop() }
        let (caller, wake) = (try Caller.ofTopics([1]), try rig.lastWake())
        let answers = try rig.ask(10...19) {
            $0.caller = caller
            $0.explain(10, 1)
            $0.devicePushes(11, 1)
            $0.conditions(12, 1) { $0.charging = true }
            $0.simulateLaunch(13, 1)
            $0.simulateExpiration(14, 1)
            $0.unregister(15, 1)
            $0.report(16, wake, .newData)
            $0.extend(17, wake)
            $0.drainStream(18, 3)
            $0.register(19, 1, topic: 1)
        }
        #expect(answers.map(\.status) == Array(repeating: 404, count: 9) + [409], "\(answers)")
        let reasons = answers.map { $0.string("reason") }
        #expect(
            reasons == Array(repeating: "UnknownDevice", count: 6) + [
                "UnknownWake", "UnknownWake", "UnknownStream", "DeviceTokenNotForTopic",
            ]
        )
        let topics = try rig.ask(20) {
            $0.caller = caller
            $0.topics(20)
        }
        #expect(!topics.text.contains(EngineRig.topicName(0)) && topics.text.contains(EngineRig.topicName(1)))
    }

    @Test("What is of the caller's topics is")
    func own() throws {
        let rig = try self.rig()
        defer { rig.stop() }
        let (caller, wake) = (try Caller.ofTopics([0]), try rig.lastWake())
        let answers = try rig.ask(10...16) {
            $0.caller = caller
            $0.explain(10, 1)
            $0.devicePushes(11, 1)
            $0.conditions(12, 1) { $0.charging = true }
            $0.extend(13, wake)
            $0.report(14, wake, .newData)
            $0.drainStream(15, 3)
            $0.unregister(16, 1)
        }
        #expect(answers.map(\.status) == [200, 200, 200, 200, 204, 204, 204], "\(answers)")
    }
}

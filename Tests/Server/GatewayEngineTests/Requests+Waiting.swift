import Gateway
import WakeGateTestKit
import Wire

/// Requests of what operators do to what waits.
extension Requests {
    func pause(_ request: Int, topic: Int = 0) { self.pause(request, .pauseTopic, topic, true) }

    func resume(_ request: Int, topic: Int = 0) { self.pause(request, .resumeTopic, topic, false) }

    private func pause(_ request: Int, _ operation: Operation, _ topic: Int, _ isPaused: Bool) {
        let name = EngineRig.topicName(topic).withByteView { $0.array }
        self.ask(request, operation, .pauseTopic(topic: name, isPaused))
    }

    /// - `topic`: nil for the device's own.
    func testPush(_ request: Int, _ device: some RigDevice, topic: Int? = nil, refused reason: APNSReason? = nil) {
        var push = TestPush(
            Named(device.token),
            refused: reason,
            EngineRig.apnsID(UInt64(request)),
            topic: topic.map { EngineRig.topicName($0) }
        )
        push.payload = Array("{\"aps\":{\"content-available\":1},\"n\":\(request)}".utf8)
        push.wakes = true
        self.ask(request, .testPush, .testPush(push))
    }

    func pendingPush(_ request: Int, _ device: some RigDevice) {
        self.ask(request, .pendingPush, .pendingPush(Named(device.token)))
    }

    func dropPending(_ request: Int, _ device: some RigDevice) {
        self.ask(request, .dropPending, .cancelPending(Named(device.token)))
    }
}

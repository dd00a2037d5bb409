import Engine
import Policy
import WakeGateTestKit
import Wire

/// People pause and resume topics, and drop what waits.
extension DispatchSimulation {
    func actOnWaiting() {
        let topic = self.waiting.number(below: self.topicCount)
        switch self.waiting.number(below: 5) {
        case 0: self.setPaused(topic, true)
        case 1, 2: self.setPaused(topic, false)
        case 3: self.dropPending(self.waiting.number(below: self.deviceCount))
        default: self.simulateLaunch(self.waiting.number(below: self.deviceCount))
        }
    }

    func resumeEveryTopic() {
        for topic in 0..<self.topicCount { self.setPaused(topic, false) }
    }

    private func setPaused(_ number: Int, _ isPaused: Bool) {
        let name = EngineRig.topicName(number)
        guard let topic = name.withByteView({ self.rig.engine.findTopic($0) }) else { return }
        let wasPaused = self.models.checker.pausedTopics.contains(name)
        if self.rig.dispatcher.setPaused(topic, isPaused) != (isPaused != wasPaused) {
            self.fail("\(name) was paused: \(wasPaused), and is not any more as it was")
        }
        if isPaused {
            self.models.checker.pausedTopics.insert(name)
        } else {
            self.models.checker.pausedTopics.remove(name)
        }
        let launched = self.models.launched
        self.took()
        if wasPaused, !isPaused { self.coverage.launchesByResuming += Int(self.models.launched - launched) }
        self.check()
    }

    private func dropPending(_ device: Int) {
        guard let index = self.rig.rig.find(device) else { return }
        let token = self.tokens[device]
        // What is due of the device is done before it.
        _ = self.rig.dispatcher.snapshot(index)
        self.took()
        self.models.ledger.expire(token, at: self.now)
        let wasPending = self.rig.engine.snapshot(index).pendingID != nil
        if self.rig.dispatcher.cancelPending(index) != wasPending { self.fail("a drop is not of what was pending") }
        if wasPending { self.models.ledger.discarded(token, .cancelled) }
        self.took()
        self.check()
    }

    /// What a snapshot says of a pause.
    func verifyPause(_ token: DeviceToken, _ snapshot: DeviceSnapshot) {
        let isPaused = self.models.checker.pausedTopics.contains(snapshot.topic)
        if snapshot.isTopicPaused != isPaused { self.fail("\(snapshot.topic) is paused: \(isPaused), and not said so") }
        let isHeld = snapshot.held.first == .paused
        if isHeld != (isPaused && snapshot.state.pending != nil) { self.fail("the holds are \(snapshot.held)") }
        guard isHeld, snapshot.held.count == 1, snapshot.state.inFlight == nil,
            let priority = snapshot.state.pending?.priority,
            snapshot.state.eligibleAt(priority, snapshot.parameters) <= self.now
        else { return }
        if self.models.checker.couldTakeForced(token, topic: snapshot.topic) { self.coverage.heldBackByPause += 1 }
    }
}

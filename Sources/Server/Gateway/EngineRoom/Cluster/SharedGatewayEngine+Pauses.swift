import Engine
import Wire

/// Which topics are paused: all gateways know it by what the store keeps under the topics' names, before anybody is
/// answered.
extension SharedGatewayEngine {
    /// Somebody pauses or resumes a topic: the answer waits until that is durable.
    func pause(_ request: EngineRequest, _ name: [UInt8], _ isPaused: Bool) {
        let topic = name.withByteView { $0.string }
        let isKnown = name.withByteView { self.engine.findTopic($0) } != nil
        guard isKnown, request.caller.reaches(topic) else {
            return self.requests.perform(request, self.workspace)
        }
        guard self.pauses.count < CommandQueue.pushesMax else { return self.refuse(request) }
        self.pauses.append(request)
        self.keep(SharedValues.pause(topic), SharedValues.written(isPaused: isPaused))
    }

    /// A topic is paused, or is not, by whichever gateway; who asked for that here is answered.
    func pauseKept(_ topic: String, _ isPaused: Bool) {
        self.pausesKept[topic] = isPaused
        self.apply(topic, isPaused)
        let answered = self.pauses.filter { $0.wishesPause == (topic, isPaused) }
        self.pauses.removeAll { $0.wishesPause == (topic, isPaused) }
        for request in answered { self.requests.perform(request, self.workspace) }
    }

    /// Topics are known that were not: those among them that are paused are paused here, too.
    func applyPauses() {
        for (topic, isPaused) in self.pausesKept { self.apply(topic, isPaused) }
    }

    /// Refuses everybody who waits for a pause of a topic, or of any topic: it cannot be stored.
    func refusePauses(_ failure: StoreFailure, of topic: String? = nil) {
        let refused = self.pauses.filter { topic == nil || $0.wishesPause.topic == topic }
        self.pauses.removeAll { topic == nil || $0.wishesPause.topic == topic }
        for request in refused { self.stage.answer(request.reply, .refused(failure.refusal(failure.error))) }
    }

    private func apply(_ name: String, _ isPaused: Bool) {
        guard let topic = name.withByteView({ self.engine.findTopic($0) }),
            self.dispatcher.setPaused(topic, isPaused), !isPaused
        else { return }
        // What has waited is there to be claimed.
        self.claims.heard(topic)
    }
}

extension EngineRequest {
    /// The topic that is to be paused or resumed; an empty one where it is about something else.
    fileprivate var wishesPause: (topic: String, isPaused: Bool) {
        guard case .pause(let topic, let isPaused) = self.needs else { return ("", false) }
        return (topic.withByteView { $0.string }, isPaused)
    }
}

package import Wire

/// Workers' streams come and go.
extension Dispatcher {
    /// A worker subscribed.
    ///
    /// - Returns: the bound that was met, and the stream is then none; nil when it is one.
    package func subscribed(
        _ address: StreamAddress,
        topic name: ByteView,
        _ request: SubscriptionRequest
    ) -> EngineLimit? {
        if let limit = self.limitMet(topic: name, request) { return limit }
        self.streamEnded(address)
        let topic = self.engine.topic(name)
        self.freed.append(self.streams.insert(address, topic, request))
        self.flow()
        return nil
    }

    /// The bound that a subscription would go beyond; nil when there is room for it.
    package func limitMet(topic name: ByteView, _ request: SubscriptionRequest) -> EngineLimit? {
        guard self.engine.mayAddTopic(name) else { return .topicsMax }
        let streamsMax = self.engine.streamsPerDeviceMax
        guard streamsMax > 0, let topic = self.engine.findTopic(name) else { return nil }
        let isFull = request.devices.contains { self.streams.countNaming($0, topic) >= streamsMax }
        return isFull ? .streamsPerDeviceMax : nil
    }

    /// A worker's stream ended: the wakes it holds are lost.
    package func streamEnded(_ address: StreamAddress) {
        guard let subscription = self.streams[address] else { return }
        self.streams.remove(subscription)
        self.ended.append(subscription)
        self.flow()
    }

    /// The worker on a stream stops: the stream gets no new wake, and ends once it holds none.
    ///
    /// - `isAdmitted`: whether the caller reaches the stream's topic.
    /// - Returns: false when there is no such stream.
    package func streamDraining(_ address: StreamAddress, isAdmitted: (TopicIndex) -> Bool) -> Bool {
        guard let subscription = self.streams[address], isAdmitted(subscription.topic) else { return false }
        self.streams.drain(subscription)
        self.endIfDrained(subscription)
        return true
    }

    /// The worker's peer reads too slowly, or reads again.
    package func streamPaused(_ address: StreamAddress, _ isPaused: Bool) {
        guard let subscription = self.streams[address] else { return }
        self.streams.pause(subscription, isPaused)
        if !isPaused { self.freed.append(subscription) }
        self.flow()
    }

    /// A stream may hold more or fewer wakes from now on; it keeps those it has.
    package func slotsChanged(_ address: StreamAddress, to slots: Int) {
        guard let subscription = self.streams[address] else { return }
        self.streams.resize(subscription, to: slots)
        self.freed.append(subscription)
        self.flow()
    }

    /// Every stream may hold so many bytes of payloads from now on; it keeps those it has.
    package func wakeBytesPerStreamChanged(to bytesMax: Int) {
        self.streams.resizeAll(wakeBytesMax: bytesMax)
    }
}

// MARK: - Shutting down

extension Dispatcher {
    /// Nothing new is launched from now on; results are still taken.
    package func drain() {
        self.isDraining = true
    }
}

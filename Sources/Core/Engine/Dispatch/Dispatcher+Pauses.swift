/// What people do to what waits.
extension Dispatcher {
    /// Pauses or resumes a topic: nothing of one that is paused launches by itself. What is in flight goes on.
    ///
    /// - Returns: whether it was the other way before.
    @discardableResult
    package func setPaused(_ topic: TopicIndex, _ isPaused: Bool) -> Bool {
        let isChanged = self.engine.setPaused(topic, isPaused)
        guard isChanged, !isPaused else { return isChanged }
        let free = self.streams.all.filter { $0.topic == topic && $0.isFree }
        for stream in free.sorted(by: { $0.opened < $1.opened }) { self.freed.append(stream) }
        self.flow()
        return true
    }

    /// Discards the push that waits on a device; a wake in flight goes on.
    ///
    /// - Returns: whether one waited.
    package func cancelPending(_ device: DeviceIndex) -> Bool {
        self.catchUp(device)
        defer { self.flow() }
        return self.engine.cancelPending(device)
    }
}

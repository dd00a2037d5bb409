import Bytes
import LaunchPolicy

/// What the engine holds, and what it holds no more of.
extension EmbeddedEngine {
    /// Why no device may be added to the topic of this name; nil while there is room.
    func refusalOfNewcomer(topic name: ByteView) -> Refusal? {
        self.devices.count < self.configuration.devicesMax ? self.refusalOfMove(topic: name) : .tooManyDevices
    }

    /// Why no device that is there may be moved to the topic of this name; nil while there is room.
    func refusalOfMove(topic name: ByteView) -> Refusal? {
        guard let topic = self.topicNames.find(name) else {
            return self.topics.count < self.configuration.topicsMax ? nil : .tooManyTopics
        }
        let count = self.topics[Int(topic.rawValue)].deviceCount
        return count < self.configuration.devicesPerTopicMax ? nil : .tooManyDevicesOfTopic
    }

    /// Why there is no memory for this push to wait in; nil while there is. Changes nothing.
    ///
    /// One that takes the place of a push at least as large needs none.
    ///
    /// - `device`: nil for a token that is not registered yet.
    /// - `topic`: the device's; nil for one that is not known yet.
    package func memoryRefusal(_ push: IncomingPush, _ device: DeviceIndex?, _ topic: TopicIndex?) -> Refusal? {
        guard push.wakes else { return nil }
        let bytes = PushContent.byteCount(push)
        let topicBytes = topic.map { self.topics[Int($0.rawValue)].contentBytes } ?? 0
        let isTopicFull = topicBytes + bytes > self.configuration.pendingBytesPerTopicMax
        guard isTopicFull || self.contentBytes + bytes > self.configuration.pendingBytesMax else { return nil }
        if let pending = device.flatMap({ self.devices[$0].state.pending }),
            let content = PushContent(pending.handle), content.byteCount >= bytes
        {
            return nil
        }
        // Who takes more than a share of it is told so, also when others have taken the rest.
        return isTopicFull ? .noMemoryForTopic : .noMemory
    }

    /// The content of a push is held from now on.
    func hold(_ content: PushContent, _ topic: TopicIndex) {
        self.contentBytes += content.byteCount
        self.topics[Int(topic.rawValue)].contentBytes += content.byteCount
    }

    /// Nobody needs the content of a push any more.
    func letGo(_ content: PushContent, _ topic: TopicIndex) {
        self.contentBytes -= content.byteCount
        self.topics[Int(topic.rawValue)].contentBytes -= content.byteCount
        content.deallocate()
    }
}

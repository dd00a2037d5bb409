/// The memory of all pushes that wait or are in flight, counted for each topic and in all.
package struct ContentMemory: ~Copyable {
    /// The bytes of all topics together.
    package private(set) var bytes = 0
    /// By topic number.
    private var topicBytes: [Int] = []

    /// No pushes.
    package init() {}

    /// Counts for each of so many topics from now on.
    package mutating func grow(topicCount: Int) {
        while self.topicBytes.count < topicCount { self.topicBytes.append(0) }
    }

    /// Why there is no room for so many bytes more; nil while there is.
    ///
    /// - `topic`: nil for one that is not known yet, and has none.
    package func refusal(
        _ byteCount: Int,
        _ topic: TopicIndex?,
        bytesMax: Int,
        bytesPerTopicMax: Int
    ) -> Refusal? {
        let topicBytes = topic.map { self.topicBytes[Int($0.rawValue)] } ?? 0
        // Who takes more than a share of it is told so, also when others have taken the rest.
        if topicBytes + byteCount > bytesPerTopicMax { return .noMemoryForTopic }
        return self.bytes + byteCount > bytesMax ? .noMemory : nil
    }

    /// The content of a push of this topic is held from now on.
    package mutating func hold(_ content: PushContent, _ topic: TopicIndex) {
        let byteCount = content.byteCount
        self.bytes += byteCount
        self.topicBytes[Int(topic.rawValue)] += byteCount
    }

    /// The bytes of one topic.
    package func bytes(_ topic: TopicIndex) -> Int { self.topicBytes[Int(topic.rawValue)] }

    /// Goes on from so many bytes of one topic, which somebody else has counted.
    package mutating func set(_ topic: TopicIndex, to bytes: Int) { self.topicBytes[Int(topic.rawValue)] = bytes }

    /// Goes on from so many bytes of all topics together, which somebody else has counted.
    package mutating func set(to bytes: Int) { self.bytes = bytes }

    /// Frees the content of a push of this topic, which nobody needs any more.
    package mutating func letGo(_ content: PushContent, _ topic: TopicIndex) {
        let byteCount = content.byteCount
        self.bytes -= byteCount
        self.topicBytes[Int(topic.rawValue)] -= byteCount
        content.deallocate()
    }
}

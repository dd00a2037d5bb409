/// The memory of what requests and sessions are named and entitled, and of the ids of session events, counted for each
/// topic and in all.
struct TaskMemory: ~Copyable {
    /// The bytes of all topics together.
    private(set) var bytes = 0
    /// By topic number.
    private var topicBytes: [Int] = []

    /// Counts for each of so many topics from now on.
    mutating func grow(topicCount: Int) {
        while self.topicBytes.count < topicCount { self.topicBytes.append(0) }
    }

    /// The bytes of one topic.
    func bytes(_ topic: TopicIndex) -> Int { self.topicBytes[Int(topic.rawValue)] }

    /// Goes on from so many bytes of one topic, which somebody else has counted.
    mutating func set(_ topic: TopicIndex, to bytes: Int) { self.topicBytes[Int(topic.rawValue)] = bytes }

    /// Goes on from so many bytes of all topics together, which somebody else has counted.
    mutating func set(to bytes: Int) { self.bytes = bytes }

    mutating func change(by bytes: Int, _ topic: TopicIndex) {
        self.bytes += bytes
        self.topicBytes[Int(topic.rawValue)] += bytes
    }
}

import Policy
package import Wire

extension EmbeddedEngine {
    /// The topic of this name, if any device, subscription or configuration ever named it.
    package func findTopic(_ name: ByteView) -> TopicIndex? { self.topics.find(name) }

    /// The topic of this name, made when it is new.
    package func topic(_ name: ByteView) -> TopicIndex {
        if let topic = self.topics.find(name) { return topic }
        let topic = self.topics.insert(name, self.configuration)
        self.makeRoomForTopics()
        return topic
    }

    /// Has place for each topic wherever something is kept by topic.
    func makeRoomForTopics() {
        self.ready.grow(topicCount: self.topics.count)
        self.memory.grow(topicCount: self.topics.count)
        self.taskMemory.grow(topicCount: self.topics.count)
    }

    /// Whether a subscription may make the topic of this name.
    package func mayAddTopic(_ name: ByteView) -> Bool {
        self.topics.find(name) != nil || self.topics.count < self.configuration.topicsMax
    }

    /// The most streams that may name one device; 0 is no limit.
    package var streamsPerDeviceMax: Int { self.configuration.streamsPerDeviceMax }

    package var topicCount: Int { self.topics.count }

    /// How long the device has waited that waits longest for a worker, or for the engine itself, in milliseconds; 0
    /// when nothing is due. What a pause keeps back is not due.
    package var oldestDueMilliseconds: Int64 {
        // What was due before everything, as a first launch, is due since it can be told.
        let late = self.schedule.first.map { $0 == .distantPast ? 0 : self.now.milliseconds - $0.milliseconds } ?? 0
        let waits = self.ready.longestMilliseconds(at: self.now, in: self.devices) { topic in
            self.isPaused(topic) ? nil : self.lateness(since: .distantPast, topic)
        }
        return max(0, late, waits ?? 0)
    }

    /// Every topic, in the order of their making.
    package var topicSnapshots: [TopicSnapshot] {
        self.topics.indices.map { self.snapshot($0) }
    }

    /// The topics with the most pushes when there are more than `countMax`, and otherwise all, as they were made.
    package func topicSnapshots(countMax: Int) -> [TopicSnapshot] {
        guard self.topics.count > countMax else { return self.topicSnapshots }
        return self.topics.indices.most(countMax) { Int(clamping: self.topics.books($0).accepted) }.map {
            self.snapshot($0)
        }
    }

    package func snapshot(_ topic: TopicIndex) -> TopicSnapshot {
        TopicSnapshot(
            index: topic,
            name: self.topics.name(topic),
            books: self.topics.books(topic),
            isPaused: self.isPaused(topic)
        )
    }
}

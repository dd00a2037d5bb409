package import Policy

/// What whoever drives the engine looks at.
extension EmbeddedEngine {
    /// The device whose push has waited longest for a slot of this topic.
    package func longestReady(_ topic: TopicIndex) -> DeviceIndex? { self.ready.first(topic) }

    /// The device's conditions.
    package func conditions(of device: DeviceIndex) -> Conditions { self.devices[device].state.conditions }

    /// The name of a topic.
    package func topicName(_ topic: TopicIndex) -> String { self.topics.name(topic) }
}

package import Policy

/// Whether a push may be accepted for a token.
package enum Admission: Hashable, Sendable {
    case device(DeviceIndex)
    /// The token would be registered by this push, were it not a dry run; nil when its topic is new as well.
    case newcomer(TopicIndex?)
    case refused(Refusal)
}

/// Why a device does not take what was sent to it.
package enum Refusal: Error, Hashable, Sendable {
    /// The token was never registered.
    case unknown
    /// The token was removed at this moment.
    case unregistered(Instant)
    /// The token belongs to another topic.
    case otherTopic
    /// There are as many devices as there may be.
    case tooManyDevices
    /// The topic has as many devices as a topic may have.
    case tooManyDevicesOfTopic
    /// The topic is new, and there are as many as there may be.
    case tooManyTopics
    /// The pushes of all topics that wait take up as much memory as they may.
    case noMemory
    /// The topic's waiting pushes take up as much memory as a topic's may.
    case noMemoryForTopic
    /// The device has had as many pushes as it takes until this moment.
    case tooMany(until: Instant)
}

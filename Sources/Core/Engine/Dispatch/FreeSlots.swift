import Policy

/// Free slots of a topic's streams that take the same: what a claim asks for.
package struct FreeSlots: Hashable, Sendable {
    package let topic: TopicIndex
    package let takesPushes: Bool
    /// Patterns of identifiers of tasks, as they were registered.
    package let tasks: [String]
    /// Patterns of names of sessions.
    package let sessions: [String]
    /// What a task may need.
    package let resources: [String]
    /// Whether these streams take wakes of the devices that they name, and of no others.
    package let namesDevices: Bool
    /// The place in the order in which streams came that take something new; no others get it again.
    package internal(set) var number: UInt64 = 0
    /// How many wakes they take.
    package internal(set) var count = 0
}

extension FreeSlots {
    /// What a stream takes; none of its slots.
    init(_ stream: Subscription) {
        self.init(
            topic: stream.topic,
            takesPushes: stream.request.takesPushes,
            tasks: stream.request.tasks.map(\.text),
            sessions: stream.request.sessions.map(\.text),
            resources: stream.request.resources,
            namesDevices: !stream.request.devices.isEmpty
        )
    }

    /// The order in which claims are made, whatever streams came first.
    func isBefore(_ other: FreeSlots) -> Bool {
        if self.topic != other.topic { return self.topic.rawValue < other.topic.rawValue }
        if self.namesDevices != other.namesDevices { return self.namesDevices }
        if self.takesPushes != other.takesPushes { return self.takesPushes }
        for (list, others) in [
            (self.tasks, other.tasks), (self.sessions, other.sessions), (self.resources, other.resources),
        ] where list != others {
            return list.lexicographicallyPrecedes(others)
        }
        return false
    }
}

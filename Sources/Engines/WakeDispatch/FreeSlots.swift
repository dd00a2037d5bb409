package import Bytes
package import DeviceEngine
import LaunchPolicy

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
    /// The devices that these streams name, in the order of tokens; empty for every device.
    package internal(set) var devices: [DeviceToken]
    /// How many wakes they take.
    package internal(set) var count: Int
}

extension FreeSlots {
    /// The slots of a free stream.
    init(_ stream: Subscription) {
        self.init(
            topic: stream.topic,
            takesPushes: stream.request.takesPushes,
            tasks: stream.request.tasks.map(\.text),
            sessions: stream.request.sessions.map(\.text),
            resources: stream.request.resources,
            devices: stream.request.devices,
            count: stream.slots - stream.wakes.count - stream.releasesOfOpenSteps
        )
    }

    /// What the streams take, and nothing that differs among streams that take the same.
    private var shape: FreeSlots {
        var shape = self
        shape.devices = Array(self.devices.prefix(1))
        shape.count = 0
        if !self.devices.isEmpty { shape.devices = [DeviceToken()] }
        return shape
    }

    /// The order in which claims are made, whatever streams came first.
    private func isBefore(_ other: FreeSlots) -> Bool {
        if self.topic != other.topic { return self.topic.rawValue < other.topic.rawValue }
        if self.devices.isEmpty != other.devices.isEmpty { return other.devices.isEmpty }
        if self.takesPushes != other.takesPushes { return self.takesPushes }
        for (list, others) in [
            (self.tasks, other.tasks), (self.sessions, other.sessions), (self.resources, other.resources),
        ] where list != others {
            return list.lexicographicallyPrecedes(others)
        }
        return false
    }

    /// Puts together the slots of streams that take the same.
    static func joined(_ streams: some Sequence<Subscription>) -> [FreeSlots] {
        var joined: [FreeSlots: FreeSlots] = [:]
        for stream in streams {
            let slots = FreeSlots(stream)
            if var same = joined[slots.shape] {
                same.count += slots.count
                same.devices += slots.devices
                joined[slots.shape] = same
            } else {
                joined[slots.shape] = slots
            }
        }
        return joined.values.map { slots in
            var slots = slots
            slots.devices = Set(slots.devices).sorted { $0.isBefore($1) }
            return slots
        }.sorted { $0.isBefore($1) }
    }
}

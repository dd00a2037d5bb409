import Policy
import Wire

/// The free slots of all streams, grouped by the launches that the streams accept. Each change of a stream updates its
/// group, so the cost of a query depends only on the number of groups.
struct OfferedSlots {
    /// The contribution of a stream, stored in the stream.
    struct Share {
        /// The index of the stream's group.
        fileprivate let place: Int
        /// The number of free slots of the stream.
        fileprivate var count = 0
    }

    /// The streams that accept the same launches.
    private struct Group {
        /// The launches that the streams accept, with `number` and `count` zero.
        let shape: FreeSlots
        /// As `shape`, with the number of the group and the total of free slots.
        var slots: FreeSlots
        /// The number of streams, with or without free slots.
        var streams = 0
        /// The streams with free slots that name devices, by order of arrival.
        var naming: [UInt64: Subscription] = [:]
    }

    private var groups: [Group?] = []
    private var freePlaces: [Int] = []
    /// The index of each group by its `shape`.
    private var places: [FreeSlots: Int] = [:]
    /// The indexes of each topic's groups, in the order in which their slots are filled.
    private var topics: [TopicIndex: [Int]] = [:]
    private var lastNumber: UInt64 = 0

    /// Creates a value without streams.
    init() {}

    /// Returns the free slots of a topic, in the order in which they are filled.
    func slots(of topic: TopicIndex) -> [FreeSlots] {
        (self.topics[topic] ?? []).compactMap { place in
            guard let slots = self.groups[place]?.slots, slots.count > 0 else { return nil }
            return slots
        }
    }

    /// Returns the groups of a topic's streams, with or without free slots, in the order in which their slots are
    /// filled.
    func offers(of topic: TopicIndex, countMax: Int, hasFreeSlots: Bool) -> [StreamOffer] {
        (self.topics[topic] ?? []).prefix(countMax).compactMap { place in
            guard let group = self.groups[place] else { return nil }
            var slots = group.shape
            if hasFreeSlots { slots.count = group.slots.count }
            return StreamOffer(slots: slots, streams: group.streams)
        }
    }

    /// Returns the devices named by the free streams of this group, each once, in token order. The cost is linear in
    /// the number of devices.
    func devices(_ slots: FreeSlots) -> [DeviceToken] {
        var shape = slots
        shape.number = 0
        shape.count = 0
        guard let place = self.places[shape], let group = self.groups[place] else { return [] }
        return Set(group.naming.values.lazy.flatMap(\.request.devices)).sorted { $0.isBefore($1) }
    }
}

// MARK: - Streams

extension OfferedSlots {
    mutating func insert(_ stream: Subscription) {
        let shape = FreeSlots(stream)
        let place = self.places[shape] ?? self.makeGroup(shape)
        self.groups[place]?.streams += 1
        stream.share = Share(place: place)
        self.changed(stream)
    }

    /// Removes a stream that has ended.
    mutating func remove(_ stream: Subscription) {
        self.changed(stream)
        guard let share = stream.share, let group = self.groups[share.place] else { return }
        stream.share = nil
        guard group.streams == 1 else {
            self.groups[share.place]?.streams -= 1
            return
        }
        self.groups[share.place] = nil
        self.freePlaces.append(share.place)
        self.places[group.shape] = nil
        self.topics[group.shape.topic]?.removeAll { $0 == share.place }
        if self.topics[group.shape.topic]?.isEmpty == true { self.topics[group.shape.topic] = nil }
    }

    /// Updates the contribution of a stream after a change.
    mutating func changed(_ stream: Subscription) {
        guard let share = stream.share else { return }
        let count = stream.freeSlots
        guard count != share.count else { return }
        stream.share?.count = count
        self.groups[share.place]?.slots.count += count - share.count
        guard !stream.request.devices.isEmpty, (count == 0) != (share.count == 0) else { return }
        self.groups[share.place]?.naming[stream.opened] = count == 0 ? nil : stream
    }

    private mutating func makeGroup(_ shape: FreeSlots) -> Int {
        self.lastNumber += 1
        var slots = shape
        slots.number = self.lastNumber
        let place = self.freePlaces.popLast() ?? self.groups.count
        if place == self.groups.count { self.groups.append(nil) }
        self.groups[place] = Group(shape: shape, slots: slots)
        self.places[shape] = place
        let there = self.topics[shape.topic] ?? []
        // Binary search, because one client can cause many groups.
        let index = there.countAtStart { self.groups[$0]?.shape.isBefore(shape) == true }
        self.topics[shape.topic, default: []].insert(place, at: index)
        return place
    }
}

/// The free slots of a topic's streams that accept the same launches. A claim selects
/// waiting devices for these slots.
package struct FreeSlots: Hashable, Sendable {
    package let topic: TopicIndex
    package let takesPushes: Bool
    /// The texts of the patterns of task identifiers, such as `com.example.app.*`.
    package let tasks: [String]
    /// Patterns of session names.
    package let sessions: [String]
    /// The resources that the streams offer.
    package let resources: [String]
    /// True if the streams name devices, and accept only wakes of these devices.
    package let namesDevices: Bool
    /// The sequence number of the group. Numbers are never reused.
    package internal(set) var number: UInt64 = 0
    /// The number of wakes that the streams can receive.
    package internal(set) var count = 0

    package init(
        topic: TopicIndex,
        takesPushes: Bool,
        tasks: [String] = [],
        sessions: [String] = [],
        resources: [String] = [],
        namesDevices: Bool = false,
        count: Int = 0
    ) {
        self.topic = topic
        self.takesPushes = takesPushes
        self.tasks = tasks
        self.sessions = sessions
        self.resources = resources
        self.namesDevices = namesDevices
        self.count = count
    }
}

extension FreeSlots {
    /// Creates the group key of a stream, without slots.
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

    /// Returns true if this group's slots are filled before those of `other`. The order does not depend on the arrival
    /// of streams.
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

/// The streams of one topic that accept the same launches, and their free slots.
package struct StreamOffer: Hashable, Sendable {
    package let slots: FreeSlots
    /// The number of streams, with or without free slots.
    package let streams: Int

    package init(slots: FreeSlots, streams: Int) {
        self.slots = slots
        self.streams = streams
    }
}

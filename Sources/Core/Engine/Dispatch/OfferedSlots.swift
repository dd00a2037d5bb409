import Policy
import Wire

/// The free slots of all streams, by what the streams take: kept as streams change, so that asking for them costs what
/// differs among the streams of a topic, and not how many streams there are.
struct OfferedSlots {
    /// What a stream adds; the stream keeps it.
    struct Share {
        /// The place of the streams that take the same.
        fileprivate let place: Int
        /// Free slots of the stream.
        fileprivate var count = 0
    }

    /// Streams that take the same.
    private struct Group {
        /// What they take; the number is zero, and there are no slots.
        let shape: FreeSlots
        /// The same with all their free slots.
        var slots: FreeSlots
        /// How many there are, free or not.
        var streams = 0
        /// The free ones that name devices, by the order in which they came.
        var naming: [UInt64: Subscription] = [:]
    }

    private var groups: [Group?] = []
    private var freePlaces: [Int] = []
    /// Places by what streams take, with the number zero and no slots.
    private var places: [FreeSlots: Int] = [:]
    /// The places of each topic's groups, in the order in which claims are made.
    private var topics: [TopicIndex: [Int]] = [:]
    private var lastNumber: UInt64 = 0

    /// No streams.
    init() {}

    /// The free slots of a topic, in the order in which claims are made.
    func slots(of topic: TopicIndex) -> [FreeSlots] {
        (self.topics[topic] ?? []).compactMap { place in
            guard let slots = self.groups[place]?.slots, slots.count > 0 else { return nil }
            return slots
        }
    }

    /// The kinds of streams of a topic by what they take, free or not, in the order in which claims are made.
    func offers(of topic: TopicIndex, countMax: Int, hasFreeSlots: Bool) -> [StreamOffer] {
        (self.topics[topic] ?? []).prefix(countMax).compactMap { place in
            guard let group = self.groups[place] else { return nil }
            return StreamOffer(
                topic: topic,
                takesPushes: group.shape.takesPushes,
                tasks: group.shape.tasks,
                sessions: group.shape.sessions,
                resources: group.shape.resources,
                namesDevices: group.shape.namesDevices,
                streams: group.streams,
                freeSlots: hasFreeSlots ? group.slots.count : 0
            )
        }
    }

    /// The devices that free streams name which take this, each once, in the order of tokens. It costs what there is.
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

    /// Takes out a stream that has ended.
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

    /// Brings what a stream adds in line with its wakes, and with whether it is free.
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
        // Where it stands is found by halving, as a caller may have very many.
        var (low, high) = (0, there.count)
        while low < high {
            let middle = (low + high) / 2
            if self.groups[there[middle]]?.shape.isBefore(shape) == true { low = middle + 1 } else { high = middle }
        }
        self.topics[shape.topic, default: []].insert(place, at: low)
        return place
    }
}

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

/// Streams of one topic that take the same.
package struct StreamOffer: Hashable, Sendable {
    package let topic: TopicIndex
    package let takesPushes: Bool
    /// Patterns of identifiers of tasks.
    package let tasks: [String]
    /// Patterns of names of sessions.
    package let sessions: [String]
    package let resources: [String]
    /// True if these streams take wakes of devices that they name, and of no others.
    package let namesDevices: Bool
    /// The number of the streams, and of the wakes that they can take now.
    package let streams: Int
    package let freeSlots: Int

    package init(
        topic: TopicIndex,
        takesPushes: Bool,
        tasks: [String] = [],
        sessions: [String] = [],
        resources: [String] = [],
        namesDevices: Bool = false,
        streams: Int,
        freeSlots: Int
    ) {
        self.topic = topic
        self.takesPushes = takesPushes
        self.tasks = tasks
        self.sessions = sessions
        self.resources = resources
        self.namesDevices = namesDevices
        self.streams = streams
        self.freeSlots = freeSlots
    }
}

import Policy

/// The free streams of a topic that name no device, indexed by the names of the tasks that they accept.
///
/// Each registered pattern has a rotation, and a further rotation for each resource that its streams offer. The next
/// stream is found by looking up the name and its prefixes, at a cost that does not depend on the number of streams.
/// For a task that needs several resources, all streams that offer the scarcest resource are examined. Unsatisfiable
/// needs are remembered, and not searched again until a stream is added or becomes free.
struct TaskRotations {
    /// The membership of a stream in the rotation of one of its patterns, or of a pattern and a resource.
    struct Place {
        fileprivate let rotation: Int
        /// True if the stream is in the rotation. The stream was free when it was added.
        fileprivate var isInTurn = false
    }

    private struct Key: Hashable {
        let isSession: Bool
        let isExact: Bool
        let stem: String
        /// The resource; empty for all streams with the pattern.
        let resource: String

        func offering(_ resource: String) -> Key {
            Key(isSession: self.isSession, isExact: self.isExact, stem: self.stem, resource: resource)
        }
    }

    /// A set of needed resources that no free stream with the pattern offers.
    private struct Unmet: Hashable {
        /// The maximum number of remembered sets.
        static let countMax = 256

        let key: Key
        let needs: [String]
    }

    private struct Entry {
        let stream: Subscription
        /// The index in the stream's `taskPlaces`.
        let place: Int
    }

    private struct Rotation {
        let key: Key
        /// The number of streams with the pattern and the resource, free or not.
        var count = 0
        /// The free streams from `first` on, in order. Streams that are no longer free are skipped.
        var entries: [Entry] = []
        var first = 0
        /// The number of entries of ended streams.
        var ended = 0
    }

    private var rotations: [Rotation] = []
    private var numbers: [Key: Int] = [:]
    private var unused: [Int] = []
    /// The counts of prefixes by length in bytes, first for requests, then for sessions.
    private var stemLengths: [[Int]] = [[], []]
    private var lastTurn: UInt64 = 0
    /// The streams that offer several resources, free or not.
    private var versatile: [StreamAddress: Subscription] = [:]
    /// Sets of needed resources that no free stream offers.
    private var unmet: Set<Unmet> = []
    /// The number of streams examined one by one for tasks that need several resources.
    private(set) var searched: Int64 = 0

    /// Adds a stream that names no device.
    mutating func insert(_ stream: Subscription) {
        guard stream.request.takesTasks else { return }
        self.noteTurn(stream)
        for pattern in stream.request.tasks {
            let key = Key(isSession: false, isExact: pattern.isExact, stem: pattern.stem, resource: "")
            self.join(key, stream)
            for resource in stream.request.resources { self.join(key.offering(resource), stream) }
        }
        for pattern in stream.request.sessions {
            self.join(Key(isSession: true, isExact: pattern.isExact, stem: pattern.stem, resource: ""), stream)
        }
        stream.taskPlacesOut = stream.taskPlaces.count
        if stream.request.resources.count > 1 { self.versatile[stream.address] = stream }
        self.rotate(stream)
    }

    /// Removes a stream that has ended.
    mutating func remove(_ stream: Subscription) {
        for place in stream.taskPlaces {
            self.rotations[place.rotation].count -= 1
            if self.rotations[place.rotation].count == 0 {
                self.drop(place.rotation)
            } else if place.isInTurn {
                self.rotations[place.rotation].ended += 1
                self.compact(place.rotation)
            }
        }
        stream.taskPlaces = []
        stream.taskPlacesOut = 0
        if stream.request.resources.count > 1 { self.versatile[stream.address] = nil }
    }

    /// Appends a free stream to those of its rotations that do not contain it.
    mutating func rotate(_ stream: Subscription) {
        guard stream.taskPlacesOut > 0, stream.isFree else { return }
        self.mayMeetNeeds(stream)
        for place in stream.taskPlaces.indices where !stream.taskPlaces[place].isInTurn {
            self.append(stream, place)
        }
    }

    /// Notes that a stream with several resources may have become free or busy.
    mutating func changed(_ stream: Subscription) {
        let isFree = stream.isFree
        if isFree, !stream.wasFree { self.mayMeetNeeds(stream) }
        stream.wasFree = isFree
    }

    /// Moves a stream that got a task to the end of the rotations in which it was next.
    mutating func turnEnded(_ stream: Subscription) {
        guard stream.request.devices.isEmpty else { return }
        self.noteTurn(stream)
        for place in stream.taskPlaces.indices where stream.taskPlaces[place].isInTurn {
            let rotation = stream.taskPlaces[place].rotation
            guard self.rotations[rotation].entries[self.rotations[rotation].first].stream === stream else { continue }
            self.dropFirst(rotation)
            if stream.isFree { self.append(stream, place) }
        }
    }

    /// Returns the indexes in `taskPlaces` of the rotations in which the stream is next.
    func placesNext(_ stream: Subscription) -> [Int] {
        stream.taskPlaces.indices.filter { place in
            guard stream.taskPlaces[place].isInTurn else { return false }
            let rotation = self.rotations[stream.taskPlaces[place].rotation]
            return rotation.entries[rotation.first].stream === stream
        }
    }

    /// Makes a stream next again in these rotations, because its last task was taken back.
    mutating func turnTakenBack(_ stream: Subscription, _ places: [Int]) {
        self.mayMeetNeeds(stream)
        for place in places where stream.taskPlaces.indices.contains(place) {
            let rotation = stream.taskPlaces[place].rotation
            let (first, count) = (self.rotations[rotation].first, self.rotations[rotation].entries.count)
            let last = self.rotations[rotation].entries.last
            if count - first > 1, let last, last.stream === stream, last.place == place {
                self.rotations[rotation].entries.removeLast()
                stream.taskPlaces[place].isInTurn = false
                stream.taskPlacesOut += 1
            }
            guard stream.isFree, !stream.taskPlaces[place].isInTurn else { continue }
            let entry = Entry(stream: stream, place: place)
            if first > 0 {
                self.rotations[rotation].first -= 1
                self.rotations[rotation].entries[first - 1] = entry
            } else {
                self.rotations[rotation].entries.insert(entry, at: 0)
            }
            stream.taskPlaces[place].isInTurn = true
            stream.taskPlacesOut -= 1
        }
    }

    /// Forgets unsatisfiable needs, because a stream that became free may satisfy them.
    private mutating func mayMeetNeeds(_ stream: Subscription) {
        guard stream.request.resources.count > 1, !self.unmet.isEmpty else { return }
        self.unmet.removeAll(keepingCapacity: true)
    }

    private mutating func noteTurn(_ stream: Subscription) {
        self.lastTurn += 1
        stream.lastTurn = self.lastTurn
    }
}

// MARK: - Turns

extension TaskRotations {
    /// Returns the free stream that accepts the task and has waited longest for a turn; nil if there is none.
    mutating func next(_ target: LaunchTarget) -> Subscription? {
        guard !self.numbers.isEmpty else { return nil }
        var best: Subscription?
        for key in self.keys(of: target) {
            guard let stream = self.next(key, target.resources) else { continue }
            if best.map({ stream.lastTurn < $0.lastTurn }) ?? true { best = stream }
        }
        return best
    }

    /// Returns true if any stream, free or not, accepts the task.
    func isTaken(_ target: LaunchTarget) -> Bool {
        guard !self.numbers.isEmpty else { return false }
        guard target.resources.count > 1 else {
            let resource = target.resources.first ?? ""
            return self.keys(of: target).contains { self.numbers[$0.offering(resource)] != nil }
        }
        return self.versatile.values.contains { $0.request.takes(target) }
    }

    /// Returns the patterns that match the name. Not all of them are registered.
    private func keys(of target: LaunchTarget) -> [Key] {
        let isSession = target.kind == .urlSession
        var keys = [Key(isSession: isSession, isExact: true, stem: target.name, resource: "")]
        let lengths = self.stemLengths[isSession ? 1 : 0]
        let name = target.name.utf8
        for (place, byte) in name.enumerated() where byte == UInt8(ascii: ".") && place + 1 < name.count {
            guard place + 1 < lengths.count, lengths[place + 1] > 0 else { continue }
            let stem = String(target.name.utf8.prefix(place + 1)) ?? ""
            keys.append(Key(isSession: isSession, isExact: false, stem: stem, resource: ""))
        }
        return keys
    }

    /// Returns the next stream with one pattern that offers the needed resources.
    private mutating func next(_ key: Key, _ needs: [String]) -> Subscription? {
        guard var rotation = self.numbers[key] else { return nil }
        guard !needs.isEmpty else { return self.first(rotation) }
        for (place, need) in needs.enumerated() {
            guard let number = self.numbers[key.offering(need)] else { return nil }
            if place == 0 || self.rotations[number].count < self.rotations[rotation].count { rotation = number }
        }
        guard needs.count > 1 else { return self.first(rotation) }
        return self.search(rotation, Unmet(key: key, needs: needs))
    }

    /// Returns the next stream in a rotation that offers all needed resources.
    private mutating func search(_ rotation: Int, _ wanted: Unmet) -> Subscription? {
        guard let first = self.first(rotation), !self.unmet.contains(wanted) else { return nil }
        var best: Subscription?
        for entry in self.rotations[rotation].entries[self.rotations[rotation].first...] {
            self.searched += 1
            guard entry.stream.isFree, ResourceNames.isSatisfied(wanted.needs, by: entry.stream.request.resources)
            else { continue }
            if entry.stream === first { return first }
            if best.map({ entry.stream.lastTurn < $0.lastTurn }) ?? true { best = entry.stream }
        }
        if best == nil {
            if self.unmet.count == Unmet.countMax { self.unmet.removeAll(keepingCapacity: true) }
            self.unmet.insert(wanted)
        }
        return best
    }

    private mutating func first(_ rotation: Int) -> Subscription? {
        while self.rotations[rotation].first < self.rotations[rotation].entries.count {
            let stream = self.rotations[rotation].entries[self.rotations[rotation].first].stream
            if stream.isFree { return stream }
            self.dropFirst(rotation)
        }
        return nil
    }
}

// MARK: - Opening and closing

extension TaskRotations {
    private mutating func join(_ key: Key, _ stream: Subscription) {
        let number: Int
        if let known = self.numbers[key] {
            number = known
        } else {
            number = self.unused.popLast() ?? self.rotations.count
            let rotation = Rotation(key: key)
            if number == self.rotations.count {
                self.rotations.append(rotation)
            } else {
                self.rotations[number] = rotation
            }
            self.numbers[key] = number
            self.countStem(key, 1)
        }
        self.rotations[number].count += 1
        stream.taskPlaces.append(Place(rotation: number))
    }

    /// Removes a pattern that no stream has.
    private mutating func drop(_ number: Int) {
        let key = self.rotations[number].key
        self.numbers[key] = nil
        self.countStem(key, -1)
        self.rotations[number].entries = []
        self.rotations[number].first = 0
        self.unused.append(number)
    }

    private mutating func countStem(_ key: Key, _ change: Int) {
        guard !key.isExact, key.resource.isEmpty else { return }
        let (namespace, length) = (key.isSession ? 1 : 0, key.stem.utf8.count)
        while self.stemLengths[namespace].count <= length { self.stemLengths[namespace].append(0) }
        self.stemLengths[namespace][length] += change
    }

    private mutating func append(_ stream: Subscription, _ place: Int) {
        stream.taskPlaces[place].isInTurn = true
        stream.taskPlacesOut -= 1
        self.rotations[stream.taskPlaces[place].rotation].entries.append(Entry(stream: stream, place: place))
    }

    private mutating func dropFirst(_ rotation: Int) {
        let entry = self.rotations[rotation].entries[self.rotations[rotation].first]
        if entry.stream.hasEnded {
            self.rotations[rotation].ended -= 1
        } else {
            entry.stream.taskPlaces[entry.place].isInTurn = false
            entry.stream.taskPlacesOut += 1
        }
        self.rotations[rotation].first += 1
        let (first, count) = (self.rotations[rotation].first, self.rotations[rotation].entries.count)
        guard first == count || (first > 64 && first * 2 > count) else { return }
        self.rotations[rotation].entries.removeFirst(first)
        self.rotations[rotation].first = 0
    }

    /// Removes ended streams once they are half of a rotation. While no tasks launch, nothing else drops them.
    private mutating func compact(_ rotation: Int) {
        let (ended, count) = (self.rotations[rotation].ended, self.rotations[rotation].entries.count)
        guard ended > 64, ended * 2 > count else { return }
        self.rotations[rotation].entries.removeFirst(self.rotations[rotation].first)
        self.rotations[rotation].first = 0
        self.rotations[rotation].entries.removeAll { $0.stream.hasEnded }
        self.rotations[rotation].ended = 0
    }
}

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
        var isInTurn = false
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

    private struct Rotation {
        let key: Key
        /// The number of streams with the pattern and the resource, free or not.
        var count = 0
        var turns = StreamRotation()
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
        for place in stream.taskPlaces.indices {
            let rotation = stream.taskPlaces[place].rotation
            self.rotations[rotation].count -= 1
            if self.rotations[rotation].count == 0 {
                self.drop(rotation)
            } else {
                self.rotations[rotation].turns.remove(stream, place)
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
        for place in stream.taskPlaces.indices {
            self.rotations[stream.taskPlaces[place].rotation].turns.append(stream, place)
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
        for place in stream.taskPlaces.indices {
            self.rotations[stream.taskPlaces[place].rotation].turns.turnEnded(stream, place)
        }
    }

    /// Returns the indexes in `taskPlaces` of the rotations in which the stream is next.
    func placesNext(_ stream: Subscription) -> [Int] {
        stream.taskPlaces.indices.filter { self.rotations[stream.taskPlaces[$0].rotation].turns.isNext(stream) }
    }

    /// Makes a stream next again in these rotations, because its last task was taken back.
    mutating func turnTakenBack(_ stream: Subscription, _ places: [Int]) {
        self.mayMeetNeeds(stream)
        for place in places where stream.taskPlaces.indices.contains(place) {
            self.rotations[stream.taskPlaces[place].rotation].turns.turnTakenBack(stream, place)
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
        guard !needs.isEmpty else { return self.rotations[rotation].turns.next() }
        for (place, need) in needs.enumerated() {
            guard let number = self.numbers[key.offering(need)] else { return nil }
            if place == 0 || self.rotations[number].count < self.rotations[rotation].count { rotation = number }
        }
        guard needs.count > 1 else { return self.rotations[rotation].turns.next() }
        return self.search(rotation, Unmet(key: key, needs: needs))
    }

    /// Returns the next stream in a rotation that offers all needed resources.
    private mutating func search(_ rotation: Int, _ wanted: Unmet) -> Subscription? {
        guard let first = self.rotations[rotation].turns.next(), !self.unmet.contains(wanted) else { return nil }
        var best: Subscription?
        for stream in self.rotations[rotation].turns.streams {
            self.searched += 1
            guard stream.isFree, ResourceNames.isSatisfied(wanted.needs, by: stream.request.resources) else { continue }
            if stream === first { return first }
            if best.map({ stream.lastTurn < $0.lastTurn }) ?? true { best = stream }
        }
        if best == nil {
            if self.unmet.count == Unmet.countMax { self.unmet.removeAll(keepingCapacity: true) }
            self.unmet.insert(wanted)
        }
        return best
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
        self.rotations[number].turns = StreamRotation()
        self.unused.append(number)
    }

    private mutating func countStem(_ key: Key, _ change: Int) {
        guard !key.isExact, key.resource.isEmpty else { return }
        let (namespace, length) = (key.isSession ? 1 : 0, key.stem.utf8.count)
        while self.stemLengths[namespace].count <= length { self.stemLengths[namespace].append(0) }
        self.stemLengths[namespace][length] += change
    }
}

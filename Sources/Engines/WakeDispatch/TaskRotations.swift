import DeviceEngine
import LaunchPolicy

/// The free streams of a topic that name no device, by the names of the tasks that they take.
///
/// Each pattern that some stream registered has a rotation, and one more for each resource that streams with it offer:
/// who is next is found by a look-up for the name and for each of its beginnings that some stream registered, however
/// many streams there are. For a task that needs several resources all streams are looked at that offer the scarcest.
struct TaskRotations {
    /// Where a stream stands for one of its patterns, or for one of them and a resource that it offers.
    struct Place {
        fileprivate let rotation: Int
        /// Whether the stream stands in the rotation: it was free when it was put there.
        fileprivate var isInTurn = false
    }

    private struct Key: Hashable {
        let isSession: Bool
        let isExact: Bool
        let stem: String
        /// Empty for all streams with the pattern.
        let resource: String

        func offering(_ resource: String) -> Key {
            Key(isSession: self.isSession, isExact: self.isExact, stem: self.stem, resource: resource)
        }
    }

    private struct Entry {
        let stream: Subscription
        /// Which of its places leads here.
        let place: Int
    }

    private struct Rotation {
        let key: Key
        /// How many streams have the pattern, and the resource, free or not.
        var count = 0
        /// The free ones, from the one that is next; those that are not free any more are skipped.
        var entries: [Entry] = []
        var first = 0
        /// How many of the entries are of streams that have ended.
        var ended = 0
    }

    private var rotations: [Rotation] = []
    private var numbers: [Key: Int] = [:]
    private var unused: [Int] = []
    /// How many rotations there are of beginnings with so many bytes, of requests and of sessions.
    private var stemLengths: [[Int]] = [[], []]
    private var lastTurn: UInt64 = 0

    /// No streams.
    init() {}

    /// A new stream that names no device.
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
        self.rotate(stream)
    }

    /// Takes out a stream that has ended.
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
    }

    /// Puts a free stream at the end of those of its rotations in which it does not stand.
    mutating func rotate(_ stream: Subscription) {
        guard stream.taskPlacesOut > 0, stream.isFree else { return }
        for place in stream.taskPlaces.indices where !stream.taskPlaces[place].isInTurn {
            self.append(stream, place)
        }
    }

    /// A stream got a task: where it was next, it goes to the end.
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

    private mutating func noteTurn(_ stream: Subscription) {
        self.lastTurn += 1
        stream.lastTurn = self.lastTurn
    }
}

// MARK: - Whose turn it is

extension TaskRotations {
    /// The free stream that takes such a task, and got its last one before all others that do.
    mutating func next(_ target: LaunchTarget) -> Subscription? {
        guard !self.numbers.isEmpty else { return nil }
        let isSession = target.kind == .urlSession
        let exact = Key(isSession: isSession, isExact: true, stem: target.name, resource: "")
        var best = self.next(exact, target.resources)
        let lengths = self.stemLengths[isSession ? 1 : 0]
        let name = target.name.utf8
        for (place, byte) in name.enumerated() where byte == UInt8(ascii: ".") && place + 1 < name.count {
            guard place + 1 < lengths.count, lengths[place + 1] > 0 else { continue }
            let stem = String(target.name.utf8.prefix(place + 1)) ?? ""
            let key = Key(isSession: isSession, isExact: false, stem: stem, resource: "")
            guard let stream = self.next(key, target.resources) else { continue }
            if best.map({ stream.lastTurn < $0.lastTurn }) ?? true { best = stream }
        }
        return best
    }

    /// The next of the streams with one pattern that offer what is needed.
    private mutating func next(_ key: Key, _ needs: [String]) -> Subscription? {
        guard var rotation = self.numbers[key] else { return nil }
        guard !needs.isEmpty else { return self.first(rotation) }
        for (place, need) in needs.enumerated() {
            guard let number = self.numbers[key.offering(need)] else { return nil }
            if place == 0 || self.rotations[number].count < self.rotations[rotation].count { rotation = number }
        }
        guard let first = self.first(rotation), needs.count > 1 else { return self.first(rotation) }
        var best: Subscription?
        for entry in self.rotations[rotation].entries[self.rotations[rotation].first...]
        where entry.stream.isFree && ResourceNames.isSatisfied(needs, by: entry.stream.request.resources) {
            if entry.stream === first { return first }
            if best.map({ entry.stream.lastTurn < $0.lastTurn }) ?? true { best = entry.stream }
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

// MARK: - Coming and going

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

    /// Forgets a pattern that no stream has any more.
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

    /// Takes out streams that have ended once they are half of a rotation: streams may come and go without a task.
    private mutating func compact(_ rotation: Int) {
        let (ended, count) = (self.rotations[rotation].ended, self.rotations[rotation].entries.count)
        guard ended > 64, ended * 2 > count else { return }
        self.rotations[rotation].entries.removeFirst(self.rotations[rotation].first)
        self.rotations[rotation].first = 0
        self.rotations[rotation].entries.removeAll { $0.stream.hasEnded }
        self.rotations[rotation].ended = 0
    }
}

package import Policy

/// When each device has something due, and which have still to be looked at under a policy that has changed.
package struct DueSchedule: ~Copyable {
    private var due = DueIndex()
    /// The first device that was not yet looked at under the policy; nil when all were.
    private var firstUnjudged: Int?
    /// The moment of what time alone has brought about and is being done; nil while somebody else's doing is.
    package private(set) var momentBeingDone: Instant?

    /// Nothing is due.
    package init() {}

    /// The earliest moment at which something is due.
    package var first: Instant? { self.due.first }

    /// When `device` has something due.
    package subscript(device: DeviceIndex) -> Instant? { self.due[device] }

    /// Says when `device` next has something due; nil when it has nothing.
    package mutating func set(_ device: DeviceIndex, to moment: Instant?) { self.due.set(device, to: moment) }

    /// Takes the device whose moment is the earliest, if that is at or before `now`: it is being done from here on.
    package mutating func popDue(_ now: Instant) -> DeviceIndex? {
        let moment = self.due.first
        let device = self.due.popDue(now)
        self.momentBeingDone = device == nil ? nil : moment
        return device
    }

    /// What was due at `moment` is being done, though it was not taken.
    package mutating func begin(_ moment: Instant) { self.momentBeingDone = moment }

    /// What was due is done.
    package mutating func end() { self.momentBeingDone = nil }

    /// Every device is to be looked at.
    package mutating func policyChanged() { self.firstUnjudged = 0 }

    /// Whether devices are to be looked at.
    package var isJudging: Bool { self.firstUnjudged != nil }

    /// No device has anything due, or is to be looked at, any more.
    package mutating func removeAll() {
        self.due.removeAll()
        self.firstUnjudged = nil
        self.momentBeingDone = nil
    }

    /// Takes the devices that are to be looked at next, so many at most of all of them.
    package mutating func popUnjudged(devicesMax: Int, of deviceCount: Int) -> Range<Int> {
        guard let first = self.firstUnjudged else { return 0..<0 }
        let end = min(first + devicesMax, deviceCount)
        self.firstUnjudged = end < deviceCount ? end : nil
        return first..<max(first, end)
    }
}

/// Which device has something due next: a 4-ary heap by moment that knows each device's place.
///
/// Setting, clearing and taking the first cost O(log n); equal moments leave in no particular order.
package struct DueIndex {
    private struct Entry {
        var moment: Instant
        var device: UInt32
    }

    private static let nowhere = UInt32.max
    private var heap: [Entry] = []
    /// The place in `heap` of each device, or `nowhere`.
    private var places: [UInt32] = []

    package init() {}

    /// How many devices have something due.
    package var count: Int { self.heap.count }

    /// The earliest moment at which something is due.
    package var first: Instant? { self.heap.first?.moment }

    /// When `device` has something due.
    package subscript(device: DeviceIndex) -> Instant? {
        let number = Int(device.rawValue)
        guard number < self.places.count, self.places[number] != Self.nowhere else { return nil }
        return self.heap[Int(self.places[number])].moment
    }

    /// Says when `device` next has something due; nil when it has nothing.
    package mutating func set(_ device: DeviceIndex, to moment: Instant?) {
        let number = Int(device.rawValue)
        if number >= self.places.count {
            guard moment != nil else { return }
            self.places.append(contentsOf: repeatElement(Self.nowhere, count: number + 1 - self.places.count))
        }
        let place = self.places[number]
        switch (place == Self.nowhere, moment) {
        case (true, nil): break
        case (true, let moment?):
            self.heap.append(Entry(moment: moment, device: device.rawValue))
            self.rise(self.heap.count - 1)
        case (false, nil): self.remove(Int(place))
        case (false, let moment?):
            let before = self.heap[Int(place)].moment
            self.heap[Int(place)].moment = moment
            if moment < before { self.rise(Int(place)) } else if moment > before { self.sink(Int(place)) }
        }
    }

    /// Takes the device whose moment is the earliest, if that is at or before `now`.
    package mutating func popDue(_ now: Instant) -> DeviceIndex? {
        guard let first = self.heap.first, first.moment <= now else { return nil }
        self.remove(0)
        return DeviceIndex(rawValue: first.device)
    }

    /// Nothing is due any more; memory for as many devices is kept.
    package mutating func removeAll() {
        for entry in self.heap { self.places[Int(entry.device)] = Self.nowhere }
        self.heap.removeAll(keepingCapacity: true)
    }

    private mutating func remove(_ place: Int) {
        self.places[Int(self.heap[place].device)] = Self.nowhere
        let last = self.heap.removeLast()
        guard place < self.heap.count else { return }
        self.heap[place] = last
        self.places[Int(last.device)] = UInt32(place)
        self.rise(place)
        self.sink(Int(self.places[Int(last.device)]))
    }

    private mutating func rise(_ start: Int) {
        var place = start
        let entry = self.heap[place]
        while place > 0 {
            let parent = (place - 1) >> 2
            guard entry.moment < self.heap[parent].moment else { break }
            self.put(self.heap[parent], at: place)
            place = parent
        }
        self.put(entry, at: place)
    }

    private mutating func sink(_ start: Int) {
        var place = start
        let entry = self.heap[place]
        while true {
            let child = place << 2 + 1
            guard child < self.heap.count else { break }
            var least = child
            for sibling in (child + 1)..<max(child + 1, min(child + 4, self.heap.count))
            where self.heap[sibling].moment < self.heap[least].moment {
                least = sibling
            }
            guard self.heap[least].moment < entry.moment else { break }
            self.put(self.heap[least], at: place)
            place = least
        }
        self.put(entry, at: place)
    }

    private mutating func put(_ entry: Entry, at place: Int) {
        self.heap[place] = entry
        self.places[Int(entry.device)] = UInt32(place)
    }
}

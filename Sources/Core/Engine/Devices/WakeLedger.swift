package import Policy
public import Wire

/// An ended wake, remembered for workers that answer late or repeatedly.
package struct EndedWake: Hashable, Sendable {
    package let id: WakeID
    package let outcome: LaunchOutcome
    package let at: Instant

    package init(id: WakeID, outcome: LaunchOutcome, at moment: Instant) {
        self.id = id
        self.outcome = outcome
        self.at = moment
    }
}

/// An index from wakes, in flight or remembered after their end, to their devices. It also has queues of the wakes near
/// their deadline and of the ended wakes whose slots must be freed.
///
/// Ended wakes are remembered in their device's row: the last four of each device, for ten minutes.
package struct WakeLedger: ~Copyable {
    /// The time for which ended wakes are remembered, in milliseconds.
    static let endedWakeMemory: Int64 = 600_000

    private var devices = WakeTable<DeviceIndex>()
    /// The time at which each device's oldest ended wake is forgotten; one entry per device.
    private var forgetting = DueIndex()
    /// The wakes that ended without a result of their worker, oldest first. Their slots must be freed.
    var expired = FIFOQueue<(id: WakeID, reason: ExpirationReason)>()
    /// The wakes whose deadline is near. A wake may be in the queue several times.
    var expiring = FIFOQueue<(id: WakeID, deadline: Instant)>()

    package init() {}

    /// Returns the device of a wake that is in flight, or ended and remembered.
    package func device(of wake: WakeID) -> DeviceIndex? { self.devices[wake] }

    /// The number of wakes known by id, in flight or ended, and the number of devices with ended wakes.
    package var known: (ids: Int, devicesWithEnded: Int) { (self.devices.count, self.forgetting.count) }

    /// Adds a wake in flight of this device.
    package mutating func launched(_ wake: WakeID, _ device: DeviceIndex) { self.devices[wake] = device }

    /// Remembers an ended wake of this device. The device's oldest ended wake is dropped if there are four already.
    package mutating func ended(_ wake: EndedWake, _ device: DeviceIndex, in devices: inout DeviceTable) {
        let forgotten = devices[device].ended(wake)
        if let forgotten { self.devices[forgotten.id] = nil }
        self.noteWhenForgotten(device, oldest: devices[device].endedWakes?.first)
    }

    /// Forgets the wakes of at most `devicesMax` devices that ended ten minutes before `now` or earlier.
    ///
    /// - Returns: true if all such wakes are forgotten.
    package mutating func forget(at now: Instant, devicesMax: Int, in devices: inout DeviceTable) -> Bool {
        let horizon = now - Self.endedWakeMemory
        for _ in 0..<devicesMax {
            guard let device = self.forgetting.popDue(now) else { return true }
            while let forgotten = devices[device].forgetEndedWake(endedBy: horizon) {
                self.devices[forgotten.id] = nil
            }
            self.noteWhenForgotten(device, oldest: devices[device].endedWakes?.first)
        }
        return self.forgetting.first.map { $0 > now } ?? true
    }

    /// Adds the wakes of a device whose row was restored from a store.
    ///
    /// - `inFlight`: its wakes in flight.
    /// - Returns: false if one of the wakes already belongs to a device. No wake is then added.
    package mutating func restore(
        _ device: DeviceIndex,
        _ record: borrowing DeviceRecord,
        inFlight: [WakeID]
    ) -> Bool {
        let ended = record.endedWakes?.elements.map(\.id) ?? []
        let wakes = ended + inFlight
        for place in wakes.indices {
            guard self.devices[wakes[place]] == nil else {
                for wake in wakes[..<place] { self.devices[wake] = nil }
                return false
            }
            self.devices[wakes[place]] = device
        }
        self.noteWhenForgotten(device, oldest: record.endedWakes?.first)
        return true
    }

    /// Removes the wakes of a device that is being evicted. `removeAll` clears the rest.
    ///
    /// - `inFlight`: its wakes in flight.
    mutating func remove(_ device: borrowing DeviceRecord, inFlight: [WakeID]) {
        for wake in inFlight { self.devices[wake] = nil }
        guard let ended = device.endedWakes else { return }
        for wake in ended.elements { self.devices[wake.id] = nil }
    }

    /// Clears the due times and the queue of expired wakes. The wakes of all devices must have been removed before.
    mutating func removeAll() {
        precondition(self.devices.count == 0, "every wake was one of a device")
        self.forgetting.removeAll()
        self.expired.removeAll()
    }

    private mutating func noteWhenForgotten(_ device: DeviceIndex, oldest: EndedWake?) {
        self.forgetting.set(device, to: oldest.map { $0.at + Self.endedWakeMemory })
    }
}

/// A ring of the last four elements, the oldest first.
package struct Ring<Element> {
    static var capacity: Int { 4 }
    private var slots = InlineArray<4, Element?>(repeating: nil)

    /// Creates an empty ring.
    package init() {}

    /// Adds an element, replacing the oldest if the ring is full.
    ///
    /// - Returns: the element that was replaced.
    package mutating func append(_ element: Element) -> Element? {
        for index in 0..<Self.capacity where self.slots[index] == nil {
            self.slots[index] = element
            return nil
        }
        return self.shift(element)
    }

    /// Removes and returns the oldest element.
    package mutating func popFirst() -> Element? { self.shift(nil) }

    /// Returns the newest element that satisfies `condition`.
    func last(where condition: (Element) -> Bool) -> Element? {
        for index in (0..<Self.capacity).reversed() {
            if let element = self.slots[index], condition(element) { return element }
        }
        return nil
    }

    /// The oldest element.
    var first: Element? { self.slots[0] }

    /// The elements, the oldest first.
    package var elements: [Element] {
        (0..<Self.capacity).compactMap { self.slots[$0] }
    }

    /// Returns the number of elements that satisfy `condition`.
    func count(where condition: (Element) -> Bool) -> Int {
        var count = 0
        self.forEach(where: condition) { _ in count += 1 }
        return count
    }

    /// Calls `body` with the elements that satisfy `condition`, the oldest first.
    func forEach(where condition: (Element) -> Bool, _ body: (Element) -> Void) {
        for index in 0..<Self.capacity {
            if let element = self.slots[index], condition(element) { body(element) }
        }
    }

    private mutating func shift(_ element: Element?) -> Element? {
        let first = self.slots[0]
        for index in 1..<Self.capacity { self.slots[index - 1] = self.slots[index] }
        self.slots[Self.capacity - 1] = element
        return first
    }
}

/// Histograms of launch delays and wake durations since the process started, in milliseconds of policy time.
///
/// They are updated at the launch and at the end of a wake; a pending push costs nothing.
package struct WakeTimes: Sendable {
    /// The time for which a push waited only for a slot before its launch; 0 if it launched on arrival.
    package internal(set) var lateness = Histogram(
        bounds: [
            1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000,
        ]
    )
    /// The time from the launch of a push to its end, by the position of the outcome.
    private var durations = Array(
        repeating: Histogram(
            bounds: [
                5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000,
                600_000,
            ]
        ),
        count: WakeOutcome.allCases.count
    )

    /// The time from the launch of a task or session to its end, by the position of its kind.
    private var taskDurations = Array(
        repeating: Histogram(
            bounds: [
                10, 100, 1_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_200_000, 3_600_000,
            ]
        ),
        count: TaskKind.allCases.count
    )

    package subscript(outcome: WakeOutcome) -> Histogram { self.durations[outcome.place] }

    package subscript(kind: TaskKind) -> Histogram { self.taskDurations[kind.place] }

    /// Subtracts the counts added between two earlier states.
    package mutating func takeBack(from earlier: WakeTimes, to later: WakeTimes) {
        self.lateness.takeBack(from: earlier.lateness, to: later.lateness)
        for place in self.durations.indices {
            self.durations[place].takeBack(from: earlier.durations[place], to: later.durations[place])
        }
        for place in self.taskDurations.indices {
            self.taskDurations[place].takeBack(from: earlier.taskDurations[place], to: later.taskDurations[place])
        }
    }

    mutating func ended(_ outcome: LaunchOutcome, after milliseconds: Int64) {
        switch outcome {
        case .push(let outcome): self.durations[outcome.place].record(milliseconds)
        case .task(let kind, _): self.taskDurations[kind.place].record(milliseconds)
        }
    }
}

/// A histogram of measured values with their sum. It is not synchronized.
package struct Histogram: Sendable {
    /// The upper bound of each bucket, in ascending order; one more bucket has no upper bound.
    package let bounds: [Int64]
    /// The number of values in each bucket; the last bucket has no upper bound.
    package private(set) var counts: [Int64]
    package private(set) var sum: Int64 = 0

    package init(bounds: [Int64]) {
        self.bounds = bounds
        self.counts = Array(repeating: 0, count: bounds.count + 1)
    }

    /// The number of values.
    package var count: Int64 { self.counts.reduce(0, +) }

    /// Counts a value, or `times` equal values. Most values are small, so the search starts at the first bucket.
    package mutating func record(_ value: Int64, times: Int64 = 1) {
        var bucket = 0
        while bucket < self.bounds.count, value > self.bounds[bucket] { bucket += 1 }
        self.counts[bucket] += times
        self.sum += value * times
    }

    /// Subtracts the counts added between two earlier states of a histogram with these bounds.
    mutating func takeBack(from earlier: Histogram, to later: Histogram) {
        guard earlier.counts != later.counts else { return }
        for bucket in self.counts.indices { self.counts[bucket] -= later.counts[bucket] - earlier.counts[bucket] }
        self.sum -= later.sum - earlier.sum
    }
}

/// A hash map from wake ids to values.
///
/// It uses open addressing with linear probing and is at most three quarters full. Removing a wake leaves no gap:
/// displaced entries after it move up. Ids serve as their own hash, because their bits are random; ids from a store are
/// trusted. The code is inlinable because unspecialized generic code would be many times slower.
@usableFromInline
package struct WakeMap<Value> {
    @usableFromInline
    struct Place {
        @usableFromInline var wake: WakeID
        /// The value; nil if the cell is free. `wake` is then undefined.
        @usableFromInline var value: Value?

        @inlinable
        init(wake: WakeID, value: Value?) {
            self.wake = wake
            self.value = value
        }
    }

    @inlinable static var placesMin: Int { 4 }
    /// The maximum number of cells that remain allocated when the last wake is removed: enough for 48 wakes.
    @inlinable static var placesKeptMax: Int { 64 }

    /// The cells; their number is 0 or a power of two.
    @usableFromInline var places: [Place] = []
    @usableFromInline var wakeCount = 0

    /// Creates an empty map.
    @inlinable
    package init() {}

    /// The number of wakes.
    @inlinable
    package var count: Int { self.wakeCount }

    @inlinable
    package var isEmpty: Bool { self.wakeCount == 0 }

    /// The number of wakes that fit without growth.
    @inlinable
    package var capacity: Int { self.places.count / 4 * 3 }

    /// Every wake with its value, in an order that depends only on the sequence of insertions and removals.
    @inlinable
    package var all: some Sequence<(wake: WakeID, value: Value)> {
        self.places.lazy.compactMap { place in
            guard let value = place.value else { return nil }
            return (place.wake, value)
        }
    }

    /// The ids of all wakes in the ascending order of their written form.
    @inlinable
    package var sortedWakes: [WakeID] {
        self.all.map(\.wake).sorted { ($0.first, $0.second) < ($1.first, $1.second) }
    }

    @inlinable
    package subscript(wake: WakeID) -> Value? {
        get {
            guard self.wakeCount > 0 else { return nil }
            return self.places[self.place(of: wake)].value
        }
        set {
            if let newValue { self.put(newValue, of: wake) } else { self.remove(wake) }
        }
    }

    @inlinable
    mutating func put(_ value: Value, of wake: WakeID) {
        var place = self.places.isEmpty ? 0 : self.place(of: wake)
        let isNew = self.places.isEmpty || self.places[place].value == nil
        if isNew, self.wakeCount == self.capacity {
            self.grow()
            place = self.place(of: wake)
        }
        self.places[place] = Place(wake: wake, value: value)
        if isNew { self.wakeCount += 1 }
    }

    /// Removes a wake.
    ///
    /// - Returns: its value; nil if it was not in the map.
    @inlinable
    @discardableResult
    package mutating func remove(_ wake: WakeID) -> Value? {
        guard self.wakeCount > 0 else { return nil }
        let mask = self.places.count - 1
        var gap = self.place(of: wake)
        guard let value = self.places[gap].value else { return nil }
        self.wakeCount -= 1
        var place = (gap + 1) & mask
        while self.places[place].value != nil {
            // The entry may move up unless its search starts after the gap.
            let distance = (place - self.begin(self.places[place].wake)) & mask
            if distance >= (place - gap) & mask {
                self.places.swapAt(place, gap)
                gap = place
            }
            place = (place + 1) & mask
        }
        self.places[gap].value = nil
        // Free a large array, because each use of `all` would scan it.
        if self.wakeCount == 0, self.places.count > Self.placesKeptMax { self.places = [] }
        return value
    }

    /// Returns the index of a wake's cell, or of the free cell for it. At least one cell is free.
    @inlinable
    func place(of wake: WakeID) -> Int {
        let mask = self.places.count - 1
        var place = self.begin(wake)
        while self.places[place].value != nil, self.places[place].wake != wake { place = (place + 1) & mask }
        return place
    }

    /// Returns the index at which the search for a wake starts. The lowest eight bits of an id choose among the maps of
    /// a `WakeTable`.
    @inlinable
    func begin(_ wake: WakeID) -> Int {
        Int(truncatingIfNeeded: wake.first >> 8) & (self.places.count - 1)
    }

    @inlinable
    mutating func grow() {
        let before = self.places
        let count = Swift.max(2 * before.count, Self.placesMin)
        self.places = Array(repeating: Place(wake: WakeID(random: (0, 0)), value: nil), count: count)
        for place in before where place.value != nil { self.places[self.place(of: place.wake)] = place }
    }
}

/// A hash map for a large number of wake ids, divided to bound the cost of growth.
///
/// It consists of 256 maps, chosen by random bits of an id. Growth of one map moves a few thousand of a million wakes.
/// The code is inlinable because unspecialized generic code would be many times slower.
@usableFromInline
package struct WakeTable<Value> {
    @inlinable static var mapCount: Int { 256 }

    @usableFromInline var maps = [WakeMap<Value>](repeating: WakeMap(), count: Self.mapCount)
    @usableFromInline var wakeCount = 0

    @inlinable
    package init() {}

    @inlinable
    package subscript(wake: WakeID) -> Value? {
        get { self.maps[self.map(wake)][wake] }
        set {
            let map = self.map(wake)
            let before = self.maps[map].count
            self.maps[map][wake] = newValue
            self.wakeCount += self.maps[map].count - before
        }
    }

    /// The number of wakes.
    package var count: Int { self.wakeCount }

    @inlinable
    func map(_ wake: WakeID) -> Int {
        Int(truncatingIfNeeded: wake.first) & (Self.mapCount - 1)
    }
}

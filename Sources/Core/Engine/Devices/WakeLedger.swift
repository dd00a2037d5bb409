package import Policy
public import Wire

/// A wake that ended, remembered for workers that answer late or twice.
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

/// A wake that ended without its worker's doing.
package struct ExpiredWake: Hashable, Sendable {
    package let id: WakeID
    package let reason: ExpirationReason

    package init(id: WakeID, reason: ExpirationReason) {
        self.id = id
        self.reason = reason
    }
}

/// A wake whose deadline is near.
package struct ExpiringWake: Hashable, Sendable {
    package let id: WakeID
    package let deadline: Instant

    package init(id: WakeID, deadline: Instant) {
        self.id = id
        self.deadline = deadline
    }
}

/// Whose wake is whose: those in flight, those that ended and are remembered, those whose deadline is near, and those
/// that expired and whose slot was not yet taken back.
///
/// What is remembered of a wake that ended is in its device's row: the last four of each device, for ten minutes.
package struct WakeLedger: ~Copyable {
    /// How long ended wakes are remembered, in milliseconds.
    static let endedWakeMemory: Int64 = 600_000

    private var devices = WakeTable<DeviceIndex>()
    /// When each device's oldest ended wake is forgotten: a place for each device, however many wakes it ends.
    private var forgetting = DueIndex()
    private var expired = FIFOQueue<ExpiredWake>()
    private var expiring = FIFOQueue<ExpiringWake>()

    /// No wakes.
    package init() {}

    /// The device of a wake in flight, or of one that has ended and is remembered.
    package func device(of wake: WakeID) -> DeviceIndex? { self.devices[wake] }

    /// How many wakes are known by their ids, in flight or ended, and how many devices have ended ones.
    package var known: (ids: Int, devicesWithEnded: Int) { (self.devices.count, self.forgetting.count) }

    /// A wake of this device is in flight.
    package mutating func launched(_ wake: WakeID, _ device: DeviceIndex) { self.devices[wake] = device }

    /// Remembers a wake of this device that has ended; the device's oldest makes room for its newest.
    package mutating func ended(_ wake: EndedWake, _ device: DeviceIndex, in devices: inout DeviceTable) {
        let forgotten = devices[device].ended(wake)
        if let forgotten { self.devices[forgotten.id] = nil }
        self.noteWhenForgotten(device, in: devices)
    }

    /// Forgets the wakes that ended long enough before `now`, of so many devices at most.
    ///
    /// - Returns: whether all of them are forgotten.
    package mutating func forget(at now: Instant, devicesMax: Int, in devices: inout DeviceTable) -> Bool {
        let horizon = now - Self.endedWakeMemory
        for _ in 0..<devicesMax {
            guard let device = self.forgetting.popDue(now) else { return true }
            while let forgotten = devices[device].forgetEndedWake(endedBy: horizon) {
                self.devices[forgotten.id] = nil
            }
            self.noteWhenForgotten(device, in: devices)
        }
        return self.forgetting.first.map { $0 > now } ?? true
    }

    /// A wake ended without its worker's doing: its slot is to be taken back.
    package mutating func expired(_ wake: WakeID, _ reason: ExpirationReason) {
        self.expired.append(ExpiredWake(id: wake, reason: reason))
    }

    /// Whether a wake ended so that was not taken yet.
    package var hasExpired: Bool { !self.expired.isEmpty }

    /// Takes one wake that ended so, the first first.
    package mutating func popExpired() -> ExpiredWake? { self.expired.popFirst() }

    /// The deadline of a wake is near; said perhaps several times.
    package mutating func expiring(_ wake: WakeID, deadline: Instant) {
        self.expiring.append(ExpiringWake(id: wake, deadline: deadline))
    }

    /// True if there is a wake for `popExpiring`.
    package var hasExpiring: Bool { !self.expiring.isEmpty }

    /// Takes one wake whose deadline is near, the first first.
    package mutating func popExpiring() -> ExpiringWake? { self.expiring.popFirst() }

    /// Knows the wakes of a device whose row a store gave back.
    ///
    /// - `inFlight`: its wakes in flight.
    /// - Returns: false when one of them is known as another's; it must be no other's.
    package mutating func restore(
        _ device: DeviceIndex,
        inFlight: [WakeID],
        in devices: borrowing DeviceTable
    ) -> Bool {
        let ended = devices[device].endedWakes?.elements.map(\.id) ?? []
        for wake in ended + inFlight {
            guard self.devices[wake] == nil else { return false }
            self.devices[wake] = device
        }
        self.noteWhenForgotten(device, in: devices)
        return true
    }

    /// Forgets the wakes of a device, which is forgotten itself; `removeAll` forgets the rest.
    ///
    /// - `inFlight`: its wakes in flight.
    mutating func remove(_ device: borrowing DeviceRecord, inFlight: [WakeID]) {
        for wake in inFlight { self.devices[wake] = nil }
        guard let ended = device.endedWakes else { return }
        for wake in ended.elements { self.devices[wake.id] = nil }
    }

    /// Forgets when ended wakes are forgotten, and which ones expired; the devices of all wakes are forgotten before.
    mutating func removeAll() {
        precondition(self.devices.count == 0, "every wake was one of a device")
        self.forgetting.removeAll()
        self.expired.removeAll()
    }

    private mutating func noteWhenForgotten(_ device: DeviceIndex, in devices: borrowing DeviceTable) {
        let oldest = devices[device].endedWakes?.first
        self.forgetting.set(device, to: oldest.map { $0.at + Self.endedWakeMemory })
    }
}

/// The last four of something, the oldest first.
package struct Ring<Element> {
    static var capacity: Int { 4 }
    private var slots = InlineArray<4, Element?>(repeating: nil)

    /// An empty ring.
    package init() {}

    /// Adds an element; the oldest makes room.
    ///
    /// - Returns: the element that made room.
    package mutating func append(_ element: Element) -> Element? {
        for index in 0..<Self.capacity where self.slots[index] == nil {
            self.slots[index] = element
            return nil
        }
        return self.shift(element)
    }

    /// Takes the oldest out if it satisfies `condition`.
    package mutating func popFirst(where condition: (Element) -> Bool) -> Element? {
        guard let first = self.slots[0], condition(first) else { return nil }
        return self.shift(nil)
    }

    /// The newest element that satisfies `condition`.
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

    /// How many elements satisfy `condition`.
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

/// How long launches were waited for and wakes took since the process began, in milliseconds of policy time.
///
/// Counted where a wake is launched and where it ends; a push that only waits costs nothing.
package struct WakeTimes: Sendable {
    /// From the moment when a push waited for nothing but a worker to its launch; 0 when it launched as it came.
    package internal(set) var lateness = Histogram(
        bounds: [
            1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000,
        ]
    )
    /// From the launch to the end, by the place of the outcome.
    private var durations = Array(
        repeating: Histogram(
            bounds: [
                5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000,
                600_000,
            ]
        ),
        count: WakeOutcome.allCases.count
    )

    /// From the launch of a task or a session to the end, by the place of its kind.
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

    /// What was counted between two moments did not happen.
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

/// How often a measured value fell below each of some bounds, and the sum of all values; plain counting, one owner.
package struct Histogram: Sendable {
    /// The greatest value of each bucket, rising; one more bucket takes what is greater than all of them.
    package let bounds: [Int64]
    /// How many values each bucket got, that of the greatest values last.
    package private(set) var counts: [Int64]
    package private(set) var sum: Int64 = 0

    package init(bounds: [Int64]) {
        self.bounds = bounds
        self.counts = Array(repeating: 0, count: bounds.count + 1)
    }

    /// How many values there were.
    package var count: Int64 { self.counts.reduce(0, +) }

    /// Counts a value that was measured, perhaps several times. Most values are small, so the search begins there.
    package mutating func record(_ value: Int64, times: Int64 = 1) {
        var bucket = 0
        while bucket < self.bounds.count, value > self.bounds[bucket] { bucket += 1 }
        self.counts[bucket] += times
        self.sum += value * times
    }

    /// What was counted between two moments of a histogram of these bounds is counted no more.
    mutating func takeBack(from earlier: Histogram, to later: Histogram) {
        guard earlier.counts != later.counts else { return }
        for bucket in self.counts.indices { self.counts[bucket] -= later.counts[bucket] - earlier.counts[bucket] }
        self.sum -= later.sum - earlier.sum
    }
}

/// Something of each of some wakes, found by their ids.
///
/// It is open addressing with linear probing, at most three quarters full. A wake that is taken out leaves no gap: what
/// was put behind it for want of room moves up. Bits of an id say where the search for it begins; whoever launches a
/// wake draws them at random, and a store is trusted to give back what was drawn. Other modules have it made for their
/// own values, as generic code that is not would be many times slower.
@usableFromInline
package struct WakeMap<Value> {
    @usableFromInline
    struct Place {
        @usableFromInline var wake: WakeID
        /// Nil where the place is free; `wake` means nothing then.
        @usableFromInline var value: Value?

        @inlinable
        init(wake: WakeID, value: Value?) {
            self.wake = wake
            self.value = value
        }
    }

    @inlinable static var placesMin: Int { 4 }
    /// The most places that are kept when the last wake is taken out: those of 48 wakes.
    @inlinable static var placesKeptMax: Int { 64 }

    /// None, or a power of two.
    @usableFromInline var places: [Place] = []
    @usableFromInline var wakeCount = 0

    /// No wakes.
    @inlinable
    package init() {}

    /// How many wakes there are.
    @inlinable
    package var count: Int { self.wakeCount }

    @inlinable
    package var isEmpty: Bool { self.wakeCount == 0 }

    /// How many wakes there may be before it grows.
    @inlinable
    package var capacity: Int { self.places.count / 4 * 3 }

    /// Every wake with its value, in an order that hangs on what was put in and taken out, and on nothing else.
    @inlinable
    package var all: some Sequence<(wake: WakeID, value: Value)> {
        self.places.lazy.compactMap { place in
            guard let value = place.value else { return nil }
            return (place.wake, value)
        }
    }

    /// The ids of all wakes from the lowest to the highest, as they are written.
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

    /// Takes a wake out.
    ///
    /// - Returns: its value; nil when it was not there.
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
            // It may move up unless its search begins behind the gap.
            let distance = (place - self.begin(self.places[place].wake)) & mask
            if distance >= (place - gap) & mask {
                self.places.swapAt(place, gap)
                gap = place
            }
            place = (place + 1) & mask
        }
        self.places[gap].value = nil
        // What thousands have left would be kept, and looked through whenever `all` is.
        if self.wakeCount == 0, self.places.count > Self.placesKeptMax { self.places = [] }
        return value
    }

    /// The place of a wake, or the free one that it would have. There is a free one at least.
    @inlinable
    func place(of wake: WakeID) -> Int {
        let mask = self.places.count - 1
        var place = self.begin(wake)
        while self.places[place].value != nil, self.places[place].wake != wake { place = (place + 1) & mask }
        return place
    }

    /// Where the search for a wake begins. The lowest eight bits choose among the maps of a `WakeTable`.
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

/// Something of each of many wakes, found by their ids.
///
/// It is 256 maps, which the random bits of an id choose from: when one grows, a few thousand wakes are moved, and not
/// all of a million at once. Other modules have it made for their own values, as generic code that is not would be many
/// times slower.
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

    /// How many wakes there are.
    package var count: Int { self.wakeCount }

    @inlinable
    func map(_ wake: WakeID) -> Int {
        Int(truncatingIfNeeded: wake.first) & (Self.mapCount - 1)
    }
}

public import Wire

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

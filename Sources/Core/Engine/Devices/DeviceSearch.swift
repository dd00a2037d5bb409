import Policy
package import Wire

/// Which devices somebody asks for; nil is any.
package struct DeviceFilter: Hashable, Sendable {
    /// What becomes of a device's push.
    package enum State: String, CaseIterable, Sendable {
        /// A push waits for its time.
        case pending
        /// A wake is in flight, whatever waits besides.
        case inFlight
        /// A push waits, and a hold applies.
        case held
        /// Nothing waits.
        case idle
    }

    package var state: State?
    /// A hold that applies to what waits.
    package var hold: HoldCode?

    package init(state: State?, hold: HoldCode?) {
        self.state = state
        self.hold = hold
    }

    package func takes(_ device: DeviceSnapshot) -> Bool {
        if let state, state != device.pushState { return false }
        return self.hold.map { device.held.contains($0) } ?? true
    }
}

extension DeviceSnapshot {
    /// What becomes of its push.
    package var pushState: DeviceFilter.State {
        if self.wake != nil { return .inFlight }
        if self.state.pending == nil { return .idle }
        return self.held.isEmpty ? .pending : .held
    }
}

/// A search through all registered devices for the first ones of them in the order of tokens, some devices at a time.
///
/// The table of devices has no order, and none is kept for those who list them: a search passes over the whole table,
/// and keeps the first tokens that it has come by.
package struct DeviceSearch: Sendable {
    private let topics: Set<TopicIndex>?
    private let after: DeviceToken?
    private let countMax: Int
    /// The place that is looked at next.
    private var next = 0
    /// What was found: a heap, of which the last token is the first element.
    private var heap: [DeviceToken] = []

    /// - Parameters:
    ///   - topics: of which topics; nil for any.
    ///   - after: only tokens behind this one.
    ///   - countMax: the most tokens, at least 1.
    package init(topics: Set<TopicIndex>?, after: DeviceToken?, countMax: Int) {
        self.topics = topics
        self.after = after
        self.countMax = countMax
    }

    /// Whether as many were found as may be: there may be more behind them.
    package var isFull: Bool { self.heap.count == self.countMax }

    /// What was found, in order.
    package var tokens: [DeviceToken] { self.heap.sorted { $0.isBefore($1) } }

    fileprivate mutating func look(at devices: borrowing DeviceTable, placesMax: Int) -> Bool {
        guard self.topics?.isEmpty != true else { return true }
        let end = min(devices.count, self.next + placesMax)
        while self.next < end {
            let device = DeviceIndex(rawValue: UInt32(self.next))
            self.next += 1
            guard devices[device].isRegistered else { continue }
            if let topics, !topics.contains(devices[device].topic) { continue }
            self.take(devices[device].token.token)
        }
        return self.next == devices.count
    }

    private mutating func take(_ token: DeviceToken) {
        if let after, !after.isBefore(token) { return }
        guard self.isFull else {
            self.heap.append(token)
            var place = self.heap.count - 1
            while place > 0, self.heap[(place - 1) / 2].isBefore(self.heap[place]) {
                self.heap.swapAt(place, (place - 1) / 2)
                place = (place - 1) / 2
            }
            return
        }
        guard token.isBefore(self.heap[0]) else { return }
        self.heap[0] = token
        var place = 0
        while true {
            var last = place
            for child in [2 * place + 1, 2 * place + 2] where child < self.heap.count {
                if self.heap[last].isBefore(self.heap[child]) { last = child }
            }
            guard last != place else { return }
            self.heap.swapAt(place, last)
            place = last
        }
    }
}

extension EmbeddedEngine {
    /// Goes on with a search, by so many devices at most.
    ///
    /// - Returns: whether all devices were looked at.
    package func look(_ search: inout DeviceSearch, placesMax: Int) -> Bool {
        search.look(at: self.devices, placesMax: placesMax)
    }
}

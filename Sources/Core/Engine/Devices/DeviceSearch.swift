package import Policy
package import Wire

/// A filter for devices; nil fields match anything.
package struct DeviceFilter: Hashable, Sendable {
    /// The state of a device's push.
    package enum State: String, CaseIterable, Sendable {
        /// A push is pending.
        case pending
        /// A wake is in flight, with or without a pending push.
        case inFlight
        /// A push is pending and a hold applies, also while an earlier wake is in flight. The statistics count these
        /// devices as held.
        case held
        /// Nothing is pending or in flight.
        case idle
    }

    package var state: State?
    /// The first hold that applies to the pending push, as in the statistics.
    package var hold: Hold?
    /// The first digits of the device token.
    package var prefix: TokenPrefix?

    package init(state: State?, hold: Hold?, prefix: TokenPrefix? = nil) {
        self.state = state
        self.hold = hold
        self.prefix = prefix
    }

    package func takes(_ device: DeviceSnapshot) -> Bool {
        if let prefix, !prefix.begins(device.token) { return false }
        if let state, state == .held ? device.held.isEmpty : state != device.pushState { return false }
        return self.hold.map { device.held.first == $0 } ?? true
    }
}

extension DeviceSnapshot {
    /// The state of the device's push.
    package var pushState: DeviceFilter.State {
        if self.wake != nil { return .inFlight }
        if self.state.pending == nil { return .idle }
        return self.held.isEmpty ? .pending : .held
    }
}

/// An incremental search through all registered devices for the first devices in an order.
///
/// The device table is not sorted. A search in the order of tokens reads the table's buckets one after another until it
/// has found enough devices, and a search for waiting devices reads the table's set of these. Every other search reads
/// all devices and remembers the first ones so far, as does a search that finds few devices in the buckets or the set.
package struct DeviceSearch: Sendable {
    /// An order of devices.
    package enum Order: String, CaseIterable, Sendable {
        case token
        /// Only devices with a pending push, the one with the oldest push first.
        case waiting
        /// The device with the newest push or launch first.
        case recent

        /// The orders in which devices are listed.
        package static let listed: [Order] = [.token, .waiting]
    }

    /// A device that was found. In a search in token order, `since` is equal for all devices.
    private struct Found {
        let since: Instant
        let token: DeviceToken

        func isBefore(_ other: Found) -> Bool {
            self.since == other.since ? self.token.isBefore(other.token) : self.since < other.since
        }
    }

    /// The next devices to examine.
    private enum Place {
        /// A device of a bucket; `none` for the next bucket.
        case inBucket(Int, DeviceIndex)
        /// The set of waiting devices has to be read.
        case waiting
        /// The members of the set that are left, the next one last.
        case waitingDevices([LongestWaiting.Member])
        /// The row number of a device.
        case row(Int)
    }

    /// The number of devices in buckets that are examined before the search reads all devices instead.
    private static let inBucketsMax = 16_384

    private let topics: Set<TopicIndex>?
    private let order: Order
    private let after: DeviceToken?
    private let countMax: Int
    private var place: Place
    private var examinedInBuckets = 0
    /// The devices found so far, in any order: the first `countMax`, and fewer than `countMax` others.
    private var found: [Found] = []
    /// The last of the first `countMax` devices when `found` was shortened last; nil if there are fewer.
    private var last: Found?

    /// - Parameters:
    ///   - topics: the topics to search; nil for any.
    ///   - order: the order of the devices that are found.
    ///   - after: the token after which to start, in token order.
    ///   - countMax: the maximum number of devices, at least 1.
    package init(topics: Set<TopicIndex>?, order: Order = .token, after: DeviceToken?, countMax: Int) {
        self.topics = topics
        self.order = order
        self.after = after
        self.countMax = countMax
        self.place =
            switch order {
            case .token: .inBucket((after.map { TokenBuckets.bucket($0.beginning) } ?? 0) - 1, .none)
            case .waiting: .waiting
            case .recent: .row(0)
            }
    }

    /// True if `countMax` devices were found; more may follow.
    package var isFull: Bool { self.last != nil }

    /// The tokens found so far, in order.
    package var tokens: [DeviceToken] { self.found.sorted { $0.isBefore($1) }.prefix(self.countMax).map(\.token) }

    /// - `isWanted`: returns true for a device that belongs to the result; nil if all devices do.
    fileprivate mutating func look(
        at engine: DeviceEngine,
        placesMax: Int,
        isWanted: ((DeviceIndex) -> Bool)?
    ) -> Bool {
        guard self.topics?.isEmpty != true else { return true }
        switch self.place {
        case .inBucket(let bucket, let device):
            // After a failure of the store, the engine has only the devices that are durable.
            guard engine.devices.count > placesMax, device == .none || Int(device.rawValue) < engine.devices.count
            else {
                self.restart()
                return self.look(at: engine, placesMax: placesMax, isWanted: isWanted)
            }
            guard engine.devices.addToBuckets(countMax: placesMax) else { return false }
            return self.look(at: engine, bucket, device, placesMax: placesMax, isWanted: isWanted)
        case .waiting:
            guard engine.devices.count > placesMax else {
                self.restart()
                return self.look(at: engine, placesMax: placesMax, isWanted: isWanted)
            }
            guard engine.devices.addToWaiting(countMax: placesMax) else { return false }
            self.place = .waitingDevices(engine.devices.longestWaiting())
            return false
        case .waitingDevices(var members):
            self.place = .row(0)
            for _ in 0..<min(placesMax, members.count) {
                let member = members.removeLast()
                // A device that has launched since may have a later push, before which others were not in the set.
                guard Int(member.device.rawValue) < engine.devices.count,
                    let since = engine.waitingSince(member.device), since <= member.since
                else { continue }
                self.examine(member.device, engine, isWanted)
            }
            guard members.isEmpty else {
                self.place = .waitingDevices(members)
                return false
            }
            if self.isFull || engine.devices.hasAllWaiting { return true }
            engine.devices.refillWaiting()
            self.restart()
            return false
        case .row(let first):
            let end = first + min(max(0, engine.devices.count - first), placesMax)
            for number in first..<end {
                self.examine(DeviceIndex(rawValue: UInt32(number)), engine, isWanted)
            }
            self.place = .row(end)
            return end >= engine.devices.count
        }
    }

    private mutating func look(
        at engine: DeviceEngine,
        _ firstBucket: Int,
        _ firstDevice: DeviceIndex,
        placesMax: Int,
        isWanted: ((DeviceIndex) -> Bool)?
    ) -> Bool {
        var (bucket, device) = (firstBucket, firstDevice)
        for _ in 0..<placesMax {
            while device == .none {
                bucket += 1
                guard bucket < TokenBuckets.count, !self.isFull else { return true }
                device = engine.devices.last(inBucket: bucket)
            }
            self.examine(device, engine, isWanted)
            device = engine.devices.previous(of: device)
        }
        self.place = .inBucket(bucket, device)
        self.examinedInBuckets += placesMax
        if self.examinedInBuckets >= Self.inBucketsMax { self.restart() }
        return false
    }

    /// Begins to read all devices.
    private mutating func restart() {
        self.found.removeAll(keepingCapacity: true)
        self.last = nil
        self.place = .row(0)
    }

    private mutating func examine(
        _ device: DeviceIndex,
        _ engine: DeviceEngine,
        _ isWanted: ((DeviceIndex) -> Bool)?
    ) {
        guard engine.devices[device].isRegistered else { return }
        if let topics, !topics.contains(engine.devices[device].topic) { return }
        var since = Instant.distantPast
        switch self.order {
        case .token: break
        case .waiting:
            guard let pending = engine.devices[device].state.pending else { return }
            since = pending.firstReceivedAt
        case .recent: since = engine.recency(device)
        }
        // A copy of the whole token costs more than everything else here.
        let beginning = engine.devices[device].token.beginning
        if let after, beginning < after.beginning { return }
        if let last, (since, beginning) > (last.since, last.token.beginning) { return }
        let found = Found(since: since, token: engine.devices[device].token.token)
        if let last, !found.isBefore(last) { return }
        if let isWanted, !isWanted(device) { return }
        self.take(found)
    }

    private mutating func take(_ found: Found) {
        if let after, !after.isBefore(found.token) { return }
        self.found.append(found)
        guard self.found.count == (self.isFull ? 2 : 1) * self.countMax else { return }
        self.found.sort { $0.isBefore($1) }
        self.found.removeLast(self.found.count - self.countMax)
        self.last = self.found.last
    }
}

extension DeviceEngine {
    /// Continues a search, and examines at most `placesMax` rows.
    ///
    /// - `filter`: the filter for devices; nil for all of them.
    /// - Returns: true if the search is complete.
    package func look(_ search: inout DeviceSearch, placesMax: Int, filter: DeviceFilter? = nil) -> Bool {
        let isWanted = filter.map { filter in { filter.takes(self.snapshot($0)) } }
        return search.look(at: self, placesMax: placesMax, isWanted: isWanted)
    }

    /// Returns the sort key of a device in the order `recent`, which is lower for newer activity.
    package func recency(_ device: DeviceIndex) -> Instant {
        let state = self.devices[device].state
        let latest = max(state.pending?.receivedAt ?? .distantPast, state.spacing.lastLaunch)
        return latest == .distantPast ? .distantFuture : Instant(milliseconds: -latest.milliseconds)
    }

    /// Returns the arrival time of the oldest push coalesced in the device's pending push; nil if none is pending.
    package func waitingSince(_ device: DeviceIndex) -> Instant? { self.devices[device].state.pending?.firstReceivedAt }
}

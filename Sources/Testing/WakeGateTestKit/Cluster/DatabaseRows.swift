package import Engine
package import Policy
package import Wire

/// The tables of a simulated database, as of its last commit.
package struct DatabaseRows {
    package struct Device {
        package fileprivate(set) var device: SharedDevice
        package fileprivate(set) var topic: TopicIndex
    }

    package struct Wake {
        package let device: DeviceToken
        package let holder: GatewayNumber
        package let deadline: Instant
        /// nil while it is in flight.
        package fileprivate(set) var ended: Instant?
    }

    /// Of which gateway's connection a row of counts is; 0 for gateways that are buried.
    struct Counter: Hashable {
        let gateway: Int32
        let connection: Int
    }

    struct RejectionKey: Hashable {
        let gateway: GatewayNumber
        let topic: UInt32
    }

    /// How long the ids of ended wakes lead to their devices, in milliseconds.
    private static let endedWakeMemory: Int64 = 600_000

    package private(set) var devices: [DeviceToken: Device] = [:]
    package private(set) var due: [DeviceToken: Instant] = [:]
    package private(set) var ready: [DeviceToken: [SharedDeviceChange.ReadyLane]] = [:]
    package private(set) var wakes: [WakeID: Wake] = [:]
    /// By number.
    package internal(set) var topics: [String] = []
    private var counts: [Counter: [TopicIndex: Books]] = [:]
    private var rejections: [RejectionKey: [UInt8]] = [:]
    /// What is kept under names, and how often each was kept.
    package internal(set) var values: [String: (content: [UInt8], version: Int)] = [:]
    package private(set) var events: [HistoryEvent] = []
    /// The latest moment of a commit, in policy time.
    package private(set) var lastMoment = Instant.distantPast

    init() {}

    /// What is counted.
    package func total(of topics: [TopicIndex]? = nil) -> ClusterCounts {
        var total = Books()
        var byTopic: [TopicIndex: Books] = [:]
        for row in self.counts.values {
            for (topic, books) in row {
                total += books
                if topics?.contains(topic) ?? true { byTopic[topic, default: Books()] += books }
            }
        }
        let rejections = self.rejections.sorted { ($0.key.gateway, $0.key.topic) < ($1.key.gateway, $1.key.topic) }
        return ClusterCounts(
            total: total,
            byTopic: byTopic,
            rejections: rejections.map { (topic: $0.key.topic, content: $0.value) }
        )
    }

    /// The devices of wakes that are in flight, or ended less than ten minutes before `now`.
    func devices(of wakes: [WakeID], at now: Instant) -> [DeviceToken] {
        wakes.compactMap { id in
            guard let wake = self.wakes[id] else { return nil }
            if let ended = wake.ended, ended + Self.endedWakeMemory <= now { return nil }
            return wake.device
        }
    }

    /// Devices with wakes in flight that a gateway holds.
    func devices(heldBy gateway: GatewayNumber) -> [DeviceToken] {
        Set(self.wakes.values.filter { $0.holder == gateway && $0.ended == nil }.map(\.device)).inOrder
    }

    /// A device's wakes in flight that a gateway holds.
    func wakes(of device: DeviceToken, heldBy gateway: GatewayNumber) -> [WakeID] {
        let wakes = self.wakes.filter { _, wake in
            wake.device == device && wake.holder == gateway && wake.ended == nil
        }
        return wakes.keys.sorted { ($0.first, $0.second) < ($1.first, $1.second) }
    }

    /// Devices with something due by `now`, the first first.
    func devicesDue(by now: Instant) -> [DeviceToken] {
        let due = self.due.filter { $0.value <= now }
        let byMoment = Dictionary(grouping: due, by: \.value)
        return byMoment.sorted { $0.key < $1.key }.flatMap { $0.value.map(\.key).inOrder }
    }

    /// Devices with a lane that waits for a slot and is asked for, the one that has waited longest first.
    func devicesReady(_ plan: ReadyPlan) -> [DeviceToken] {
        let devices = Set(plan.devices)
        var since: [Instant: [DeviceToken]] = [:]
        for (token, lanes) in self.ready where self.devices[token]?.topic == plan.topic {
            guard devices.isEmpty || devices.contains(token) else { continue }
            let first = lanes.filter { plan.takes($0.target) }.map(\.since).min()
            if let first { since[first, default: []].append(token) }
        }
        return since.sorted { $0.key < $1.key }.flatMap { $0.value.inOrder }
    }

    /// Devices that have requests, sessions or habits, behind `token` in the order of tokens.
    func devicesWithTasks(_ topic: TopicIndex?, after token: DeviceToken?) -> [DeviceToken] {
        let devices = self.devices.filter { key, row in
            guard !row.device.tasks.isEmpty, topic.map({ $0 == row.topic }) ?? true else { return false }
            return token.map { $0.precedes(key) } ?? true
        }
        return devices.map(\.key).inOrder
    }

    /// Devices of these topics, or of any, behind `token` in the order of tokens.
    func devices(_ topics: [TopicIndex]?, after token: DeviceToken?) -> [DeviceToken] {
        let devices = self.devices.filter { key, row in
            (topics.map { $0.contains(row.topic) } ?? true) && (token.map { $0.precedes(key) } ?? true)
        }
        return devices.map(\.key).inOrder
    }

    /// The topics of which something waits for a slot, and since when the longest does.
    var readyTopics: [(topic: TopicIndex, since: Instant)] {
        var first: [TopicIndex: Instant] = [:]
        for (token, lanes) in self.ready {
            guard let topic = self.devices[token]?.topic, let since = lanes.map(\.since).min() else { continue }
            first[topic] = first[topic].map { $0 < since ? $0 : since } ?? since
        }
        return first.sorted { $0.key.rawValue < $1.key.rawValue }.map { (topic: $0.key, since: $0.value) }
    }

    /// Whether a device waits there that no one has yet.
    func has(_ token: DeviceToken) -> Bool { self.devices[token] != nil }

    // MARK: Changes

    /// Everything of a commit is there from now on.
    ///
    /// - Returns: the wakes it ended that others hold.
    mutating func take(_ commit: DatabaseCommit) -> [HeldElsewhere] {
        var elsewhere: [HeldElsewhere] = []
        for change in commit.writes.devices {
            let token = change.device.token
            self.devices[token] = Device(device: change.device, topic: change.topic)
            if case .at(let moment) = change.due { self.due[token] = moment }
            if let ready = change.ready { self.ready[token] = ready.isEmpty ? nil : ready }
            for wake in change.launched {
                self.wakes[wake.wake] = Wake(device: token, holder: commit.gateway, deadline: wake.deadline)
            }
            for id in change.ended {
                guard let wake = self.wakes[id] else { continue }
                self.wakes[id]?.ended = commit.moment
                if wake.holder != commit.gateway { elsewhere.append(HeldElsewhere(wake: id, holder: wake.holder)) }
            }
        }
        let counter = Counter(gateway: commit.gateway.rawValue, connection: commit.connection)
        self.counts[counter, default: [:]].merge(commit.counts) { _, new in new }
        for (topic, content) in commit.writes.rejections {
            self.rejections[RejectionKey(gateway: commit.gateway, topic: topic)] = content
        }
        self.events += commit.writes.events
        if self.lastMoment < commit.moment { self.lastMoment = commit.moment }
        return elsewhere
    }

    /// What a dead gateway counted is counted by the dead.
    mutating func bury(_ gateway: GatewayNumber) {
        let dead = Counter(gateway: 0, connection: 0)
        for (counter, row) in self.counts where counter.gateway == gateway.rawValue {
            self.counts[counter] = nil
            for (topic, books) in row { self.counts[dead, default: [:]][topic, default: Books()] += books }
        }
    }
}

/// A commit on its way into the tables.
struct DatabaseCommit {
    let gateway: GatewayNumber
    let connection: Int
    /// Of the step that it is of, in policy time.
    let moment: Instant
    let writes: ClusterWrites
    /// What the connection has counted since its gateway was attached, of the topics that changed.
    let counts: [TopicIndex: Books]
}

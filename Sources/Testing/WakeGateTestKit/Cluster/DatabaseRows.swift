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

/// One transaction of a simulated database, as its server knows it, and how far its client has come with it.
final class DatabaseTransaction {
    /// What the server has done of it.
    enum State {
        /// Nothing, or locks were taken and another one's is waited for.
        case loading
        /// Rows were read.
        case open
        /// A commit waits for another commit, which inserts the same device.
        case inserting
        /// A commit is written, and a standby does not have it yet.
        case replicating
        case committed([HeldElsewhere])
        case rolledBack
    }

    /// What its client waits for.
    enum Wait {
        case rows, nothing, end
    }

    let number: TransactionNumber
    let store: SimulatedClusterStore
    let gateway: GatewayNumber
    /// The place of its connection among its store's.
    let connection: Int
    let plan: LoadPlan

    var state = State.loading
    var wait = Wait.rows
    /// The client has lost the connection: what was on its way does not arrive.
    var isCut = false
    /// The client asks, over another connection, what has become of it.
    var isInDoubt = false
    /// The client has given it up.
    var isAbandoned = false
    /// When its rows were read, in policy time.
    var moment = Instant.distantPast
    /// Whose locks it has, and whose it takes yet, in order.
    var locked: [DeviceToken] = []
    var wanted: [DeviceToken] = []
    /// The number of locks that it has waited for.
    var waitCount = 0
    /// Devices that were there when it looked for them.
    var found: Set<DeviceToken> = []
    var commit: DatabaseCommit?
    /// What its connection has counted when it is committed, of the topics that change.
    var counts: [TopicIndex: Books] = [:]

    init(
        _ number: TransactionNumber,
        _ plan: LoadPlan,
        of store: SimulatedClusterStore,
        _ gateway: GatewayNumber,
        connection: Int
    ) {
        self.number = number
        self.plan = plan
        self.store = store
        self.gateway = gateway
        self.connection = connection
    }

    var isOver: Bool {
        switch self.state {
        case .committed, .rolledBack: true
        case .loading, .open, .inserting, .replicating: false
        }
    }
}

/// What a simulated database has seen, in its order, for checkers that trust no gateway.
package struct DatabaseLog {
    /// One commit that is durable.
    package struct Commit {
        /// In virtual time.
        package let at: Int64
        /// Of the step, in policy time.
        package let moment: Instant
        package let gateway: GatewayNumber
        package let devices: [DeviceToken]
        package let launched: [(wake: WakeID, device: DeviceToken)]
        package let ended: [WakeID]
        package let events: [HistoryEvent]
    }

    package internal(set) var commits: [Commit] = []
    /// The commit that launched each wake, and the one that ended it, by their places in `commits`.
    package private(set) var launches: [WakeID: Int] = [:]
    package private(set) var ends: [WakeID: Int] = [:]
    /// When each gateway was found dead, in virtual time.
    package internal(set) var deaths: [GatewayNumber: Int64] = [:]
    /// How often each thing has happened.
    package private(set) var counts: [Event: Int] = [:]
    /// The rules that a gateway broke.
    package internal(set) var misuses: [String] = []

    package enum Event: String, CaseIterable, Sendable {
        case load, read, commit, wait, lockTimeout, passedOver, insertConflict, deadlock, refusal, full, fenced
        case lostReply, lostCommit, lostLoad, doubtCommitted, doubtRolledBack
        case attached, controlCut, timeout, death, burial, idleRollback
        case failover, survivor, castaway, clockBack, clockForth
        case lostNotice, doubledNotice, notice
    }

    init() {}

    mutating func note(_ event: Event, _ count: Int = 1) { self.counts[event, default: 0] += count }

    mutating func note(_ commit: DatabaseCommit, at now: Int64) {
        let launched = commit.writes.devices.flatMap { change in
            change.launched.map { (wake: $0.wake, device: change.device.token) }
        }
        let ended = commit.writes.devices.flatMap(\.ended)
        for wake in launched where self.launches.updateValue(self.commits.count, forKey: wake.wake) != nil {
            self.misuses.append("wake \(wake.wake) is launched twice")
        }
        for wake in ended where self.ends.updateValue(self.commits.count, forKey: wake) != nil {
            self.misuses.append("wake \(wake) is ended twice")
        }
        self.commits.append(
            Commit(
                at: now,
                moment: commit.moment,
                gateway: commit.gateway,
                devices: commit.writes.devices.map(\.device.token),
                launched: launched,
                ended: ended,
                events: commit.writes.events
            )
        )
        self.note(.commit)
    }
}

/// What is to happen at moments of virtual time: the first first, and of one moment in the order in which it was
/// planned.
package struct EventCalendar {
    private var queue = MomentQueue<() -> Void>()

    package init() {}

    /// The moment of the first event; nil when nothing is planned.
    package var firstAt: Int64? { self.queue.first?.moment }

    package mutating func plan(at moment: Int64, _ event: @escaping () -> Void) {
        self.queue.insert(event, at: moment)
    }

    /// Takes the first event.
    package mutating func popFirst() -> (at: Int64, event: () -> Void)? {
        self.queue.popDue(.max).map { ($0.moment, $0.value) }
    }
}

extension ReadyPlan {
    /// Whether a lane that waits for `target` is asked for.
    func takes(_ target: LaunchTarget) -> Bool {
        switch target.kind {
        case .push: return self.takesPushes
        case .urlSession: return Self.any(of: self.sessions, matches: target.name)
        case .appRefresh, .processing, .continued:
            return Self.any(of: self.tasks, matches: target.name)
                && Set(target.resources).isSubset(of: self.resources)
        }
    }

    private static func any(of patterns: [String], matches name: String) -> Bool {
        patterns.contains { pattern in
            guard pattern.hasSuffix(".*") else { return pattern == name }
            return name.hasPrefix(pattern.dropLast()) && name.utf8.count >= pattern.utf8.count
        }
    }
}

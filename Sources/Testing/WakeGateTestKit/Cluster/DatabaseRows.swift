package import Engine
package import Policy
package import Wire

/// The tables of a simulated database, as of its last commit.
package struct DatabaseRows {
    package struct Device {
        package internal(set) var device: SharedDevice
        package fileprivate(set) var topic: TopicIndex
    }

    package struct Wake {
        package let device: DeviceToken
        package let holder: GatewayNumber
        /// The time when the wake ended; nil while it is in flight.
        package fileprivate(set) var ended: Instant?
    }

    /// The key of a row of counters: a gateway and one of its connections. Gateway 0 has the counters of all dead
    /// gateways.
    struct Counter: Hashable {
        let gateway: Int32
        let connection: Int
    }

    struct RejectionKey: Hashable {
        let gateway: GatewayNumber
        let topic: UInt32
    }

    /// The time in milliseconds for which the database stores the devices of ended wakes.
    private static let endedWakeMemory: Int64 = 600_000

    package internal(set) var devices: [DeviceToken: Device] = [:]
    package private(set) var due: [DeviceToken: Instant] = [:]
    package private(set) var ready: [DeviceToken: [SharedDeviceChange.ReadyLane]] = [:]
    package private(set) var wakes: [WakeID: Wake] = [:]
    /// The topics by number.
    package internal(set) var topics: [String] = []
    private var counts: [Counter: [TopicIndex: ActivityCounters]] = [:]
    private var rejections: [RejectionKey: [UInt8]] = [:]
    /// The values by name. `version` is the number of times that a value was stored.
    package internal(set) var values: [String: (content: [UInt8], version: Int)] = [:]
    package private(set) var events: [HistoryEvent] = []
    /// The latest policy time of any commit.
    package private(set) var lastMoment = Instant.distantPast

    /// Returns the sums of all counters, in total and for each of `topics`. If `topics` is nil, includes every topic.
    package func total(of topics: [TopicIndex]? = nil) -> ClusterCounts {
        var total = ActivityCounters()
        var byTopic: [TopicIndex: ActivityCounters] = [:]
        for row in self.counts.values {
            for (topic, counters) in row {
                total += counters
                if topics?.contains(topic) ?? true { byTopic[topic, default: ActivityCounters()] += counters }
            }
        }
        let rejections = self.rejections.sorted { ($0.key.gateway, $0.key.topic) < ($1.key.gateway, $1.key.topic) }
        return ClusterCounts(
            total: total,
            byTopic: byTopic,
            rejections: rejections.map { (topic: $0.key.topic, content: $0.value) }
        )
    }

    /// Returns the devices of the given wakes. Omits wakes that ended ten minutes or more before `now`.
    func devices(of wakes: [WakeID], at now: Instant) -> [DeviceToken] {
        wakes.compactMap { id in
            guard let wake = self.wakes[id] else { return nil }
            if let ended = wake.ended, ended + Self.endedWakeMemory <= now { return nil }
            return wake.device
        }
    }

    /// Returns the devices with wakes in flight from a gateway.
    func devices(heldBy gateway: GatewayNumber) -> [DeviceToken] {
        Set(self.wakes.values.filter { $0.holder == gateway && $0.ended == nil }.map(\.device)).inOrder
    }

    /// Returns the wakes of a device that are in flight from a gateway.
    func wakes(of device: DeviceToken, heldBy gateway: GatewayNumber) -> [WakeID] {
        let wakes = self.wakes.filter { _, wake in
            wake.device == device && wake.holder == gateway && wake.ended == nil
        }
        return wakes.keys.sorted { ($0.first, $0.second) < ($1.first, $1.second) }
    }

    /// Returns the devices that are due at `now` or earlier, in the order of their due times.
    func devicesDue(by now: Instant) -> [DeviceToken] {
        let due = self.due.filter { $0.value <= now }
        let byMoment = Dictionary(grouping: due, by: \.value)
        return byMoment.sorted { $0.key < $1.key }.flatMap { $0.value.map(\.key).inOrder }
    }

    /// Returns the devices with a lane that waits for a slot and that the plan selects. The device that has waited
    /// longest is first.
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

    /// Returns the devices that come after `token`, in token order: those of these topics, or of all topics if nil.
    func devices(
        _ topics: [TopicIndex]?,
        after token: DeviceToken?,
        where isWanted: (SharedDevice) -> Bool = { _ in true }
    ) -> [DeviceToken] {
        let devices = self.devices.filter { key, row in
            (topics.map { $0.contains(row.topic) } ?? true) && (token.map { $0.isBefore(key) } ?? true)
                && isWanted(row.device)
        }
        return devices.map(\.key).inOrder
    }

    /// The topics with waiting lanes, each with the time at which its longest-waiting lane began to wait.
    var readyTopics: [(topic: TopicIndex, since: Instant)] {
        var first: [TopicIndex: Instant] = [:]
        for (token, lanes) in self.ready {
            guard let topic = self.devices[token]?.topic, let since = lanes.map(\.since).min() else { continue }
            first[topic] = first[topic].map { $0 < since ? $0 : since } ?? since
        }
        return first.sorted { $0.key.rawValue < $1.key.rawValue }.map { (topic: $0.key, since: $0.value) }
    }

    /// Returns true if the device exists.
    func has(_ token: DeviceToken) -> Bool { self.devices[token] != nil }

    // MARK: Changes

    /// Applies a commit.
    ///
    /// - Returns: the wakes ended by the commit that other gateways launched.
    mutating func take(_ commit: DatabaseCommit) -> [HeldElsewhere] {
        var elsewhere: [HeldElsewhere] = []
        for change in commit.writes.devices {
            let token = change.device.token
            self.devices[token] = Device(device: change.device, topic: change.topic)
            if case .at(let moment) = change.due { self.due[token] = moment }
            if let ready = change.ready { self.ready[token] = ready.isEmpty ? nil : ready }
            for wake in change.launched {
                self.wakes[wake.wake] = Wake(device: token, holder: commit.gateway)
            }
            for id in change.ended {
                guard let wake = self.wakes[id] else { continue }
                self.wakes[id]?.ended = commit.moment
                if wake.holder != commit.gateway { elsewhere.append((wake: id, holder: wake.holder)) }
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

    /// Adds the counters of a dead gateway to those of gateway 0.
    mutating func retire(_ gateway: GatewayNumber) {
        let dead = Counter(gateway: 0, connection: 0)
        for (counter, row) in self.counts where counter.gateway == gateway.rawValue {
            self.counts[counter] = nil
            for (topic, counters) in row {
                self.counts[dead, default: [:]][topic, default: ActivityCounters()] += counters
            }
        }
    }
}

/// A commit that is not yet applied to the tables.
struct DatabaseCommit {
    let gateway: GatewayNumber
    let connection: Int
    /// The policy time of the commit's step.
    let moment: Instant
    let writes: ClusterWrites
    /// The totals of the connection for the topics that changed, since its gateway was attached.
    let counts: [TopicIndex: ActivityCounters]
}

/// A transaction of a simulated database, with its state at the server and at the client.
final class DatabaseTransaction {
    /// The state of the transaction at the server.
    enum State {
        /// The transaction has not started, or is acquiring locks.
        case loading
        /// The rows were read.
        case open
        /// The commit waits for another commit, which inserts the same device.
        case inserting
        /// The commit is written, but not yet replicated to a standby.
        case replicating
        case committed([HeldElsewhere])
        case rolledBack
    }

    /// The event that the client waits for.
    enum Wait {
        case rows, nothing, end
    }

    let number: TransactionNumber
    let store: SimulatedClusterStore
    let gateway: GatewayNumber
    /// The index of the connection in its store.
    let connection: Int
    let plan: LoadPlan

    var state = State.loading
    var wait = Wait.rows
    /// True if the client has lost the connection. Replies that are on their way do not arrive.
    var isCut = false
    /// True if the client queries the transaction's result over another connection.
    var isInDoubt = false
    /// True if the client has abandoned the transaction.
    var isAbandoned = false
    /// The policy time when the rows were read.
    var moment = Instant.distantPast
    /// The devices that the transaction has locked, and in `wanted` the devices that it must still lock, in order.
    var locked: [DeviceToken] = []
    var wanted: [DeviceToken] = []
    /// The number of locks that the transaction had to wait for.
    var waitCount = 0
    /// The devices of the plan that existed when they were looked up.
    var found: Set<DeviceToken> = []
    var commit: DatabaseCommit?
    /// The totals of the connection after the commit, for the topics that the commit changes.
    var counts: [TopicIndex: ActivityCounters] = [:]

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

/// A record of the commits and faults of a simulated database, for checks that are independent of the gateways.
package struct DatabaseLog {
    /// A durable commit.
    package struct Commit {
        /// The virtual time of the commit.
        package let at: Int64
        /// The policy time of the step.
        package let moment: Instant
        package let gateway: GatewayNumber
        package let launched: [(wake: WakeID, device: DeviceToken)]
        package let ended: [WakeID]
        package let events: [HistoryEvent]
    }

    package internal(set) var commits: [Commit] = []
    /// The commit that launched each wake, and in `ends` the commit that ended it, as indexes in `commits`.
    package private(set) var launches: [WakeID: Int] = [:]
    package private(set) var ends: [WakeID: Int] = [:]
    /// The virtual time at which the database detected that each gateway is dead.
    package internal(set) var deaths: [GatewayNumber: Int64] = [:]
    /// The number of occurrences of each event.
    package private(set) var counts: [Event: Int] = [:]
    /// The descriptions of rules that gateways have violated.
    package internal(set) var misuses: [String] = []

    package enum Event: String, CaseIterable, Sendable {
        case load, read, commit, wait, lockTimeout, passedOver, insertConflict, deadlock, refusal, full, fenced
        case lostReply, lostCommit, lostLoad, doubtCommitted, doubtRolledBack
        case attached, controlCut, timeout, death, retirement, idleRollback
        case failover, survivor, castaway, clockBack, clockForth
        case lostNotice, doubledNotice, notice
    }

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
                launched: launched,
                ended: ended,
                events: commit.writes.events
            )
        )
        self.note(.commit)
    }
}

extension ReadyPlan {
    /// Returns true if the plan includes lanes that wait for `target`.
    func takes(_ target: LaunchTarget) -> Bool {
        switch target.kind {
        case .push: return self.takesPushes
        case .urlSession: return self.sessions.contains { IdentifierPattern($0).matches(target.name) }
        case .appRefresh, .processing, .continued:
            return self.tasks.contains { IdentifierPattern($0).matches(target.name) }
                && Set(target.resources).isSubset(of: self.resources)
        }
    }
}

extension Sequence<DeviceToken> {
    /// The tokens in a database's byte order.
    var inOrder: [DeviceToken] { self.sorted { $0.isBefore($1) } }
}

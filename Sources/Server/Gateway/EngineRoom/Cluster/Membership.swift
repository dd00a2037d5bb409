import Engine
import Policy
import Wire

/// This gateway among the others: its number, what it says of itself, who is dead.
struct Membership {
    /// The number of this run; nil before the first.
    private(set) var number: GatewayNumber?
    /// How many devices the store has, as of the last second.
    private(set) var deviceCount = 0
    /// The keys that gateways do not have alike, in the order of their names.
    private(set) var unlike: [String] = []
    /// Dead gateways whose wakes are to be lost, by number.
    private var dead: [GatewayNumber] = []
    private var isBurying = false
    /// What is said of this gateway, but for its workers.
    private var report: GatewayReport

    init(_ report: GatewayReport) { self.report = report }

    mutating func attached(_ number: GatewayNumber) {
        self.number = number
        self.dead = []
        self.isBurying = false
    }

    /// What must be equal everywhere is this here.
    mutating func configured(_ configuration: EngineConfiguration) {
        self.report.digests = ConfigurationDigests.digests(of: configuration)
    }

    /// What this gateway says of itself.
    func report(_ dispatcher: Dispatcher, topicCount: Int, isDraining: Bool) -> GatewayReport {
        var report = self.report
        report.isDraining = isDraining
        report.wakes = dispatcher.workerCounts(nil).busy
        for number in 0..<UInt32(topicCount) {
            let topic = TopicIndex(rawValue: number)
            let counts = dispatcher.workerCounts(topic)
            guard counts.connected > 0 else { continue }
            report.workers.append(
                GatewayReport.Workers(
                    topic: topic,
                    connected: counts.connected,
                    slots: isDraining ? counts.busy : counts.slots,
                    busy: counts.busy,
                    hearsConditions: dispatcher.hearsConditions(topic)
                )
            )
            let countMax = GatewayReport.offersMax - report.offers.count
            report.offers += dispatcher.offers(topic, countMax: countMax, hasFreeSlots: !isDraining)
        }
        return report
    }

    /// What there is besides this gateway.
    mutating func viewed(_ view: ClusterView, _ remote: RemoteWorkers) {
        self.deviceCount = view.deviceCount
        self.dead = view.dead.filter { $0 != self.number }
        remote.removeAll()
        for member in view.members where member.number != self.number {
            for workers in member.report.workers {
                let counts = Dispatcher.WorkerCounts(
                    connected: workers.connected,
                    slots: workers.slots,
                    busy: workers.busy
                )
                remote.append(counts, of: workers.topic, hearsConditions: workers.hearsConditions)
            }
            for offer in member.report.offers { remote.append(offer) }
        }
        let status = ClusterStatus(view, own: self.number)
        remote.status = status
        self.unlike = status.differences
        let waitsSince = view.ready.map(\.since).min()
        let late = [waitsSince, view.nextDue].compactMap { $0 }.map { view.now.milliseconds - $0.milliseconds }
        remote.oldestDueMilliseconds = max(0, late.max() ?? 0)
    }

    // MARK: Dead gateways

    /// A dead gateway whose wakes are to be lost now; nil when there is none, or one is seen to.
    mutating func nextBurial() -> GatewayNumber? {
        guard !self.isBurying, let next = self.dead.first else { return nil }
        self.isBurying = true
        return next
    }

    /// Some wakes of a dead gateway are lost, or nothing could be done for now.
    ///
    /// - `hasMore`: whether to go on at once; the next view says so otherwise, if there is more.
    mutating func buried(_ number: GatewayNumber, hasMore: Bool) {
        self.isBurying = false
        if !hasMore { self.dead.removeAll { $0 == number } }
    }
}

/// Policy time as the store said it last, and as it goes on from there by this machine's uptime: what a transaction
/// takes for the present its store says again.
struct ClusterClock {
    private let world: EngineWorld
    /// Milliseconds since the machine started, in this step.
    private(set) var boot: Int64
    /// Wall clock minus policy time.
    private(set) var offset: WallOffset
    private var said: Instant
    private var bootThen: Int64

    init(_ world: EngineWorld) {
        self.world = world
        self.boot = world.boot()
        let wall = world.wall()
        self.said = Instant(milliseconds: wall)
        self.bootThen = self.boot
        self.offset = WallOffset(wall: wall, now: self.said)
    }

    /// About what the store would say now.
    var now: Instant { self.said + (self.boot - self.bootThen) }

    /// A step begins.
    mutating func step() { self.boot = self.world.boot() }

    /// The store says policy time, and what the primary's clock shows.
    mutating func heard(_ now: Instant, wall: Int64) {
        self.said = now
        self.bootThen = self.boot
        self.offset = self.offset.following(wall: wall, now: now, tolerance: 0)
    }
}

/// The names under which gateways keep what all share, and how it is written.
enum SharedValues {
    /// Which launch policies were in force when: `PolicyVersions`.
    static let policies = "policies"
    /// There once workers were asked who they are.
    static let workersAsked = "workersAsked"
    /// When the counters began, in milliseconds since 1970: 8 bytes, little-endian.
    static let countingSince = "countingSince"

    /// Behind it stands the name of a topic; what is kept is one byte, which is 1 while the topic is paused.
    private static let pause = "paused:"

    /// The name under which it is kept whether a topic is paused.
    static func pause(_ topic: String) -> String { Self.pause + topic }

    /// The topic that something is kept of under this name; nil when it is not about a pause.
    static func pausedTopic(_ name: String) -> String? {
        name.hasPrefix(Self.pause) ? String(name.dropFirst(Self.pause.count)) : nil
    }

    static func written(isPaused: Bool) -> [UInt8] { [isPaused ? 1 : 0] }

    static func isPaused(_ content: [UInt8]) -> Bool { content == [1] }

    static func written(_ policies: PolicyVersions) -> [UInt8] {
        var buffer = ByteBuffer()
        policies.store(to: &buffer)
        return buffer.view.array
    }

    static func policies(_ content: [UInt8]) -> PolicyVersions? {
        content.withByteView { PolicyVersions(stored: $0) }
    }

    static func written(moment: Int64) -> [UInt8] {
        var buffer = ByteBuffer()
        buffer.append(memoryOf: moment.littleEndian)
        return buffer.view.array
    }

    static func moment(_ content: [UInt8]) -> Int64? {
        guard content.count == 8 else { return nil }
        return content.withByteView { Int64(littleEndian: $0.load(Int64.self, at: 0)) }
    }
}

/// Transactions that the store has refused since it last confirmed one, such as while its disk is full.
struct CommitRefusals {
    /// The number of milliseconds for which a refusal is remembered. After that the gateway counts as ready again, so
    /// that a load balancer sends it pushes: only they show whether the store accepts commits again.
    private static let memoryMax: Int64 = 10_000

    private var first: Int64?
    private var last: (moment: Int64, error: StoreError)?

    /// - Parameter boot: milliseconds since the machine started.
    mutating func refused(_ error: StoreError, boot: Int64) {
        self.first = self.first ?? boot
        self.last = (boot, error)
    }

    mutating func confirmed() {
        self.first = nil
        self.last = nil
    }

    /// The cause of the last refusal, if the store has refused everything for at least `milliseconds`; nil otherwise.
    func cause(boot: Int64, after milliseconds: Int64) -> StoreError? {
        guard let first = self.first, let last = self.last, boot - first >= milliseconds,
            boot - last.moment < Self.memoryMax
        else { return nil }
        return last.error
    }
}

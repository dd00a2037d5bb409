import Engine
import Policy
import Wire

/// This gateway's membership in the cluster: its number, its report, and the dead gateways.
///
/// While a dead gateway's wakes are not yet recorded as lost, this gateway claims nothing and processes no due devices.
/// A transaction records the wakes of at most `Claims.countMax` devices.
struct Membership {
    /// The number of seconds after which due devices no longer wait for the first view. The view may be missing
    /// although the store works, for example because another session has locked the table of gateways.
    private static let viewlessSecondsMax = 5

    /// The number of this run; nil before the first attachment.
    private(set) var number: GatewayNumber?
    /// The number of devices in the store, at most a second old.
    private(set) var deviceCount = 0
    /// The numbers of dead gateways whose wakes must be recorded as lost.
    private var dead: [GatewayNumber] = []
    private var isRetiring = false
    /// The number of seconds without a view since the attachment; nil after the first view.
    private var viewlessSeconds: Int? = 0
    /// The report of this gateway, except its workers.
    private var report: GatewayReport

    init(_ report: GatewayReport) { self.report = report }

    mutating func attached(_ number: GatewayNumber) {
        self.number = number
        self.dead = []
        self.isRetiring = false
        self.viewlessSeconds = 0
    }

    mutating func secondPassed() { self.viewlessSeconds = self.viewlessSeconds.map { $0 + 1 } }

    /// Updates the digests of the settings that must be equal on all gateways.
    mutating func configured(_ configuration: EngineConfiguration) {
        self.report.digests = ConfigurationDigests.digests(of: configuration)
    }

    /// Returns the report of this gateway.
    func report(_ dispatcher: Dispatcher, topicCount: Int, isDraining: Bool) -> GatewayReport {
        var report = self.report
        report.isDraining = isDraining
        report.wakes = dispatcher.workerCounts(nil).busy
        for number in 0..<UInt32(topicCount) {
            let topic = TopicIndex(rawValue: number)
            var counts = dispatcher.workerCounts(topic)
            guard counts.connected > 0 else { continue }
            if isDraining { counts.slots = counts.busy }
            let receivesConditions = dispatcher.receivesConditions(topic)
            report.workers.append(GatewayReport.Workers(topic, counts, receivesConditions: receivesConditions))
            let countMax = GatewayReport.offersMax - report.offers.count
            report.offers += dispatcher.offers(topic, countMax: countMax, hasFreeSlots: !isDraining)
        }
        report.durations = dispatcher.durations(nil)
        return report
    }

    /// Updates the information about other gateways.
    mutating func viewed(_ view: ClusterView, _ remote: RemoteWorkers) {
        self.viewlessSeconds = nil
        self.deviceCount = view.deviceCount
        self.dead = view.dead.filter { $0 != self.number }
        remote.removeAll()
        for member in view.members where member.number != self.number {
            for workers in member.report.workers { remote.append(workers) }
            for offer in member.report.offers { remote.append(offer) }
            remote.durations += member.report.durations
        }
        remote.status = ClusterStatus(view, own: self.number)
        let waitsSince = view.ready.map(\.since).min()
        let late = [waitsSince, view.nextDue].compactMap { $0 }.map { view.now.milliseconds - $0.milliseconds }
        remote.oldestDueMilliseconds = max(0, late.max() ?? 0)
    }

    // MARK: Dead gateways

    /// True if no dead gateway is known whose wakes must be recorded as lost. Only then may due and waiting devices be
    /// selected, because that would expire such wakes. Until then, commands end such wakes of their devices themselves.
    /// A new attachment knows the dead gateways after its first view.
    var mayExpireWakes: Bool {
        self.dead.isEmpty && self.viewlessSeconds.map { $0 >= Self.viewlessSecondsMax } ?? true
    }

    /// Returns a dead gateway whose wakes must be recorded as lost. Nil if there is none, or if a transaction already
    /// records such losses.
    mutating func nextToRetire() -> GatewayNumber? {
        guard !self.isRetiring, let next = self.dead.first else { return nil }
        self.isRetiring = true
        return next
    }

    /// Records that a transaction has stored the loss of some wakes of a dead gateway.
    ///
    /// - `hasMore`: true to continue immediately. If false and wakes remain, the next view lists the gateway again.
    mutating func retired(_ number: GatewayNumber, hasMore: Bool) {
        self.isRetiring = false
        if !hasMore { self.dead.removeAll { $0 == number } }
    }
}

/// An estimate of the policy time: the last time reported by the store plus the time since then on this machine. The
/// store sets the actual time of each transaction.
struct ClusterClock {
    private let world: EngineWorld
    /// The time of this step in milliseconds since the start of the machine.
    private(set) var boot: Int64
    /// The difference between wall clock and policy time.
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

    /// An estimate of the store's current policy time.
    var now: Instant { self.said + (self.boot - self.bootThen) }

    /// Begins a step.
    mutating func step() { self.boot = self.world.boot() }

    /// Adopts the policy time and the wall clock that the store reported.
    mutating func observed(_ now: Instant, wall: Int64) {
        self.said = now
        self.bootThen = self.boot
        self.offset = self.offset.following(wall: wall, now: now, tolerance: 0)
    }
}

/// The names and formats of the values that all gateways share.
enum SharedValues {
    /// The launch policies and the times at which they took effect: `PolicyVersions`.
    static let policies = "policies"
    /// A value that exists if a gateway has ever required workers to authenticate.
    static let workerAuthentication = "workersAsked"
    /// The start of counting, in milliseconds since 1970, as 8 little-endian bytes.
    static let countingSince = "countingSince"

    /// The prefix of names that end in a topic. The value is one byte, which is 1 if the topic is paused.
    private static let pause = "paused:"

    /// Returns the name of the value that records the pause of a topic.
    static func pause(_ topic: String) -> String { Self.pause + topic }

    /// Returns the topic in a name; nil if the value does not record a pause.
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

/// The commits that the store has refused since the last confirmed commit, for example because its disk is full.
struct CommitRefusals {
    /// The number of milliseconds for which a refusal is remembered. Then the gateway is ready again, because it needs
    /// new pushes to find out if the store accepts commits.
    private static let memoryMax: Int64 = 10_000

    private var first: Int64?
    private var last: (moment: Int64, error: StoreError)?

    /// - `boot`: milliseconds since the start of the machine.
    mutating func refused(_ error: StoreError, boot: Int64) {
        self.first = self.first ?? boot
        self.last = (boot, error)
    }

    mutating func confirmed() {
        self.first = nil
        self.last = nil
    }

    /// Returns the cause of the last refusal if the store has refused all commits for at least `milliseconds`; nil
    /// otherwise.
    func cause(boot: Int64, after milliseconds: Int64) -> StoreError? {
        guard let first = self.first, let last = self.last, boot - first >= milliseconds,
            boot - last.moment < Self.memoryMax
        else { return nil }
        return last.error
    }
}

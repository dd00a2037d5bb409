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

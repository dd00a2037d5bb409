import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

/// A gateway's engine on a store whose replies are chosen by the test.
final class ScriptedScene {
    let store = ScriptedClusterStore()
    private let loop = LoopMailbox()
    private let clock = SharedClock(boot: 5_000_000, wall: 1_700_000_000_000)
    private let engine: ClusterEngine
    /// The time until the next step that the engine has requested, in milliseconds.
    private(set) var pause: Int64 = 0

    init() {
        let clock = self.clock
        self.engine = ClusterEngine(
            configuration: EngineRig.open(),
            historyKey: EngineRig.historyKey,
            report: GatewayReport(name: "gateway", version: "1"),
            world: EngineWorld(clock, seed: 1),
            store: self.store,
            output: GroupOutput(
                mailboxes: PerOutput(self.loop),
                history: DatabaseHistory(PerOutput(self.loop), SimulatedDatabase(seed: 1, pace: .immediate))
            )
        )
        self.store.onWait = { milliseconds in clock.change { $0.pass(milliseconds) } }
    }

    /// The reply to a load of devices that do not exist.
    static var noRows: LoadedDevices {
        LoadedDevices(now: Instant(milliseconds: 5000), wall: 1_700_000_000_000, devices: [], hasMore: false)
    }

    func attach(topics: [String], values: [String: [UInt8]] = [:]) {
        self.store.replies.append(
            .attached(
                Attachment(
                    number: GatewayNumber(rawValue: 1),
                    topics: topics,
                    values: values,
                    now: Instant(milliseconds: 5000),
                    wall: 1_700_000_000_000
                )
            )
        )
    }

    /// Replies to the last load that none of its devices exist.
    @discardableResult
    func findNothing() throws -> TransactionNumber {
        let load = try #require(self.store.loads.last)
        self.store.replies.append(.loaded(load, Self.noRows))
        return load
    }

    /// Reports dead gateways, topics with work for free slots, and the time at which the next device is due.
    func show(dead: [GatewayNumber] = [], ready: [TopicIndex] = [], nextDue: Instant? = nil) {
        let moment = Instant(milliseconds: 5000)
        self.store.replies.append(
            .view(
                ClusterView(
                    now: moment,
                    wall: 1_700_000_000_000,
                    members: [],
                    dead: dead,
                    ready: ready.map { ($0, moment) },
                    nextDue: nextDue,
                    deviceCount: 0
                )
            )
        )
    }

    /// Performs a step with these requests and returns its results.
    func heard(_ fill: (Requests) -> Void) -> [EngineOutput] {
        let requests = Requests()
        fill(requests)
        self.pause = self.engine.step(requests.batch)
        return self.take()
    }

    /// Passes time and performs a step.
    func wait(milliseconds: Int64) -> [EngineOutput] {
        self.clock.change { $0.pass(milliseconds) }
        return self.heard { _ in }
    }

    /// Stops the gateway and returns the results.
    func finish() -> [EngineOutput] {
        self.engine.finish()
        return self.take()
    }

    private func take() -> [EngineOutput] { EngineOutput.all(from: self.loop) }
}

/// A store whose replies are chosen by the test.
final class ScriptedClusterStore: ClusterStore {
    let transactionsMax = 4
    private(set) var requests: [ClusterRequest] = []
    var replies: [ClusterReply] = []
    /// Called with the maximum duration of each wait for replies, in milliseconds.
    var onWait: (Int64) -> Void = { _ in }

    func waitForReplies(milliseconds: Int64) { self.onWait(milliseconds) }

    /// The transactions with commands that were begun.
    var loads: [TransactionNumber] { self.findLoads { !$0.tokens.isEmpty } }

    private func findLoads(_ isWanted: (LoadPlan) -> Bool) -> [TransactionNumber] {
        self.requests.compactMap { request in
            if case .load(let number, let plan) = request, isWanted(plan) { number } else { nil }
        }
    }

    /// The requests for due devices.
    var dueLoads: [TransactionNumber] { self.findLoads { if case .due = $0.selection { true } else { false } } }

    /// The requests for the counts of all gateways.
    var counts: [TransactionNumber] {
        self.requests.compactMap { if case .count(let number, _) = $0 { number } else { nil } }
    }

    /// The number of loads that skip locked rows of devices.
    var passingOverCount: Int { self.findLoads { $0.passesOverLocked }.count }

    /// The topics that were requested, in order.
    var topicsAsked: [String] {
        self.requests.flatMap { request -> [String] in
            if case .addTopics(let names) = request { names } else { [] }
        }
    }

    /// The requests for wakes of dead gateways.
    var retirements: [TransactionNumber] { self.findLoads { if case .wakes = $0.selection { true } else { false } } }

    /// The requests for launches that wait for a slot, and their topics.
    var claims: [(number: TransactionNumber, topic: TopicIndex)] {
        self.requests.compactMap { request in
            if case .load(let number, let plan) = request, case .ready(let ready) = plan.selection {
                (number, ready.topic)
            } else {
                nil
            }
        }
    }

    /// The number of requests for launches that wait for a slot.
    var claimCount: Int { self.claims.count }

    /// True if the last transaction with commands finds wakes of dead gateways.
    var findsLostWakes: Bool {
        for case .load(_, let plan) in self.requests.reversed() where !plan.tokens.isEmpty {
            return plan.findsLostWakes
        }
        return false
    }

    /// The slices of devices that were requested: the numbers of their topics, and the device after which they begin.
    var reads: [(number: TransactionNumber, topics: [UInt32], after: DeviceToken?)] {
        self.requests.compactMap { request in
            guard case .read(let number, let plan) = request, case .inOrder(let topics?, let after, _) = plan.selection
            else { return nil }
            return (number, topics.map(\.rawValue), after)
        }
    }

    /// The reads of named devices that were requested.
    var readsOfTokens: [TransactionNumber] { self.findReads { !$0.tokens.isEmpty } }

    /// The slices of devices with pending pushes that were requested.
    var readsOfPending: [TransactionNumber] {
        self.findReads { if case .pending = $0.selection { true } else { false } }
    }

    /// Returns the reads of these devices.
    func reads(of tokens: [DeviceToken]) -> [TransactionNumber] { self.findReads { $0.tokens == tokens } }

    private func findReads(_ isWanted: (ReadPlan) -> Bool) -> [TransactionNumber] {
        self.requests.compactMap { request in
            if case .read(let number, let plan) = request, isWanted(plan) { number } else { nil }
        }
    }

    /// The devices that were written last.
    var written: [SharedDevice] {
        for case .commit(_, let writes) in self.requests.reversed() { return writes.devices.map(\.device) }
        return []
    }

    /// The changes of all counters by the last commit.
    var counted: ActivityCounters {
        for case .commit(_, let writes) in self.requests.reversed() {
            return writes.counts.reduce(into: ActivityCounters()) { $0 += $1.added }
        }
        return ActivityCounters()
    }

    /// The number of reports that the gateway is alive.
    var reportCount: Int { self.requests.count { if case .report = $0 { true } else { false } } }

    func submit(_ request: ClusterRequest) { self.requests.append(request) }

    func takeReplies(into replies: inout [ClusterReply]) {
        replies += self.replies
        self.replies = []
    }

    func stop() {}
}

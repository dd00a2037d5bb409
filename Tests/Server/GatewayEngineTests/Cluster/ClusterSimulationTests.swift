import Engine
import Gateway
import Policy
import Storage
import Synchronization
import Testing
import WakeGateTestKit
import Wire

@Suite("Simulation of gateways on one database, while they and it fail", .timeLimit(.minutes(30)))
struct ClusterSimulationTests {
    private static let seeds = SimulationSeeds(seed: "WAKEGATE_CLUSTER_SEED", factor: "WAKEGATE_CLUSTER_FACTOR")

    @Test("Deaths, stalls and lost connections lose no answered request, and every push ends once")
    func holds() {
        var coverage = Coverage<ClusterEvent>()
        var happened: Set<DatabaseLog.Event> = []
        for seed in Self.seeds.group(of: 300) {
            let simulation = ClusterSimulation(seed: seed, failsEvery: [400, 1000, 3000][Int(seed % 3)])
            let fault = simulation.run(for: 6500)
            #expect(fault == nil, "replay with WAKEGATE_CLUSTER_SEED=\(seed)")
            coverage.add(simulation.coverage)
            coverage.add(simulation.clients.coverage)
            happened.formUnion(DatabaseLog.Event.allCases.filter { simulation.database.log.counts[$0] ?? 0 > 0 })
        }
        guard Self.seeds.replayed == nil else { return }
        #expect(coverage.missing(ClusterEvent.allCases).isEmpty, "cases that never happened prove nothing")
        #expect(Set(DatabaseLog.Event.allCases).subtracting(happened).isEmpty)
    }

    @Test("Without failures every request is answered, and only workers lose wakes")
    func quiet() {
        for seed in 1...(10 as UInt64) {
            let simulation = ClusterSimulation(seed: seed, failsEvery: 0)
            #expect(simulation.run(for: 6500) == nil, "seed \(seed)")
            #expect(simulation.database.log.counts[.timeout] == nil, "seed \(seed)")
        }
    }
}

/// The history of every push and every wake according to the commits of a simulated database, and the counters that
/// result from it.
struct ClusterLedger {
    enum End: Hashable {
        case completed, coalesced
        case discarded(DiscardReason)
    }

    private struct Push {
        let device: UInt64
        var isInFlight = false
        /// The number of its wakes that ended, except those lost with their gateways.
        var attempts = 0
        var end: End?
    }

    private struct Device {
        /// The time of its last event.
        var last = Instant.distantPast
        /// The number of wakes in flight in the short lane.
        var shortWakes = 0
        var isRegistered = false
    }

    /// The maximum number of attempts of a push under the policy.
    let attemptsMax: Int
    private var pushes: [APNsID: Push] = [:]
    private var devices: [UInt64: Device] = [:]
    /// The expected counters.
    private(set) var counters = ActivityCounters()
    private(set) var fault: String?
    private var commitCount = 0

    init(attemptsMax: Int) { self.attemptsMax = attemptsMax }

    /// Reads the commits since the last call.
    mutating func read(_ log: DatabaseLog) {
        while self.commitCount < log.commits.count, self.fault == nil {
            let commit = log.commits[self.commitCount]
            for event in commit.events { self.take(event, in: commit, log) }
            self.commitCount += 1
        }
        if let misuse = log.misuses.first { self.wrong(misuse) }
    }

    /// Returns the end of a push; nil if it has not ended or does not exist.
    func end(of push: APNsID) -> End? { self.pushes[push]?.end }

    func has(_ push: APNsID) -> Bool { self.pushes[push] != nil }

    /// The number of pushes that have not ended.
    var openCount: Int { self.pushes.values.count { $0.end == nil } }

    /// Returns the error in the total counters of a database; nil if there is none.
    func compare(_ counted: ActivityCounters) -> String? {
        guard counted.accepted == counted.accountedFor else { return "the counters do not balance: \(counted)" }
        guard counted.requests.submitted.sum == counted.requestsAccountedFor else {
            return "the counters of requests do not balance: \(counted.requests), \(counted.tasks)"
        }
        guard counted.sessions.finished == counted.sessions.accountedFor else {
            return "the counters of sessions do not balance: \(counted.sessions)"
        }
        let pairs: [(String, Int64, Int64)] = [
            ("accepted", self.counters.accepted, counted.accepted),
            ("completed", self.counters.completed, counted.completed),
            ("coalesced", self.counters.coalesced, counted.coalesced),
            ("pending", self.counters.pending, counted.pending),
            ("in flight", self.counters.inFlight, counted.inFlight),
            ("launched", self.counters.launched, counted.launched),
            ("registered", self.counters.registered, counted.registered),
        ]
        let discards = DiscardReason.ofPushes.map {
            ("discarded \($0)", self.counters.discarded[$0], counted.discarded[$0])
        }
        let results = WakeOutcome.allCases.map { ("ended \($0)", self.counters.results[$0], counted.results[$0]) }
        for (name, events, counters) in pairs + discards + results where events != counters {
            return "\(events) are \(name) by the events, and \(counters) by the counters"
        }
        return nil
    }

    private mutating func wrong(_ what: String) { self.fault = self.fault ?? what }

    private mutating func take(_ event: HistoryEvent, in commit: DatabaseLog.Commit, _ log: DatabaseLog) {
        var device = self.devices[event.device] ?? Device()
        if case .namePart = event.kind { return }
        // Gateways write the subscriptions to a topic in no common order.
        if case .subscribed = event.kind { return }
        if event.at < device.last {
            self.wrong("time went back \(device.last.milliseconds - event.at.milliseconds) ms")
        }
        if commit.moment < event.at { self.wrong("something happened after the time of its step") }
        device.last = event.at
        switch event.kind {
        case .registered: self.register(&device, true)
        case .removed: self.register(&device, false)
        case .push(let disposition): self.accept(event, disposition)
        case .launch(.push, _, _):
            self.counters.launched += 1
            self.launchShort(&device)
            if let push = event.apnsID { self.launch(push) }
        case .launch(let kind, _, _): if kind.lane == .short { self.launchShort(&device) }
        case .result(.push(let outcome)):
            self.counters.results[outcome] += 1
            self.endShort(&device)
            if let push = event.apnsID {
                // A worker's report about a wake counts even if the gateway that gave it is dead.
                let isLostByDeath = outcome == .lost && Self.isOfDeadGateway(event, commit, log)
                if !isLostByDeath { self.pushes[push]?.attempts += 1 }
                self.landed(push, outcome, heir: event.related)
            }
        case .result(.task(let kind, _)): if kind.lane == .short { self.endShort(&device) }
        case .discard(.push, let reason):
            guard let push = event.apnsID else { break }
            if reason == .exhausted { self.checkExhausted(push, givenBack: 0) }
            self.end(push, .discarded(reason))
        case .discard, .conditions, .extended, .taskSubmitted, .taskRefused, .transfersFinished, .worker,
            .subscribed, .namePart:
            break
        }
        self.devices[event.device] = device
    }

    /// Checks that a push that was given up had all its attempts, not counting wakes that workers released.
    mutating func checkExhausted(_ push: APNsID, givenBack: Int) {
        guard let ended = self.pushes[push]?.attempts, ended - givenBack < self.attemptsMax else { return }
        self.wrong("a push is given up after \(ended - givenBack) attempts: others were given back or lost by death")
    }

    /// Returns true if a commit ended a device's wake whose gateway had been declared dead by then.
    private static func isOfDeadGateway(
        _ event: HistoryEvent,
        _ commit: DatabaseLog.Commit,
        _ log: DatabaseLog
    ) -> Bool {
        commit.ended.contains { wake in
            guard let launch = log.launches[wake].map({ log.commits[$0] }), let death = log.deaths[launch.gateway],
                death <= commit.at, let device = launch.launched.first(where: { $0.wake == wake })?.device
            else { return false }
            return HistoryEvent.device(of: device, EngineRig.historyKey) == event.device
        }
    }

    private mutating func register(_ device: inout Device, _ isRegistered: Bool) {
        if device.isRegistered != isRegistered { self.counters.registered += isRegistered ? 1 : -1 }
        device.isRegistered = isRegistered
    }

    private mutating func launchShort(_ device: inout Device) {
        device.shortWakes += 1
        if device.shortWakes > 1 { self.wrong("a device has two wakes of the short lane in flight") }
    }

    private mutating func endShort(_ device: inout Device) {
        device.shortWakes -= 1
        if device.shortWakes < 0 { self.wrong("a wake has ended that was not in flight") }
    }

    private mutating func accept(_ event: HistoryEvent, _ disposition: Disposition) {
        guard let push = event.apnsID else { return self.wrong("a push has no apns-id") }
        guard self.pushes.updateValue(Push(device: event.device), forKey: push) == nil else {
            return self.wrong("a push is counted twice")
        }
        self.counters.accepted += 1
        self.counters.pending += 1
        if let other = event.related { self.end(other, .coalesced) }
    }

    private mutating func launch(_ push: APNsID) {
        guard self.pushes[push]?.end == nil, self.pushes[push]?.isInFlight == false else {
            return self.wrong("a push is launched that does not wait")
        }
        self.pushes[push]?.isInFlight = true
        self.counters.pending -= 1
        self.counters.inFlight += 1
    }

    private mutating func landed(_ push: APNsID, _ outcome: WakeOutcome, heir: APNsID?) {
        guard self.pushes[push]?.isInFlight == true else { return self.wrong("a push lands that does not fly") }
        self.pushes[push]?.isInFlight = false
        self.counters.pending += 1
        self.counters.inFlight -= 1
        switch outcome {
        case .newData, .noData: self.end(push, .completed)
        case .failed, .expired, .lost: if heir != nil { self.end(push, .coalesced) }
        }
    }

    private mutating func end(_ push: APNsID, _ end: End) {
        guard let known = self.pushes[push], !known.isInFlight else {
            return self.wrong("a push ends as \(end) that does not wait")
        }
        guard known.end == nil else { return self.wrong("a push ends twice") }
        self.pushes[push]?.end = end
        self.counters.pending -= 1
        switch end {
        case .completed: self.counters.completed += 1
        case .coalesced: self.counters.coalesced += 1
        case .discarded(let reason): self.counters.discarded[reason] += 1
        }
    }
}

enum ClusterEvent: CaseIterable {
    case accepted, unavailable, refused, wake, taskWake, expired, expiredAsLost, reported, lateReport
    case reportedElsewhere, givenBack, exhaustedAfterRelease, statistics, wakeOfTheDead
    case kill, start, pause, slow, full, drain, removal, repeatedPush, spaced, lost, lostByDeath
}

/// One life of one gateway of a simulated cluster.
final class ClusterGateway {
    /// Records whether it was signaled since the last reset.
    private final class Wakeup: Sendable {
        private let hasRung = Mutex(false)

        func signal() { self.hasRung.withLock { $0 = true } }

        var isSignaled: Bool { self.hasRung.withLock { $0 } }

        func reset() { self.hasRung.withLock { $0 = false } }
    }

    let place: Int
    private let gateway: GatewaysRig.Gateway
    private let wakeup = Wakeup()
    /// The requests of clients since the last step.
    var requests = Requests()
    /// The virtual time of the next step.
    private(set) var stepAt: Int64
    /// True if the gateway is draining.
    var isDraining = false

    init(_ place: Int, _ database: SimulatedDatabase, _ world: EngineWorld) {
        let wakeup = self.wakeup
        self.place = place
        self.gateway = GatewaysRig.Gateway(
            database,
            ClusterSimulation.configuration,
            world,
            signal: { wakeup.signal() }
        )
        self.stepAt = database.now
    }

    var store: SimulatedClusterStore { self.gateway.store }

    var isPaused: Bool { self.store.isPaused }

    func isDue(at now: Int64) -> Bool { !self.isPaused && (self.stepAt <= now || self.wakeup.isSignaled) }

    /// The time of the next step.
    var nextStepAt: Int64 { self.wakeup.isSignaled ? .min : self.stepAt }

    /// A description of the gateway's state.
    var state: String {
        "\(self.store.openCount) open, \(self.wakeup.isSignaled ? "rung" : "stepped at \(self.stepAt)")"
    }

    /// Makes the next step due at this time at the latest.
    func requireStep(by moment: Int64) { self.stepAt = min(self.stepAt, moment) }

    /// Performs one step with all pending requests.
    ///
    /// - Returns: the results in order.
    func step(at now: Int64) -> [EngineOutput] {
        self.wakeup.reset()
        let batch = self.requests.batch
        batch.notePushesLeave()
        self.requests = Requests()
        self.stepAt = now + max(0, self.gateway.engine.step(batch))
        return EngineOutput.all(from: self.gateway.loop)
    }
}

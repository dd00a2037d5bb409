import Engine
import Policy
import WakeGateTestKit
import Wire

/// What the clients of a simulated engine room sent and were told, through all its lives.
struct RoomClients {
    struct Stream {
        let topic: Int
        let slots: Int
        var wakes: Set<String> = []
    }

    struct Report {
        let wake: String
        let result: FetchResult
        /// By the uptime in milliseconds.
        let sentAt: Int64
        /// The same result was answered 204 before.
        var isRepeated = false
    }

    /// The device of each push, by its request.
    var sent: [Int: Int] = [:]
    /// Pushes that were answered 200.
    private(set) var accepted: Set<Int> = []
    /// The streams of this life, by their requests.
    var streams: [Int: Stream] = [:]
    /// Wakes that workers have and did not report: their streams.
    private(set) var held: [String: Int] = [:]
    /// Every wake that ever came.
    private(set) var wakes: Set<String> = []
    /// Results that wait for their answers, by their requests.
    var reports: [Int: Report] = [:]
    /// The last wake of each device that came in this life.
    private var lastWakes: [String: String] = [:]
    /// Results of this life that were answered 204, and when they were sent, by the uptime in milliseconds.
    private(set) var settled: [String: (result: FetchResult, at: Int64)] = [:]
    /// The answers to what was asked, by request.
    var answers: [Int: Told] = [:]
    /// Every request that was answered.
    private var answered: Set<Int> = []
    /// Something was refused because the store has failed.
    private(set) var hasMetFailure = false

    /// The gateway is another one; streams and what was under way are gone.
    mutating func restarted() {
        self.streams = [:]
        self.held = [:]
        self.reports = [:]
        self.answers = [:]
        self.settled = [:]
        self.lastWakes = [:]
        self.hasMetFailure = false
    }

    /// A result that is answered 204 if it comes again now: a device's last wakes are remembered for ten minutes.
    func rememberedResult(at now: Int64) -> (wake: String, result: FetchResult)? {
        let remembered = self.settled.filter { wake, settled in
            now - settled.at < 600_000 && self.lastWakes.values.contains(wake)
        }
        return remembered.min { $0.key < $1.key }.map { ($0.key, $0.value.result) }
    }

    /// A worker leaves.
    mutating func ended(_ stream: Int) {
        self.streams[stream] = nil
        self.held = self.held.filter { $0.value != stream }
    }

    /// - Returns: what is wrong with it.
    mutating func take(_ told: Told) -> String? {
        if told.isAnswer {
            guard self.answered.insert(told.request).inserted else { return "a second answer: \(told)" }
            if told.status == 503 { self.hasMetFailure = true }
        }
        switch told.kind {
        case .push: return self.takePush(told)
        case .answer: return self.takeAnswer(told)
        case .wake: return self.takeWake(told)
        case .expired:
            guard let wake = told.string("wake"), self.held[wake] == told.request || self.streams[told.request] == nil
            else { return "a wake expired that is not in flight there: \(told)" }
            self.release(wake)
        case .released: self.release(told.text)
        case .asked, .subscribed, .conditions, .drained, .draining: break
        }
        return nil
    }

    private mutating func release(_ wake: String) {
        guard let stream = self.held.removeValue(forKey: wake) else { return }
        self.streams[stream]?.wakes.remove(wake)
    }

    private mutating func takePush(_ told: Told) -> String? {
        guard told.status == 200 else { return told.status == 503 ? nil : "a push is refused: \(told)" }
        guard self.sent[told.request] != nil else { return "an answer to no push: \(told)" }
        self.accepted.insert(told.request)
        return nil
    }

    private mutating func takeAnswer(_ told: Told) -> String? {
        guard let report = self.reports.removeValue(forKey: told.request) else {
            self.answers[told.request] = told
            return nil
        }
        if told.status == 204 {
            guard !report.isRepeated else { return nil }
            self.settled[report.wake] = (report.result, report.sentAt)
            self.release(report.wake)
            return nil
        }
        if told.status == 503 { return nil }
        // A wake may have expired, or been reported before, while its result was on the way.
        if report.isRepeated { return "a result that was answered 204 is answered \(told) when it comes again" }
        return [404, 409, 410].contains(told.status) ? nil : "a result is answered \(told)"
    }

    private mutating func takeWake(_ told: Told) -> String? {
        guard let wake = told.string("wake") else { return "a wake without a name: \(told)" }
        guard self.wakes.insert(wake).inserted else { return "wake \(wake) came twice" }
        self.lastWakes[told.string("device") ?? ""] = wake
        // A worker that has left does not get it.
        guard let stream = self.streams[told.request] else { return nil }
        if let identifier = told.string("apnsID"), let device = told.string("device") {
            let push = self.sent.keys.first { GatewayEngineRig.apnsID($0) == identifier }
            guard let push, self.sent[push].map({ GatewayEngineRig.token($0) }) == device else {
                return "wake \(wake) carries a push of another device"
            }
        }
        self.held[wake] = told.request
        self.streams[told.request]?.wakes.insert(wake)
        if stream.wakes.count >= stream.slots { return "stream \(told.request) has more wakes than slots" }
        return nil
    }
}

/// The counters of all topics, as statistics tell them.
struct RoomBooks: Hashable {
    let accepted: Int64
    let completed: Int64
    let coalesced: Int64
    let discarded: Int64
    let pending: Int64
    let inFlight: Int64
    let launched: Int64

    init?(_ told: Told) {
        func pushes(_ name: String) -> Int64? { told.integer("pushes", name) }
        guard let accepted = pushes("accepted"), let completed = pushes("completed"),
            let coalesced = pushes("coalesced"), let pending = pushes("pending"), let inFlight = pushes("inFlight"),
            let launched = told.integer("wakes", "launched"),
            let discarded = told.value(["pushes", "discarded"]) as? [String: Any]
        else { return nil }
        self.accepted = accepted
        self.completed = completed
        self.coalesced = coalesced
        self.discarded = discarded.values.reduce(0) { $0 + (($1 as? Int).map(Int64.init) ?? 0) }
        self.pending = pending
        self.inFlight = inFlight
        self.launched = launched
    }

    var balance: Bool {
        self.accepted == self.completed + self.coalesced + self.discarded + self.pending + self.inFlight
    }
}

/// What happened in simulations, so that a property cannot hold because nothing did.
struct RoomCoverage {
    enum Event: String, CaseIterable {
        case death, deathInCommit, failedStart, failedCommit, wake, expired, released, push, wayTold
        case wallSetBack, wallSetForward, policyTimeTold
    }

    private var counts: [Event: Int] = [:]

    subscript(event: Event) -> Int { self.counts[event] ?? 0 }

    mutating func note(_ event: Event, _ count: Int = 1) { self.counts[event, default: 0] += count }

    mutating func add(_ told: [Told]) {
        for each in told {
            switch each.kind {
            case .wake: self.note(.wake)
            case .expired: self.note(.expired)
            case .released: self.note(.released)
            case .push where each.status == 200: self.note(.push)
            default: break
            }
        }
    }

    mutating func add(_ other: Self) { self.counts.merge(other.counts, uniquingKeysWith: +) }

    /// What never happened, by name.
    var missing: [String] { Event.allCases.filter { self[$0] == 0 }.map(\.rawValue) }
}

/// A life of a gateway, one commit after the other, that ends when the store fails; and what was promised until then.
final class FailureScript {
    /// What a store may fail at within one commit.
    enum Phase: CaseIterable {
        case writing, syncing
    }

    private enum Move {
        case subscribe
        case push(Int, Priority)
        case register(Int)
        case report
        case conditions(Int)
        case unregister(Int)
        case noWake(Int)
        case simulateLaunch(Int)
        case simulateExpiration(Int)
    }

    private static let moves: [Move] = [
        .subscribe, .push(1, .immediate), .report, .register(2), .push(2, .considerate), .push(1, .considerate),
        .push(1, .considerate), .conditions(1), .unregister(2), .simulateLaunch(1), .noWake(3), .simulateExpiration(1),
        .push(4, .considerate), .push(4, .considerate),
    ]

    /// How many commits it has, the one at the start left out.
    static var commitCount: Int { self.moves.count }

    let rig: GatewayEngineRig
    /// The last answer about everything that every promise made until then was part of.
    private(set) var durable: Told
    /// The topics, and the first device, at that moment.
    private(set) var topics: Told
    private(set) var device: Told
    /// The request that the failing commit was for.
    private(set) var failed = 0
    /// The requests that waited behind the one that failed.
    private(set) var behind = 0...0
    private var next = 1

    /// - Parameter isReloadFailing: what is durable cannot be read after the failure either.
    init(failingAt commit: Int, _ phase: Phase, isReloadFailing: Bool = false) throws {
        let store = SimulatedStore()
        // A load, a beginning and the commit of the start come first.
        let operation = 2 + 2 * (commit + 1) + (phase == .writing ? 0 : 1)
        store.failOperation(operation, isLasting: isReloadFailing)
        self.rig = try GatewayEngineRig(store)
        (self.durable, self.topics, self.device) = try Self.look(self.rig, 1000)
        for number in 0..<commit {
            try self.make(Self.moves[number])
            (self.durable, self.topics, self.device) = try Self.look(self.rig, 1003 + 3 * number)
        }
        try self.fail(at: Self.moves[commit], phase)
    }

    private static func look(_ rig: GatewayEngineRig, _ first: Int) throws -> (Told, Told, Told) {
        let answers = try rig.ask(first...first + 2) {
            $0.statistics(first)
            $0.topics(first + 1)
            $0.explain(first + 2, 1)
        }
        return (answers[0], answers[1], answers[2])
    }

    private func fail(at move: Move, _ phase: Phase) throws {
        self.failed = self.next
        let first = self.next + 1
        self.next += 10
        self.behind = first...first + 8
        let wake = try? self.rig.lastWake()
        switch phase {
        case .writing:
            // All in one group: nothing can wait behind a commit that fails at once.
            self.rig.step {
                Self.ask(move, self.failed, wake, $0)
                Self.change(first, $0)
                Self.look(first + 4, $0)
            }
        case .syncing:
            self.rig.gate.close()
            self.rig.step { Self.ask(move, self.failed, wake, $0) }
            try self.rig.waitForCommit()
            self.rig.step { Self.change(first, $0) }
            self.rig.step { Self.look(first + 4, $0) }
            self.rig.gate.open()
        }
        try self.rig.answers(self.failed...first + 8)
    }

    private func make(_ move: Move) throws {
        let request = self.next
        self.next += 1
        let wake = try? self.rig.lastWake()
        self.rig.step { Self.ask(move, request, wake, $0) }
        try self.rig.answers(request...request)
    }

    /// Four requests that change something.
    private static func change(_ first: Int, _ requests: Requests) {
        requests.push(first, 5, .immediate)
        requests.push(first + 1, 5)
        requests.register(first + 2, 6)
        requests.subscribe(first + 3)
    }

    /// Five requests, questions among them.
    private static func look(_ first: Int, _ requests: Requests) {
        requests.report(first, WakeID(random: (1, 2)), .newData)
        requests.explain(first + 1, 1)
        requests.statistics(first + 2)
        requests.readiness(first + 3)
        requests.push(first + 4, 1)
    }

    private static func ask(_ move: Move, _ request: Int, _ wake: WakeID?, _ requests: Requests) {
        switch move {
        case .subscribe: requests.subscribe(request)
        case .push(let device, let priority): requests.push(request, device, priority)
        case .register(let device): requests.register(request, device)
        case .report: if let wake { requests.report(request, wake, .newData) }
        case .conditions(let device): requests.conditions(request, device) { $0.lowPowerMode = true }
        case .unregister(let device): requests.unregister(request, device)
        case .noWake(let device): requests.push(request, device, wakes: false)
        case .simulateLaunch(let device): requests.simulateLaunch(request, device)
        case .simulateExpiration(let device): requests.simulateExpiration(request, device)
        }
    }
}

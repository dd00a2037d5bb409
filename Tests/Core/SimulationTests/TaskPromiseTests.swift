import Foundation
import Policy
import Testing
import WakeGateTestKit

@Suite("Rules of background tasks on random traces", .timeLimit(.minutes(15)))
struct TaskPromiseTests {
    /// 3,000 seeds in parts that run in parallel; or the single seed in `WAKEGATE_SEED`.
    private static let parts: [ClosedRange<UInt64>] = {
        let environment = ProcessInfo.processInfo.environment
        guard let seed = environment["WAKEGATE_SEED"].flatMap({ UInt64($0) }) else {
            return (0..<3).map { ($0 * 1000 + 1)...($0 * 1000 + 1000) }
        }
        return [seed...seed]
    }()

    /// Events that must occur in every part, each at least a minimum number of times, for the promises to be
    /// meaningful.
    private static let corners: [String] =
        ["launched", "scheduled", "replaced"].map { "submit.\($0)" }
        + TaskRefusal.allCases.map { "submit.\($0.rawValue)" }
        + ["push", "appRefresh", "processing", "continued", "urlSession"].map { "launch.\($0)" }
        + ["success", "failure", "expired", "lost"].flatMap { outcome in
            TaskKind.allCases.map { "\($0).\(outcome)" }
        }
        + ["processing.interrupted", "continued.interrupted", "continued.cancelled"]
        + ["task.exhausted", "task.forceQuit", "task.cancelled", "session.exhausted", "session.takenUp"]
        + ["session.refused", "retry.takenUp", "retry.twin", "refresh.putOff"]
        + ["refresh.inLead", "push.jumped", "trace.cut"]
    private static let cornerMin = 5

    @Test("Every promise holds on every seed, and every corner was met", arguments: Self.parts)
    func promises(_ seeds: ClosedRange<UInt64>) throws {
        var sightings = Sightings()
        for seed in seeds {
            let run = try TaskRun(TaskTrace(seed: seed))
            sightings.add(run.sightings)
            guard let first = run.violations.first else { continue }
            Issue.record("seed \(seed) (WAKEGATE_SEED=\(seed) replays it): \(first); \(run.violations.count) in all")
            return
        }
        guard seeds.count > 1 else { return }
        for corner in Self.corners {
            let count = sightings.counts[corner, default: 0]
            #expect(count >= Self.cornerMin, "\(corner) was hardly met")
        }
    }
}

@Suite("Launch rates of refreshes that are requested continuously", .timeLimit(.minutes(15)))
struct TaskSpacingTests {
    /// Returns the number of launches of a refresh that is submitted every minute and replaces the pending one.
    private static func launches(minutes: Int, _ more: [String] = []) throws -> Int {
        let submissions = (0..<minutes).map { minute in
            #"{"t": \#(minute * 60), "device": "a", "submit": {"identifier": "r", "kind": "appRefresh"}}"#
        }
        var count = 0
        let headers = [#"{"until": \#(minutes * 60)}"#]
        try Simulator.run(trace: headers + more + submissions, overrides: []) { line in
            if line.contains(#""event":"launch""#) { count += 1 }
        }
        return count
    }

    @Test("Every minute for an hour is five launches at most")
    func hour() throws {
        let launches = try Self.launches(minutes: 60)
        #expect((4...5).contains(launches), "\(launches)")
    }

    @Test("A device that saves power launches half as often over a day")
    func lowPower() throws {
        let saving = #"{"t": 0, "device": "a", "conditions": {"lowPowerMode": true}}"#
        let (ordinary, saved) = (try Self.launches(minutes: 1440), try Self.launches(minutes: 1440, [saving]))
        #expect((95...97).contains(ordinary) && (47...49).contains(saved), "\(ordinary), \(saved)")
    }
}

@Suite("Rules of pushes on random traces", .timeLimit(.minutes(15)))
struct PromiseTests {
    private static let seeds: ClosedRange<UInt64> = {
        let environment = ProcessInfo.processInfo.environment
        guard let seed = environment["WAKEGATE_SEED"].flatMap({ UInt64($0) }) else { return 1...3000 }
        return seed...seed
    }()

    /// Events that must occur, each at least `cornerMin` times, for the promises to be meaningful.
    private static let corners: [String] =
        ["launched", "coalesced", "scheduled", "discarded"].map { "disposition.\($0)" }
        + WakeOutcome.allCases.map { "result.\($0)" }
        + ["expired", "exhausted", "forceQuit"].map { "discard.\($0)" }
        + ["active", "charged", "coalesced", "jumped", "penalised", "retry"].map { "launch.\($0)" }
        + ["budget.waited", "joint.priority", "joint.expiry", "nowOrNever.launched", "retry.absorbed"]
    private static let cornerMin = 100

    @Test("Every promise holds on every seed, and every corner was met")
    func promises() throws {
        var sightings = Sightings()
        for seed in Self.seeds {
            let trace = RandomTrace(seed: seed)
            let run = try PromiseRun(trace)
            sightings.add(run.sightings)
            guard let first = run.violations.first else { continue }
            let promises = Set(run.violations.map(\.promise.rawValue)).sorted().joined(separator: ", ")
            Issue.record("seed \(seed) (WAKEGATE_SEED=\(seed) replays it): \(first); broken: \(promises)")
            return
        }
        guard Self.seeds.count > 1 else { return }
        for corner in Self.corners {
            #expect(sightings.counts[corner, default: 0] >= Self.cornerMin, "\(corner) was hardly met")
        }
        let uncertain = sightings.counts["launch.uncertain", default: 0]
        #expect(uncertain * 20 < sightings.counts["launch.charged", default: 0], "too many launches were not judged")
    }

    @Test("The same trace has the same outcome, however often it is run")
    func deterministic() throws {
        for seed in UInt64(1)...20 {
            let trace = RandomTrace(seed: seed).lines
            var outcomes: [[String]] = [[], []]
            for run in outcomes.indices { try Simulator.run(trace: trace) { outcomes[run].append($0) } }
            #expect(outcomes[0] == outcomes[1], "seed \(seed)")
        }
    }
}

/// One random trace, simulated and checked.
struct PromiseRun {
    private(set) var violations: [Violation] = []
    private(set) var sightings = Sightings()

    init(_ trace: RandomTrace) throws {
        var lines: [OutcomeLine] = []
        var simulator = try Simulator()
        for line in trace.lines { try simulator.take(line) { lines.append($0) } }
        let summary = simulator.finish { lines.append($0) }
        var ledgers: [String: DeviceLedger] = [:]
        for line in lines {
            ledgers[line.device, default: DeviceLedger(name: line.device, facts: trace.facts)].follow(line)
        }
        for name in ledgers.keys.sorted() {
            ledgers[name]?.finish()
            self.violations += ledgers[name]?.violations ?? []
            self.sightings.add(ledgers[name]?.sightings ?? Sightings())
        }
        if lines.map(\.moment) != lines.map(\.moment).sorted() { self.broke(.order, "lines are not ordered by time") }
        self.checkSummary(summary, Array(ledgers.values))
        self.checkFinalPushes(trace.facts, lines)
    }

    private mutating func broke(_ promise: Violation.Promise, _ what: String) {
        self.violations.append(Violation(promise: promise, moment: 0, device: "all", what: what))
    }

    /// Checks that accepted = completed + coalesced + discarded + pending + in flight, in the summary and in the lines.
    private mutating func checkSummary(_ summary: Summary, _ ledgers: [DeviceLedger]) {
        let discarded = summary.discarded.values.reduce(0, +)
        let ended = summary.completed + summary.coalesced + discarded
        if summary.accepted != ended + summary.pending + summary.inFlight {
            self.broke(.conservation, "the summary does not add up: \(summary.json)")
        }
        let counted = [
            ledgers.map(\.accepted), ledgers.map(\.completed), ledgers.map(\.coalesced), ledgers.map(\.discarded),
            ledgers.map { $0.pending == nil ? 0 : 1 }, ledgers.map { $0.inFlight == nil ? 0 : 1 },
        ].map { $0.reduce(0, +) }
        let told = [
            summary.accepted, summary.completed, summary.coalesced, discarded, summary.pending, summary.inFlight,
        ]
        if counted != told { self.broke(.conservation, "the summary says \(told), the lines \(counted)") }
    }

    /// Checks that a push to a device without holds launches within an interval or a budget window, and that a good
    /// worker ends it.
    private mutating func checkFinalPushes(_ facts: TraceFacts, _ lines: [OutcomeLine]) {
        let limits = facts.limits
        let wait = limits.executionWindow + max(limits.launchInterval, limits.maxInterval, limits.budgetWindow)
        for (device, name) in facts.finalPushes {
            let own = lines.filter { $0.device == device && $0.apnsID == name }
            let limit = (facts.pushes[name]?.moment ?? 0) + wait
            let launched = own.contains {
                if case .launch = $0.event { $0.moment.milliseconds <= limit } else { false }
            }
            if !launched { self.broke(.starvation, "\(name) of \(device) did not launch by \(limit) ms") }
            let completed = own.contains { $0.event == .result(.newData) || $0.event == .result(.noData) }
            if facts.isWorkerGood && !completed { self.broke(.starvation, "\(name) of \(device) was not completed") }
        }
    }
}

import Policy
import Testing
import WakeGateTestKit

@Suite("Rules of pushes and background tasks on random traces", .timeLimit(.minutes(15)))
struct TaskPromiseTests {
    private static let seeds = SimulationSeeds(seed: "WAKEGATE_SEED")

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
        + ["session.refused", "retry.urlSession", "retry.twin", "refresh.putOff", "refresh.inLead", "trace.cut"]
    private static let cornerMin = 5

    private static let cornersOfPushes: [String] =
        ["launched", "coalesced", "scheduled", "discarded"].map { "disposition.\($0)" }
        + WakeOutcome.allCases.map { "push.\($0)" }
        + ["expired", "exhausted", "forceQuit"].map { "discard.\($0)" }
        + ["active", "coalesced", "jumped", "penalized", "retry"].map { "launch.\($0)" }
        + ["budget.waited", "joint.priority", "joint.expiry", "nowOrNever.launched", "retry.push"]
    private static let cornerMinOfPushes = 33

    @Test("Every promise holds on every seed, and every corner was met", arguments: 0..<3 as Range<UInt64>)
    func promises(part: UInt64) throws {
        var sightings = Coverage<String>()
        for seed in Self.seeds.group(part, of: 1000) {
            let run = try TaskRun(TaskTrace(seed: seed))
            sightings.add(run.sightings)
            guard let first = run.violations.first else { continue }
            Issue.record("replay with \(Self.seeds.name)=\(seed): \(first); \(run.violations.count) in all")
            return
        }
        guard Self.seeds.replayed == nil else { return }
        for (corners, least) in [(Self.corners, Self.cornerMin), (Self.cornersOfPushes, Self.cornerMinOfPushes)] {
            for corner in corners {
                #expect(sightings[corner] >= least, "\(corner) was hardly met")
            }
        }
    }
}

/// One random trace of background tasks, simulated and checked.
struct TaskRun {
    private(set) var violations: [String] = []
    private(set) var sightings = Coverage<String>()

    init(_ trace: TaskTrace) throws {
        var simulator = try Simulator()
        var ledgers: [String: TaskLedger] = [:]
        var moments: [Instant] = []
        func follow(_ line: OutcomeLine) {
            moments.append(line.moment)
            ledgers[line.device]?.follow(line)
        }
        func feed(_ line: String) throws { try simulator.take(line, follow) }
        for header in trace.headers { try feed(header) }
        var settled: Int64 = -1
        let end = trace.until ?? .max
        for step in trace.steps {
            // Events after the end have no effect.
            guard step.moment <= end else {
                try feed(step.line)
                continue
            }
            if ledgers[step.device] == nil { ledgers[step.device] = TaskLedger(name: step.device, trace: trace) }
            if step.moment > settled { try feed(step.barrier) }
            settled = step.moment
            ledgers[step.device]?.settled(at: step.moment)
            ledgers[step.device]?.happens(step.event)
            try feed(step.line)
        }
        let summary = simulator.finish(follow)
        if moments != moments.sorted() { self.violations.append("order: lines are not ordered by time") }
        for name in ledgers.keys.sorted() {
            ledgers[name]?.settled(at: min(Int64(1) << 50, end))
            self.violations += ledgers[name]?.violations ?? []
            self.sightings.add(ledgers[name]?.sightings ?? Coverage())
        }
        self.checkCounters(summary, Array(ledgers.values), trace)
    }

    private mutating func checkCounters(_ summary: Summary, _ ledgers: [TaskLedger], _ trace: TaskTrace) {
        func sum(_ prefix: String) -> Int {
            Summary.names.filter { $0.hasPrefix(prefix) }.reduce(0) { $0 + summary[$1] }
        }
        let pushes =
            summary["completed"] + summary["coalesced"] + sum("discarded.") + summary["pending"] + summary["inFlight"]
        let requests =
            summary["tasks.replaced"] + summary["tasks.cancelled"] + sum("tasks.discarded.") + sum("tasks.results.")
            - summary["tasks.results.lost"] + summary["tasks.waiting"] + summary["tasks.inFlight"]
        let transfers =
            summary["sessions.completed"] + sum("sessions.discarded.") + summary["sessions.waiting"]
            + summary["sessions.inFlight"]
        let arrivals = [("accepted", pushes), ("tasks.submitted", requests), ("sessions.finished", transfers)]
        for (name, accountedFor) in arrivals where summary[name] != accountedFor {
            self.violations.append("conservation: \(accountedFor) of \(name) are accounted for: \(summary.json)")
        }
        if trace.until != nil { self.sightings.note("trace.cut") }
        let mustEnd = ["pending", "inFlight", "tasks.inFlight", "sessions.inFlight", "sessions.waiting"]
        if trace.until == nil, mustEnd.contains(where: { summary[$0] > 0 }) {
            self.violations.append("starvation: something never ended: \(summary.json)")
        }
        if trace.until == nil, summary["tasks.waiting"] > 0, trace.limits.usageWindow == 0 {
            self.violations.append("starvation: a request never launched: \(summary.json)")
        }
        for name in Summary.names {
            let counted = ledgers.reduce(0) { $0 + $1.count(name) }
            if summary[name] == counted { continue }
            self.violations.append("counters: the summary says \(summary[name]) \(name), the lines \(counted)")
        }
    }
}

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

    @Test("The same trace has the same outcome, however often it is run")
    func deterministic() throws {
        for seed in UInt64(1)...20 {
            let trace = TaskTrace(seed: seed)
            let outcomes = try (0..<2).map { _ in
                var outcome: [String] = []
                try Simulator.run(trace: trace.headers + trace.steps.map(\.line)) { outcome.append($0) }
                return outcome
            }
            #expect(outcomes[0] == outcomes[1], "seed \(seed)")
        }
    }
}

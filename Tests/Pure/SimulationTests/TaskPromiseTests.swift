import Foundation
import LaunchPolicy
import Simulation
import Testing

@Suite("What the rules of background tasks promise, on random traces", .timeLimit(.minutes(15)))
struct TaskPromiseTests {
    private static let seeds: ClosedRange<UInt64> = {
        let environment = ProcessInfo.processInfo.environment
        guard let seed = environment["WAKEGATE_SEED"].flatMap({ UInt64($0) }) else { return 1...500 }
        return seed...seed
    }()

    /// What must have been met, each at least this often, for the promises to mean something.
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
    private static let cornerMin = 5

    @Test("Every promise holds on every seed, and every corner was met")
    func promises() throws {
        var sightings = Sightings()
        for seed in Self.seeds {
            let run = try TaskRun(TaskTrace(seed: seed))
            sightings.add(run.sightings)
            guard let first = run.violations.first else { continue }
            Issue.record("seed \(seed) (WAKEGATE_SEED=\(seed) replays it): \(first); \(run.violations.count) in all")
            return
        }
        guard Self.seeds.count > 1 else { return }
        for corner in Self.corners {
            let count = sightings.counts[corner, default: 0]
            #expect(count >= Self.cornerMin, "\(corner) was hardly met")
        }
    }
}

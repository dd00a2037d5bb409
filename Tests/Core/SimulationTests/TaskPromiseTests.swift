import Foundation
import Policy
import Testing
import WakeGateTestKit

@Suite("What the rules of background tasks promise, on random traces", .timeLimit(.minutes(15)))
struct TaskPromiseTests {
    /// 3,000 seeds in parts, which run beside each other; or one seed that is to be looked at again.
    private static let parts: [ClosedRange<UInt64>] = {
        let environment = ProcessInfo.processInfo.environment
        guard let seed = environment["WAKEGATE_SEED"].flatMap({ UInt64($0) }) else {
            return (0..<3).map { ($0 * 1000 + 1)...($0 * 1000 + 1000) }
        }
        return [seed...seed]
    }()

    /// What every part must have met, each at least this often, for the promises to mean something.
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

import Engine
import Foundation
import Testing
import WakeGateTestKit

@Suite("Simulation of dispatch among faulty workers", .timeLimit(.minutes(15)))
struct SimulationTests {
    /// The seed to replay, from the environment.
    private static let replayed = ProcessInfo.processInfo.environment["WAKEGATE_SEED"].flatMap(UInt64.init)
    private static let groups = 8
    private static let seedsInGroup: UInt64 = 40

    private static func seeds(_ group: Int) -> [UInt64] {
        guard let replayed else { return (0..<self.seedsInGroup).map { UInt64(group) * self.seedsInGroup + $0 + 1 } }
        return group == 0 ? [replayed] : []
    }

    @Test("Every promise holds in every run, and every push ends", arguments: 0..<groups)
    func holds(group: Int) {
        var coverage = SimulationCoverage()
        for seed in Self.seeds(group) {
            let simulation = DispatchSimulation(seed: seed)
            simulation.coverage = coverage
            let fault = simulation.run(steps: 120)
            #expect(fault == nil, "replay with WAKEGATE_SEED=\(seed)")
            #expect(simulation.rig.engine.totals.launched > 0, "seed \(seed): nothing was ever launched")
            coverage = simulation.coverage
        }
        guard Self.replayed == nil else { return }
        #expect(coverage.missing.isEmpty, "group \(group): what never happened proves nothing")
    }

    @Test("One seed gives one run", arguments: [3, 1_000_003] as [UInt64])
    func replays(seed: UInt64) {
        let first = DispatchSimulation(seed: seed)
        let second = DispatchSimulation(seed: seed)
        #expect(first.run(steps: 150) == second.run(steps: 150))
        #expect(first.log == second.log)
        #expect(first.log.count > 20)
    }
}

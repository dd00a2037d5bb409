import Engine
import Foundation
import Testing
import WakeGateTestKit

@Suite("Simulation of the core on a disk, with deaths and restarts", .timeLimit(.minutes(15)))
struct CrashSimulationTests {
    enum Kind: String, CaseIterable {
        case memory, journal

        func medium(_ seed: UInt64) -> any SimulatedMedium {
            switch self {
            case .memory: MemoryMedium()
            case .journal: DiskMedium(seed: seed % 3 == 0 ? 0 : seed)
            }
        }
    }

    /// The seed to replay, from the environment.
    private static let replayed = ProcessInfo.processInfo.environment["WAKEGATE_CRASH_SEED"].flatMap(UInt64.init)
    /// How many more seeds than in `swift test`, from the environment.
    private static let factor = ProcessInfo.processInfo.environment["WAKEGATE_CRASH_FACTOR"].flatMap(UInt64.init) ?? 1
    private static let groups: UInt64 = 3
    private static let seedsInGroup: UInt64 = 15

    private static func seeds(_ group: UInt64) -> [UInt64] {
        guard let replayed else {
            let count = self.seedsInGroup * self.factor
            return (0..<count).map { group * count + $0 + 1 }
        }
        return group == 0 ? [replayed] : []
    }

    @Test(
        "Whatever dies or fails, what was answered stays, nothing is launched twice, and the books balance",
        arguments: Kind.allCases,
        0..<groups
    )
    func holds(kind: Kind, group: UInt64) {
        var coverage = CrashCoverage()
        for seed in Self.seeds(group) {
            let simulation = DispatchSimulation(seed: seed)
            let medium = kind.medium(seed)
            simulation.live(on: medium, faultsEvery: [4, 12, 40][Int(seed % 3)])
            let fault = simulation.run(steps: 60)
            #expect(fault == nil, "replay with WAKEGATE_CRASH_SEED=\(seed), on \(kind)")
            #expect(medium.misuses.isEmpty, "seed \(seed), on \(kind)")
            if let lives = simulation.lives { coverage.add(lives.coverage) }
        }
        guard Self.replayed == nil else { return }
        #expect(coverage.missing.isEmpty, "\(kind), group \(group): what never happened proves nothing")
    }

    @Test("A gateway may die after any of its steps", arguments: Kind.allCases, SimulatedDeath.allCases)
    func everyStep(kind: Kind, death: SimulatedDeath) {
        for step in 0..<30 {
            let seed = UInt64(step % 4 + 7)
            let simulation = DispatchSimulation(seed: seed)
            simulation.live(on: kind.medium(seed), faultsEvery: 0)
            let fault = simulation.run(steps: step + 5, dyingAt: step, death)
            #expect(fault == nil, "on \(kind), step \(step) of seed \(seed)")
        }
    }

    @Test("One seed gives one run, on a disk that fails, too", arguments: Kind.allCases)
    func replays(kind: Kind) {
        let simulations = (0..<2).map { _ in
            let simulation = DispatchSimulation(seed: 32)
            simulation.live(on: kind.medium(32), faultsEvery: 20)
            #expect(simulation.run(steps: 60) == nil)
            return simulation
        }
        #expect(simulations[0].log == simulations[1].log)
        #expect(simulations[0].log.count > 20)
    }
}

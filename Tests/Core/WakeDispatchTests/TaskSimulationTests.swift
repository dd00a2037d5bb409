import Engine
import Foundation
import Policy
import Testing
import WakeGateTestKit

@Suite("Simulation of requests and sessions among faulty workers, deaths and restarts", .timeLimit(.minutes(15)))
struct TaskSimulationTests {
    enum Kind: String, CaseIterable {
        /// The gateway never dies.
        case immortal
        case memory, journal

        func medium(_ seed: UInt64) -> (any SimulatedMedium)? {
            switch self {
            case .immortal: nil
            case .memory: MemoryMedium()
            case .journal: DiskMedium(seed: seed % 3 == 0 ? 0 : seed)
            }
        }

        var seedsInGroup: UInt64 {
            switch self {
            case .immortal: 60
            case .memory: 60
            case .journal: 10
            }
        }
    }

    /// The seed to replay, from the environment.
    private static let replayed = ProcessInfo.processInfo.environment["WAKEGATE_TASK_SEED"].flatMap(UInt64.init)
    /// How many more seeds than in `swift test`, from the environment: with 10 there are 3,900.
    private static let factor = ProcessInfo.processInfo.environment["WAKEGATE_TASK_FACTOR"].flatMap(UInt64.init) ?? 1
    private static let groups: UInt64 = 3

    private static func seeds(_ kind: Kind, _ group: UInt64) -> [UInt64] {
        guard let replayed else {
            let count = kind.seedsInGroup * self.factor
            return (0..<count).map { group * count + $0 + 1 }
        }
        return group == 0 ? [replayed] : []
    }

    private static func simulation(_ kind: Kind, _ seed: UInt64) -> (DispatchSimulation, (any SimulatedMedium)?) {
        let simulation = DispatchSimulation(seed: seed, hasTasks: true)
        let medium = kind.medium(seed)
        if let medium { simulation.live(on: medium, faultsEvery: [4, 12, 40][Int(seed % 3)]) }
        return (simulation, medium)
    }

    @Test(
        "Whatever happens, books balance, lanes hold one, nothing is launched twice, and every request ends",
        arguments: Kind.allCases,
        0..<groups
    )
    func holds(kind: Kind, group: UInt64) {
        var coverage = TaskCoverage()
        for seed in Self.seeds(kind, group) {
            let (simulation, medium) = Self.simulation(kind, seed)
            let fault = simulation.run(steps: kind == .immortal ? 120 : 60)
            #expect(fault == nil, "replay with WAKEGATE_TASK_SEED=\(seed), \(kind)")
            #expect(medium?.misuses.isEmpty ?? true, "seed \(seed), \(kind)")
            coverage.add(simulation.taskCoverage)
            for reason in TaskDiscardReason.allCases {
                let count = simulation.rig.engine.totals.requests.discarded[reason]
                coverage.note("discarded \(reason)", Int(count))
            }
        }
        // The disk is slow, and its few seeds do not meet every corner.
        guard Self.replayed == nil, kind != .journal else { return }
        #expect(coverage.missing.isEmpty, "\(kind), group \(group): what never happened proves nothing")
    }

    @Test("A gateway with requests may die after any of its steps", arguments: SimulatedDeath.allCases)
    func everyStep(death: SimulatedDeath) {
        for step in 0..<30 {
            let seed = UInt64(step % 4 + 7)
            let simulation = DispatchSimulation(seed: seed, hasTasks: true)
            simulation.live(on: MemoryMedium(), faultsEvery: 0)
            let fault = simulation.run(steps: step + 5, dyingAt: step, death)
            #expect(fault == nil, "step \(step) of seed \(seed)")
        }
    }

    @Test("One seed gives one run", arguments: Kind.allCases)
    func replays(kind: Kind) {
        let logs = (0..<2).map { _ in
            let (simulation, _) = Self.simulation(kind, 32)
            _ = simulation.run(steps: 60)
            return simulation.log
        }
        #expect(logs[0] == logs[1])
        #expect(logs[0].count > 20)
    }
}
